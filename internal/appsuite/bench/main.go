// Command bench records every application of the suite and replays it, and prints a table in Markdown.
//
//	go run ./internal/appsuite/bench [-trials 10] [-only NAME,…] [-out out/bench/apps] [-flags "--link 4g"]
//	    [-appliance bin/appliance] [-modules out/apps/node_modules]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"eidetic/internal/appsuite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	good, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "apps:", err)
		os.Exit(3)
	}
	if !good {
		os.Exit(1)
	}
}

func run(ctx context.Context) (good bool, err error) {
	b := appsuite.Bench{Log: os.Stderr, Start: (*exec.Cmd).Start}
	flag.StringVar(&b.Appliance, "appliance", "bin/appliance", "the program")
	flag.StringVar(&b.Modules, "modules", "out/apps/node_modules", "what make apps installed from npm")
	flag.StringVar(&b.Out, "out", "out/bench/apps", "folder for the runs")
	flag.IntVar(&b.Trials, "trials", 10, "replays of each application")
	only := flag.String("only", "", "names of applications, with commas; all by default")
	more := flag.String("flags", "", "more flags of appliance measure, with blanks")
	flag.Parse()
	b.Flags = strings.Fields(*more)
	for _, path := range []*string{&b.Appliance, &b.Modules, &b.Out} {
		if *path, err = filepath.Abs(*path); err != nil {
			return false, err
		}
	}
	good = true
	var table strings.Builder
	for _, app := range appsuite.Apps() {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), app.Name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "\n%s\n", app.Name)
		r, err := b.Measure(ctx, app)
		if err != nil {
			if ctx.Err() != nil {
				return false, err
			}
			good = false
			fmt.Fprintln(os.Stderr, err)
			fmt.Fprintf(&table, "| %s | %s | failed | | | | | |\n", app.Name, app.Has)
			continue
		}
		good = good && r.Good()
		for _, text := range slices.Concat(r.Invalid, r.Misfits) {
			fmt.Fprintln(os.Stderr, "  ", text)
		}
		table.WriteString(r.Row())
	}
	fmt.Print(appsuite.TableHead + table.String())
	return good, nil
}
