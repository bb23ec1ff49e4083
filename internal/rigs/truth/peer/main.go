// Command peer loads three pages with appliance measure and with browsertime, in turns, and prints each one's mean,
// standard deviation within runs, and seconds a trial. The pages are of its own server on loopback.
//
//	go run ./internal/rigs/truth/peer [-rounds 3] [-trials 7] [-link native] [-dir out/bench/peer] [-out out/bench/peer.json]
//
// browsertime is npm's (make bench-peer installs it), with Debian's driver of Chromium. It loads pages from their
// server, films a screen of the same size at the same rate, and its zero is the navigation's start; ours is the key
// press, and the page is replayed over the link.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/benchrig"
	"eidetic/internal/rigs/benchtable"
)

func main() { benchtable.Main("peer", run) }

// The two that are compared.
const (
	ours = "appliance"
	peer = "browsertime"
)

// marks are what both measure: the metric, and browsertime's name of it.
var marks = []struct {
	metric metric.ID
	theirs string
}{
	{metric.FirstChange, "FirstVisualChange"},
	{metric.SpeedIndex, "SpeedIndex"},
	{metric.LastChange, "LastVisualChange"},
}

// loads are a run's valid trials: a value for each of marks.
type loads struct {
	Trials  [][]float64
	Seconds float64 // a trial, of the whole command
}

type bench struct{ dir, appliance, link, modules string }

func run(ctx context.Context) (err error) {
	rounds := flag.Int("rounds", 3, "runs of each page and tool")
	trials := flag.Int("trials", 7, "of a run")
	b := bench{modules: "out/peer/node_modules"}
	flag.StringVar(&b.link, "link", "native", "access network of our trials")
	flag.StringVar(&b.dir, "dir", "out/bench/peer", "folder for the runs")
	out := flag.String("out", "out/bench/peer.json", "file for the list of results")
	seed := flag.Uint64("seed", 1, "of the order")
	flag.Parse()
	if *trials < 3 || *rounds < 1 {
		return errors.New("want at least -trials 3 and -rounds 1")
	}
	for _, path := range []*string{&b.dir, &b.modules} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if b.appliance, err = benchrig.Build(ctx, filepath.Join(b.dir, "bin")); err != nil {
		return err
	}
	origin, end, err := serve()
	if err != nil {
		return err
	}
	defer end()
	random := rand.New(rand.NewPCG(*seed, 0))
	of := map[string]map[string][]loads{} // by page and tool
	for round := range *rounds {
		for _, page := range pages {
			order := []string{ours, peer}
			random.Shuffle(2, func(i, j int) { order[i], order[j] = order[j], order[i] })
			for _, tool := range order {
				fmt.Fprintf(os.Stderr, "Round %d of %d, %s, %s\n", round+1, *rounds, page.name, tool)
				load := b.ours
				if tool == peer {
					load = b.theirs
				}
				l, err := load(ctx, origin+"/"+page.name, filepath.Join(b.dir, fmt.Sprintf("%s-%s-%d", page.name, tool, round)), *trials)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", page.name, tool, err)
				}
				if of[page.name] == nil {
					of[page.name] = map[string][]loads{}
				}
				of[page.name][tool] = append(of[page.name][tool], l)
			}
		}
	}
	return report(of, *out)
}

