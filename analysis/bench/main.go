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
	"eidetic/internal/metric"
	"eidetic/internal/rigs/benchtable"
)

func main() { benchtable.Exit("bench", run()) }

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
		ratio := ""
		if r.Ratio > 0 {
			ratio = fmt.Sprintf("%.1f", r.Ratio)
		}
		fmt.Fprintf(w, "%s\t%.3g %s\t%s\t%s\t%s\n", r.Name, r.Value, r.Unit, r.PeerText(), ratio, r.AimText())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return benchtable.Write(filepath.Join(*out, "analysis.json"), rows)
}

const (
	width, height = 1920, 1080
	whole         = 300 // seconds: five minutes
)

// speed measures the metric sets on reels.
func speed(dir string, seconds int) ([]benchtable.Result, error) {
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
	var rows []benchtable.Result
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
			[]string{metric.Rate, metric.Tearing, metric.Window}},
		{"scrolling", scrolled, filmtest.Beat(seconds*60, 60, 60, 0), float64(whole) / float64(seconds), 30, 0,
			[]string{metric.Rate, metric.Motion, metric.Blank, metric.Tearing}},
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
		rows = append(rows, benchtable.Less(m.name+": processor time of all together", together, "s"))
		for _, g := range m.groups { // each alone, for the table
			at := processor()
			if err := run(g); err != nil {
				return nil, err
			}
			parts[g] = processor() - at
		}
		whole := fmt.Sprintf("five minutes of 1080p60, %s, all metrics, %d cores", m.name, runtime.GOMAXPROCS(0))
		rows = append(rows, benchtable.Less(whole, took, "s").Aim(m.goal))
		for _, g := range append([]string{"indices"}, m.groups...) {
			if parts[g] > 0.001 {
				rows = append(rows, benchtable.Less(m.name+": processor time of "+g+" alone", parts[g]*m.scale, "s"))
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
