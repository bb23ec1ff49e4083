// Command bench loads the sample page again and again: unchanged, with the browser's
// own trace, and with flags to be tried, all by turns. It prints how equal loads
// differ: the spread of each variant, and the step of a load that causes the spread of
// its first change on the screen.
//
//	go run ./internal/rigs/noise/bench [-loads 20] [-trace] [-try 'NAME=--flag --flag'] … [-dir out/bench/noise] [-markdown]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"

	"eidetic/internal/rigs/benchrig"
	"eidetic/internal/rigs/benchtable"
	"eidetic/internal/rigs/noise"
	"eidetic/internal/run/isolate"
)

func main() { benchrig.Main("noise", run, inside) }

// variant is a way to load the page.
type variant struct {
	Name  string
	Flags []string
	Trace bool
}

// settings are passed from the outer half to the inner one.
type settings struct {
	Dir, Appliance, Link string
	Loads                int
	Seed                 uint64
	Variants             []variant
}

// tries collects -try.
type tries []variant

// String implements flag.Value.
func (t *tries) String() string { return "" }

// Set implements flag.Value: NAME=--flag --flag.
func (t *tries) Set(text string) error {
	name, flags, ok := strings.Cut(text, "=")
	if !ok || name == "" || strings.HasPrefix(name, "-") {
		return errors.New("want NAME=--flag --flag")
	}
	*t = append(*t, variant{Name: name, Flags: strings.Fields(flags)})
	return nil
}

// The files of a folder.
const (
	recordingFile = "recording.wacz"
	loadsFile     = "loads.json"
)

func run(ctx context.Context) (err error) {
	s := settings{Variants: []variant{{Name: "as it is"}}}
	var more tries
	dir := flag.String("dir", "out/bench/noise", "folder for the recording and the loads")
	out := flag.String("out", "out/bench/noise.json", "file for the list of results")
	flag.IntVar(&s.Loads, "loads", 20, "valid loads of each variant that are aimed at; up to half as many are repeated")
	flag.StringVar(&s.Link, "link", "cable", "access network, as for appliance demo")
	flag.Uint64Var(&s.Seed, "seed", 1, "of the order")
	trace := flag.Bool("trace", false, "load by turns with the browser's own trace, too")
	flag.Var(&more, "try", "another variant, of the form NAME=--flag --flag (may be repeated)")
	only := flag.Bool("read-only", false, "load nothing: print the tables of the loads that are there")
	markdown := flag.Bool("markdown", false, "print the tables in Markdown")
	flag.Parse()
	if s.Loads < 4 {
		return errors.New("-loads must be at least 4")
	}
	if *trace {
		s.Variants = append(s.Variants, variant{Name: "traced", Trace: true})
	}
	s.Variants = append(s.Variants, more...)
	if s.Dir, err = filepath.Abs(*dir); err != nil {
		return err
	}
	if !*only {
		if err := load(ctx, s); err != nil {
			return err
		}
	}
	content, err := os.ReadFile(filepath.Join(s.Dir, loadsFile))
	if err != nil {
		return err
	}
	var loads []noise.Load
	if err := json.Unmarshal(content, &loads); err != nil {
		return err
	}
	report := noise.NewReport(loads)
	if err := report.Print(os.Stdout, *markdown); err != nil {
		return err
	}
	return benchtable.Write(*out, report.Results())
}

// load loads the page, in namespaces of its own.
func load(ctx context.Context, s settings) (err error) {
	if s.Appliance, err = benchrig.Build(ctx, filepath.Join(s.Dir, "bin")); err != nil {
		return err
	}
	if err := benchrig.Record(ctx, s.Appliance, filepath.Join(s.Dir, recordingFile)); err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	err = isolate.Run(ctx, []string{benchrig.InsideArg, string(text)})
	if ctx.Err() != nil {
		return errors.New("interrupted; -read-only prints the loads so far")
	}
	return err
}
