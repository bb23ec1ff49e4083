// Command bench measures the analyses: how long the whole metric set takes for five
// minutes of 1920×1080 at 60 frames a second, and, on generated loads, whether the numbers
// equal those of browsertime's visualmetrics-portable.py and of speedline and how much faster
// they come. It prints a table and writes out/bench/analysis.json.
//
//	go run ./analysis/bench [-seconds 20] [-loads 30] [-peers=false]
//
// The peers are fetched by npm (browsertime, speedline-core) into out/bench/peers, once.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"text/tabwriter"
	"time"

	"eidetic/analysis/filmtest"
	"eidetic/analysis/measure"
	"eidetic/analysis/visual"
	"eidetic/capture/reel"
	"eidetic/internal/lab"
)

// row is one line of the benchmark's list.
type row struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Better string  `json:"better"`
	Peer   string  `json:"peer,omitempty"`
	PeerV  float64 `json:"peer_value,omitempty"`
	Ratio  float64 `json:"ratio,omitempty"`
	Goal   float64 `json:"goal,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	seconds := flag.Int("seconds", 10, "of scrolling that is measured; the result is for five minutes at the same pace")
	loads := flag.Int("loads", 30, "generated loads that are compared with the peers")
	profile := flag.String("profile", "", "file for a profile of our own processor time")
	peers := flag.Bool("peers", true, "compare with browsertime and speedline")
	out := flag.String("out", "out/bench", "folder for analysis.json, and for the peers")
	flag.Parse()
	dir, err := os.MkdirTemp("", "analysis-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	rows, err := speed(dir, *seconds)
	if err != nil {
		return err
	}
	if *peers {
		more, err := compare(dir, filepath.Join(*out, "peers"), *loads)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tours\tpeer\tratio\tgoal")
	for _, r := range rows {
		peer, ratio, goal := "", "", ""
		if r.Peer != "" {
			peer = fmt.Sprintf("%s: %.3g", r.Peer, r.PeerV)
		}
		if r.Ratio > 0 {
			ratio = fmt.Sprintf("%.1f", r.Ratio)
		}
		if r.Goal > 0 {
			goal = fmt.Sprintf("%g", r.Goal)
		}
		fmt.Fprintf(w, "%s\t%.3g %s\t%s\t%s\t%s\n", r.Name, r.Value, r.Unit, peer, ratio, goal)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*out, "analysis.json"), append(data, '\n'), 0o644)
}

const (
	width, height = 1920, 1080
	whole         = 300 // seconds: five minutes
)

// speed measures the metric sets on reels.
func speed(dir string, seconds int) ([]row, error) {
	page := filmtest.NewPage(width, 12000, 1)
	scrolled := func(pix []byte, n int) { page.Show(pix, width, height, 0, (n*8)%(12000-height)) }
	painted := func(pix []byte, n int) {
		page.Show(pix, width, height, 0, 0)
		rows := min(n*height/120, height)
		for i := 4 * width * rows; i < len(pix); i++ {
			pix[i] = 255
		}
	}
	load := make([]filmtest.Shot, whole*60)
	for i := range load {
		load[i].State = min(i/2, 120) // four seconds of painting, then still
	}
	var rows []row
	for _, m := range []struct {
		name    string
		scene   filmtest.Scene
		shots   []filmtest.Shot
		scale   float64
		goal    float64
		indices visual.Indices
		groups  []string
	}{
		{"page load", painted, load, 1, 5, visual.WPT | visual.Perceptual | visual.Contentful | visual.Speedline | visual.Completeness,
			[]string{measure.Rate, measure.Tearing, measure.Window}},
		{"scrolling", scrolled, filmtest.Beat(seconds*60, 60, 60, 0), float64(whole) / float64(seconds), 30, 0,
			[]string{measure.Rate, measure.Motion, measure.Blank, measure.Tearing}},
	} {
		path := filepath.Join(dir, m.name+".reel")
		if err := record(path, filmtest.New(width, height, 60, m.scene, m.shots), 1); err != nil {
			return nil, err
		}
		began, used := time.Now(), processor()
		if m.indices != 0 {
			if err := with(path, func(r *reel.Reader) error {
				_, err := visual.Analyze(r, visual.Options{Also: m.indices, Baseline: visual.BaselineWhite})
				return err
			}); err != nil {
				return nil, err
			}
		}
		parts := map[string]float64{"indices": processor() - used}
		run := func(groups ...string) error {
			return with(path, func(r *reel.Reader) error {
				_, err := measure.Run(r, measure.Options{Groups: groups})
				return err
			})
		}
		if err := run(m.groups...); err != nil {
			return nil, err
		}
		took := time.Since(began).Seconds() * m.scale
		together := (processor() - used) * m.scale
		rows = append(rows, row{Name: m.name + ": processor time of all together", Value: together, Unit: "s", Better: "lower"})
		for _, g := range m.groups { // each alone, for the table
			at := processor()
			if err := run(g); err != nil {
				return nil, err
			}
			parts[g] = processor() - at
		}
		rows = append(rows, row{Name: fmt.Sprintf("five minutes of 1080p60, %s, all metrics, %d cores", m.name, runtime.GOMAXPROCS(0)),
			Value: took, Unit: "s", Better: "lower", Goal: m.goal, Ratio: m.goal / took})
		for _, g := range append([]string{"indices"}, m.groups...) {
			if parts[g] > 0.001 {
				rows = append(rows, row{Name: m.name + ": processor time of " + g + " alone", Value: parts[g] * m.scale, Unit: "s", Better: "lower"})
			}
		}
	}
	return rows, nil
}

func with(path string, do func(*reel.Reader) error) error {
	r, err := reel.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	return do(r)
}

// record writes a film as a reel, with times of whole units.
func record(path string, f *filmtest.Film, unit lab.Time) error {
	w, err := reel.Create(path, reel.Header{Format: f.Format(), Source: "generated"})
	if err != nil {
		return err
	}
	for i := range f.Len() {
		frame, err := frameOf(f, i)
		frame.Time -= frame.Time % unit
		if err == nil {
			err = w.WriteFrame(frame)
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}