// ours is a run of appliance measure.
func (b *bench) ours(ctx context.Context, page, dir string, trials int) (loads, error) {
	begun := time.Now()
	cmd := exec.CommandContext(ctx, b.appliance, "measure", page, "--no-serve", "--trials", fmt.Sprint(trials), "--link", b.link, "--out", dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if text, err := cmd.CombinedOutput(); err != nil {
		return loads{}, fmt.Errorf("%w: %s", err, text)
	}
	l := loads{Seconds: time.Since(begun).Seconds() / float64(trials)}
	text, err := os.ReadFile(filepath.Join(dir, "latest", "run.json"))
	if err != nil {
		return loads{}, err
	}
	var r lab.Run
	if err := json.Unmarshal(text, &r); err != nil {
		return loads{}, err
	}
	for _, t := range r.Trials {
		if !t.Valid {
			continue
		}
		trial := make([]float64, 0, len(marks))
		for _, m := range marks {
			trial = append(trial, m.metric.In(t))
		}
		l.Trials = append(l.Trials, trial)
	}
	return l, nil
}

// theirs is a run of browsertime.
func (b *bench) theirs(ctx context.Context, page, dir string, trials int) (loads, error) {
	standIn := filepath.Join(b.dir, "python")
	if err := os.MkdirAll(standIn, 0o755); err != nil {
		return loads{}, err
	}
	// Its script looks for pyssim, which Debian does not have, and needs it for no index that is compared.
	if err := os.WriteFile(filepath.Join(standIn, "ssim.py"), []byte("compute_ssim = None\n"), 0o644); err != nil {
		return loads{}, err
	}
	begun := time.Now()
	cmd := exec.CommandContext(ctx, "node", filepath.Join(b.modules, "browsertime/bin/browsertime.js"), page, "--iterations", fmt.Sprint(trials),
		"--browser", "chrome", "--chrome.binaryPath", "/usr/bin/chromium", "--chrome.chromedriverPath", "/usr/bin/chromedriver",
		"--chrome.args", "no-sandbox", "--viewPort", fmt.Sprintf("%dx%d", width, height), "--xvfb", "--xvfbParams.display", "97",
		"--video", "--videoParams.framerate", "60", "--visualMetrics", "--visualMetricsPortable", "--resultDir", dir)
	cmd.Env = append(os.Environ(), "PYTHON=/usr/bin/python3", "PYTHONPATH="+standIn)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	said, err := cmd.CombinedOutput()
	if err != nil {
		return loads{}, fmt.Errorf("%w: %s", err, said)
	}
	l := loads{Seconds: time.Since(begun).Seconds() / float64(trials)}
	text, err := os.ReadFile(filepath.Join(dir, "browsertime.json"))
	if err != nil {
		return loads{}, err
	}
	var results []struct {
		VisualMetrics []map[string]any `json:"visualMetrics"`
	}
	if err := json.Unmarshal(text, &results); err != nil {
		return loads{}, err
	}
	for _, r := range results {
		for _, metrics := range r.VisualMetrics {
			trial := make([]float64, 0, len(marks))
			for _, m := range marks {
				if v, ok := metrics[m.theirs].(float64); ok {
					trial = append(trial, v)
				}
			}
			if len(trial) == len(marks) {
				l.Trials = append(l.Trials, trial)
			}
		}
	}
	if len(l.Trials) == 0 {
		return loads{}, fmt.Errorf("no visual metrics: %s", said)
	}
	return l, nil
}

// spread is the mean of a mark over all runs, its standard deviation within runs, and the number of trials.
func spread(runs []loads, mark int) (mean, within float64, n int) {
	var squares float64
	degrees := 0
	for _, r := range runs {
		var values []float64
		for _, t := range r.Trials {
			values = append(values, t[mark])
		}
		if len(values) == 0 {
			continue
		}
		here := 0.0
		for _, v := range values {
			here += v / float64(len(values))
		}
		for _, v := range values {
			squares += (v - here) * (v - here)
			mean += v
		}
		degrees += len(values) - 1
		n += len(values)
	}
	return mean / float64(n), math.Sqrt(squares / float64(degrees)), n
}

func seconds(runs []loads) (mean float64) {
	for _, r := range runs {
		mean += r.Seconds / float64(len(runs))
	}
	return mean
}

func report(of map[string]map[string][]loads, out string) error {
	var results []benchtable.Result
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "page\ttool\ttrials\tfirst change, mean (SD within runs)\tSpeedIndex\tlast change\tseconds a trial\t")
	for _, page := range pages {
		for _, tool := range []string{peer, ours} {
			runs := of[page.name][tool]
			_, _, n := spread(runs, 0)
			fmt.Fprintf(table, "%s\t%s\t%d\t", page.name, tool, n)
			for i, m := range marks {
				mean, within, _ := spread(runs, i)
				fmt.Fprintf(table, "%.0f (%.0f) ms\t", mean, within)
				if tool == ours {
					theirMean, theirWithin, _ := spread(of[page.name][peer], i)
					results = append(results,
						benchtable.Less(page.name+": SD within runs of "+m.metric.String(), within, "ms").Against(peer, theirWithin),
						benchtable.Less(page.name+": mean of "+m.metric.String(), mean, "ms").Against(peer, theirMean))
				}
			}
			fmt.Fprintf(table, "%.1f\t\n", seconds(runs))
		}
		results = append(results, benchtable.Less(page.name+": seconds a trial", seconds(of[page.name][ours]), "s").
			Against(peer, seconds(of[page.name][peer])))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return benchtable.Write(out, results)
}
