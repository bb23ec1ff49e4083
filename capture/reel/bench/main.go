// Command bench measures the reel's codec against what ffmpeg offers, on the
// content classes of package scene, and writes out/bench/capture.json.
//
//	go run ./capture/reel/bench [-size 1920x1080] [-frames 90] [-scenes scroll,camera] [-peers=false]
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"eidetic/capture/reel"
	"eidetic/capture/synthetic/scene"
	"eidetic/internal/lab"
)

// result is one line of the benchmark's list.
type result struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Better string  `json:"better"`
	Peer   string  `json:"peer,omitempty"`
	PeerV  float64 `json:"peer_value,omitempty"`
	Ratio  float64 `json:"ratio,omitempty"`
	Goal   float64 `json:"goal,omitempty"`
}

// measured is how one codec did on one class.
type measured struct {
	codec string
	speed float64 // MB of pixels a second
	ratio float64 // pixels over file
	seek  float64 // ms to reach a frame from anywhere, the worst of some
}

// goals are the issue's: MB/s for BGRX on one and on two threads, and ratios.
var goals = map[string]struct{ one, two, ratio float64 }{
	scene.Static:   {one: 8000},
	scene.PageLoad: {one: 4000},
	scene.Scroll:   {one: 3000, ratio: 200},
	scene.Camera:   {one: 300, two: 500, ratio: 2.7},
	scene.Video:    {two: 700},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	size := flag.String("size", "1920x1080", "of the picture")
	frames := flag.Int("frames", 90, "of each class")
	scenes := flag.String("scenes", strings.Join(scene.Names(), ","), "classes")
	pixels := flag.String("pixels", "BGRX,YUYV", "pixel formats")
	peers := flag.Bool("peers", true, "measure ffmpeg's codecs too")
	runs := flag.Int("runs", 3, "of each measurement; the median counts")
	out := flag.String("out", "out/bench/capture.json", "file to write")
	profile := flag.String("cpuprofile", "", "write a processor profile of our part to this file")
	flag.Parse()
	if *profile != "" {
		file, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var w, h int
	if n, err := fmt.Sscanf(*size, "%dx%d", &w, &h); n != 2 || err != nil {
		return fmt.Errorf("-size %q is not of the form WIDTHxHEIGHT", *size)
	}
	var all []result
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "class\tpixels\tcodec\tthreads\tMB/s\tratio\tgoal\tseek (ms)\t")
	for _, p := range strings.Split(*pixels, ",") {
		for _, name := range strings.Split(*scenes, ",") {
			f := lab.Format{Pixels: lab.PixelFormat(p), Width: w, Height: h, Rate: 60}
			pix, err := drawAll(name, f, *frames)
			if err != nil {
				return err
			}
			label := name + "-" + strings.ToLower(p)
			var best measured
			var rivals []measured
			if *peers {
				list, err := ffmpeg(f, pix)
				if err != nil {
					return err
				}
				for _, m := range list {
					fmt.Fprintf(table, "%s\t%s\t%s\t1\t%.0f\t%.1f\t\t\t\n", name, p, m.codec, m.speed, m.ratio)
					if m.speed > best.speed {
						best = m
					}
					rivals = append(rivals, m)
				}
			}
			for threads := 1; threads <= 2; threads++ {
				m, err := ours(f, pix, threads, *runs)
				if err != nil {
					return err
				}
				goal, ratioGoal := 0.0, 0.0
				if p == "BGRX" {
					goal, ratioGoal = goals[name].one, goals[name].ratio
					if threads == 2 {
						goal = goals[name].two
					}
				}
				fmt.Fprintf(table, "%s\t%s\treel\t%d\t%.0f\t%.1f\t%.0f\t%.0f\t\n", name, p, threads, m.speed, m.ratio, goal, m.seek)
				r := result{Name: fmt.Sprintf("reel-%s-%d-speed", label, threads), Value: m.speed, Unit: "MB/s", Better: "higher", Goal: goal}
				if best.speed > 0 {
					r.Peer, r.PeerV, r.Ratio = "ffmpeg "+best.codec, best.speed, m.speed/best.speed
				}
				all = append(all, r)
				r = result{Name: fmt.Sprintf("reel-%s-%d-ratio", label, threads), Value: m.ratio, Unit: "1", Better: "higher", Goal: ratioGoal}
				if best.speed > 0 {
					r.Peer, r.PeerV, r.Ratio = "ffmpeg "+best.codec, best.ratio, m.ratio/best.ratio
				}
				all = append(all, r)
				if threads == 1 {
					all = append(all, result{Name: "reel-" + label + "-seek", Value: m.seek, Unit: "ms", Better: "lower", Goal: 50})
				}
				for _, rival := range rivals {
					if threads == 1 && rival.speed >= m.speed && rival.ratio >= m.ratio {
						fmt.Fprintf(table, "%s\t%s\t%s is both faster and smaller\t\t\t\t\t\t\n", name, p, rival.codec)
					}
				}
			}
			table.Flush()
		}
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(*out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(*out, append(data, '\n'), 0o644)
}

// drawAll draws the frames of a class.
func drawAll(name string, f lab.Format, n int) ([][]byte, error) {
	s, err := scene.New(name, f.Width, f.Height)
	if err != nil {
		return nil, err
	}
	bgrx := make([]byte, 4*f.Width*f.Height)
	pix := make([][]byte, n)
	for i := range pix {
		s.Draw(bgrx, i)
		pix[i] = make([]byte, f.FrameSize())
		switch f.Pixels {
		case lab.BGRX:
			copy(pix[i], bgrx)
		case lab.YUYV:
			scene.Convert(pix[i], bgrx, f.Width, f.Height)
		default:
			return nil, fmt.Errorf("no scene in %s", f.Pixels)
		}
	}
	return pix, nil
}

// ours writes the frames to a reel in memory, and checks that it is lossless.
func ours(f lab.Format, pix [][]byte, threads, runs int) (measured, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	file := bytes.NewBuffer(make([]byte, 0, 2*len(pix)*f.FrameSize()))
	var speeds []float64
	for range runs {
		file.Reset()
		w, err := reel.NewWriter(file, reel.Header{Format: f})
		if err != nil {
			return measured{}, err
		}
		start := time.Now()
		for i, p := range pix {
			fr := lab.Frame{Pix: p}
			fr.Seq, fr.Time = uint64(i), lab.Time(i)*16_666_667
			fr.Changed = append(fr.Changed, f.Bounds()) // not known, as from a grabber
			if err := w.WriteFrame(fr); err != nil {
				return measured{}, err
			}
		}
		if err := w.Close(); err != nil {
			return measured{}, err
		}
		speeds = append(speeds, float64(len(pix)*f.FrameSize())/1e6/time.Since(start).Seconds())
	}
	slices.Sort(speeds)
	r, err := reel.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		return measured{}, err
	}
	for i, p := range pix {
		got, err := r.Pixels(i)
		if err != nil || !bytes.Equal(got, p) {
			return measured{}, fmt.Errorf("frame %d is not what was written (%v)", i, err)
		}
	}
	seek := 0.0
	for i := len(pix) - 1; i >= 0; i -= 1 + len(pix)/40 { // backwards: every one starts at a key frame
		start := time.Now()
		if _, err := r.Pixels(i); err != nil {
			return measured{}, err
		}
		seek = max(seek, time.Since(start).Seconds()*1e3)
	}
	return measured{"reel", speeds[len(speeds)/2], float64(len(pix)*f.FrameSize()) / float64(file.Len()), seek}, nil
}
