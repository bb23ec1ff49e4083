// Command bench compares verdicts with the truth: it loads the sample page, or another,
// hundreds of times in pairs of trials, with equal arms and with real delays of known size
// in the treatment, and prints how often our rule and those of other tools are
// right. It takes about an hour; after an interruption, the same command continues.
//
//	go run ./internal/rigs/truth/bench [-dir out/bench/truth] [-out out/bench/truth.json] [-aa 10] [-pairs 20] [-repeats 3]
//	    [-delay-pairs 20] [-browser chromium] [-page URL -recording FILE] [-link cable] [-still 500ms] [-resample 200]
//	    [-resample-only] [-markdown]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/benchrig"
	"eidetic/internal/rigs/benchtable"
	"eidetic/internal/rigs/truth"
	"eidetic/internal/run/isolate"
	"eidetic/netlab/archive"
)

func main() { benchrig.Main("truth", run, inside) }

// settings are passed from the outer half to the inner one.
type settings struct {
	Dir, Appliance, Software string
	Browser, Page, Recording string
	Plan                     truth.Plan
}

// recordingFile is the sample page as it was recorded.
const recordingFile = "recording.wacz"

// armFile is the copy of the plan's recording whose scripts work for so long.
func (s settings) armFile(delay int) string {
	return filepath.Join(s.Dir, fmt.Sprintf("%.12s-delay-%02dms.wacz", s.Plan.Recording, delay))
}

func run(ctx context.Context) error {
	p := truth.Plan{}
	dir := flag.String("dir", "out/bench/truth", "folder for the data, which are added to")
	out := flag.String("out", "out/bench/truth.json", "file for the list of results")
	flag.IntVar(&p.AA, "aa", 10, "experiments with equal arms")
	flag.IntVar(&p.AAPairs, "pairs", 20, "pairs of trials in each of them")
	delays := flag.String("delays", "10,20,30", "milliseconds that scripts of the treatment work, in the other experiments")
	flag.IntVar(&p.Repeats, "repeats", 3, "experiments of each delay")
	flag.IntVar(&p.DelayPairs, "delay-pairs", 20, "pairs of trials in each of them")
	flag.StringVar(&p.Link, "link", "cable", "access network, as for appliance demo")
	s := settings{}
	flag.StringVar(&s.Browser, "browser", lab.Chromium, "program of the browser")
	flag.StringVar(&s.Page, "page", benchrig.Page, "page that is loaded")
	flag.StringVar(&s.Recording, "recording", "", "recording of another page: the archive.wacz of a run in the same browser")
	flag.DurationVar(
		&p.Still,
		"still",
		500*time.Millisecond,
		"stillness that ends a load; the product waits 1.5s, which changes no number of a page that is loaded",
	)
	flag.Uint64Var(&p.Seed, "seed", 1, "of all that is drawn by lot")
	options := truth.Options{}
	flag.IntVar(&options.Resamples, "resample", 200, "experiments to resample for each number of pairs")
	only := flag.Bool("resample-only", false, "load nothing: make the tables of the data that are there")
	markdown := flag.Bool("markdown", false, "print the tables in Markdown")
	flag.Parse()
	options.Seed = p.Seed
	for text := range strings.SplitSeq(*delays, ",") {
		ms, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("-delays %s: want whole milliseconds, separated by commas", *delays)
		}
		p.Delays = append(p.Delays, ms)
	}
	if err := p.Validate(); err != nil {
		return err
	}
	if !*only {
		if (s.Recording == "") != (s.Page == benchrig.Page) {
			return errors.New("-page and -recording belong together")
		}
		s.Plan = p
		if err := s.measure(ctx, *dir); err != nil {
			return err
		}
	}
	data, err := truth.Read(*dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "Resampling %d experiments for each number of pairs\n", options.Resamples)
	e, err := truth.Evaluate(ctx, data, options)
	if err != nil {
		return err
	}
	if err := e.Print(os.Stdout, *markdown); err != nil {
		return err
	}
	return benchtable.Write(*out, e.Results())
}

// measure carries out the missing trials of the plan, in namespaces of its own.
func (s settings) measure(ctx context.Context, dir string) (err error) {
	if s.Dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if s.Appliance, err = benchrig.Build(ctx, filepath.Join(s.Dir, "bin")); err != nil {
		return err
	}
	s.Software = benchrig.Revision(ctx)
	if err := s.record(ctx); err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := isolate.Run(ctx, []string{benchrig.InsideArg, string(text)}); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted: run the same command again to continue")
		}
		return err
	}
	return nil
}

// record makes the recordings that are missing. The control's scripts have the
// same lines as the treatment's, and do not wait.
func (s *settings) record(ctx context.Context) (err error) {
	original := s.Recording
	if original == "" {
		original = filepath.Join(s.Dir, recordingFile)
		if err := benchrig.Record(ctx, s.Appliance, original); err != nil {
			return err
		}
	}
	if s.Plan.Recording, err = benchrig.SHA256(original); err != nil {
		return err
	}
	var recorded *archive.Archive
	for _, delay := range append([]int{0}, s.Plan.Delays...) {
		name := s.armFile(delay)
		if _, err := os.Stat(name); err == nil {
			continue
		}
		if recorded == nil {
			var err error
			if recorded, err = archive.Open(original); err != nil {
				return err
			}
		}
		edited, err := truth.WithDelay(recorded, s.Page, delay)
		if err != nil {
			return err
		}
		if err := archive.Save(name, edited); err != nil {
			return err
		}
	}
	return nil
}
