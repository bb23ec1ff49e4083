// Command bench records every application of the suite and replays it, and prints a table in Markdown.
//
//	go run ./internal/rigs/appsuite/bench [-trials 10] [-only NAME,…] [-browsers chromium,firefox-esr] [-out out/bench/apps]
//	    [-flags "--link 4g"] [-appliance bin/appliance] [-modules out/apps/node_modules]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/appsuite"
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
	browsers := flag.String("browsers", "chromium,firefox-esr", "names of browsers, with commas; Firefox measures those that are marked for it")
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
	for _, browser := range strings.Split(*browsers, ",") {
		b.Browser = browser
		for _, app := range appsuite.Apps() {
			if *only != "" && !slices.Contains(strings.Split(*only, ","), app.Name) || browser != lab.Chromium && !app.Firefox {
				continue
			}
			row, isGood, err := measure(ctx, b, app)
			if err != nil {
				return false, err
			}
			good = good && isGood
			table.WriteString(row)
		}
	}
	fmt.Print(appsuite.TableHead + table.String())
	return good, nil
}

// measure returns an application's row of the table.
func measure(ctx context.Context, b appsuite.Bench, app appsuite.App) (row string, good bool, err error) {
	fmt.Fprintf(os.Stderr, "\n%s, %s\n", app.Name, b.Browser)
	r, err := b.Measure(ctx, app)
	if ctx.Err() != nil {
		return "", false, ctx.Err()
	}
	if errors.Is(err, exec.ErrNotFound) { // make apps installs all that this release of Debian has
		fmt.Fprintln(os.Stderr, err)
		return fmt.Sprintf("| %s (%s) | %s | %s | left out: not installed | | | | | | | |\n", app.Name, app.From, app.Has, b.Browser), true, nil
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return fmt.Sprintf("| %s | %s | %s | failed | | | | | | | |\n", app.Name, app.Has, b.Browser), false, nil
	}
	for _, text := range slices.Concat(r.Invalid, r.Misfits) {
		fmt.Fprintln(os.Stderr, "  ", text)
	}
	return r.Row(), r.Good(), nil
}
