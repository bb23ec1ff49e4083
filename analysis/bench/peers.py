"""Run browsertime's visualmetrics-portable.py on folders of frames.

Usage: peers.py SCRIPT FOLDER...   Prints one JSON line a folder: its numbers and
the seconds that the peer took. Its functions are called as its main does, without the
extraction from a video, so that both sides see the same pixels.
"""
import importlib.util
import json
import os
import sys
import time

spec = importlib.util.spec_from_file_location("portable", sys.argv[1])
portable = importlib.util.module_from_spec(spec)
spec.loader.exec_module(portable)

for folder in sys.argv[2:]:
    folder = os.path.abspath(folder)
    began = time.process_time()
    histograms = os.path.join(folder, "histograms.json.gz")
    portable.calculate_histograms(folder, histograms, True)
    loaded = portable.load_histograms(histograms, 0, 0)
    progress = portable.calculate_visual_progress(loaded)
    index = portable.calculate_speed_index(progress)
    contentful, _ = portable.calculate_contentful_speed_index(progress, folder)
    print(json.dumps({
        "seconds": time.process_time() - began,
        "frames": len(loaded),
        "index": index,
        "contentful": contentful,
        "progress": [[p["time"], p["progress"]] for p in progress],
    }), flush=True)
