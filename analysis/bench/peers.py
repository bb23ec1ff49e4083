"""Run a visualmetrics script on folders of frames.

Usage: peers.py SCRIPT CONTENTFUL FOLDER...   Prints one JSON line a folder: its numbers and
the seconds that the peer took, first with what reading its files takes and then without, when
the pictures are in memory. CONTENTFUL is 1 for the Contentful Speed Index too. The script's functions
are called as its main does, without the extraction from a video, so that both sides see the same pixels.
"""
import importlib.util
import json
import os
import sys
import time

from PIL import Image

spec = importlib.util.spec_from_file_location("peer", sys.argv[1])
peer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(peer)
with_contentful = sys.argv[2] == "1"
from_file = Image.open


def measure(folder):
    began = time.process_time()
    histograms = os.path.join(folder, "histograms.json.gz")
    peer.calculate_histograms(folder, histograms, True)
    loaded = peer.load_histograms(histograms, 0, 0)
    progress = peer.calculate_visual_progress(loaded)
    index = peer.calculate_speed_index(progress)
    contentful = 0
    if with_contentful:
        contentful, _ = peer.calculate_contentful_speed_index(progress, folder)
    return {
        "seconds": time.process_time() - began,
        "frames": len(loaded),
        "index": index,
        "contentful": contentful,
        "progress": [[p["time"], int(p["progress"])] for p in progress],
    }


for folder in sys.argv[3:]:
    folder = os.path.abspath(folder)
    Image.open = from_file
    numbers = measure(folder)
    pictures = {}
    for name in os.listdir(folder):
        if name.endswith(".png"):
            with from_file(os.path.join(folder, name)) as picture:
                pictures[name] = picture.copy()
    Image.open = lambda file: pictures[os.path.basename(file)]
    numbers["decoded_seconds"] = measure(folder)["seconds"]
    print(json.dumps(numbers), flush=True)
