// Command bench bisects a real regression: it records the sample page, hides a delay that a script of the page
// really works at a random one of many revisions, and has "appliance bisect" find it, with trials in a real
// browser. It prints what was found and the truth, and fails if they differ. After an interruption the same command
// continues.
//
//	go run ./internal/box/bisection/bench [-dir out/bench/bisect] [-revisions 64] [-delay 25] [-seed 1] [-link native]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"eidetic/internal/box/bisection"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/benchrig"
	"eidetic/internal/rigs/truth"
	"eidetic/netlab/archive"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// recordingFile is the sample page as it was recorded.
const recordingFile = "recording.wacz"

func run(ctx context.Context) error {
	dir := flag.String("dir", "out/bench/bisect", "folder for the bisect")
	revisions := flag.Int("revisions", 64, "after the good one")
	delay := flag.Int("delay", 25, "milliseconds that scripts of the culprit and of all after it work, 1 to 99")
	seed := flag.Uint64("seed", 1, "of the culprit's place, and of the bisect")
	link := flag.String("link", "native", "access network")
	deploy := flag.Bool("deploy", false, "be the command that deploys the revision named: for the bisect alone")
	flag.Parse()
	if *revisions < 1 || *revisions > 9999 {
		return fmt.Errorf("-revisions %d: from 1 to 9999", *revisions)
	}
	culprit := 1 + rand.New(rand.NewPCG(*seed, 0x62697365637420)).IntN(*revisions)
	if *deploy {
		return deployed(*dir, flag.Arg(0), culprit, *delay)
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	appliance, err := benchrig.Build(ctx, filepath.Join(*dir, "bin"))
	if err != nil {
		return err
	}
	if err := benchrig.Record(ctx, appliance, filepath.Join(*dir, recordingFile)); err != nil {
		return err
	}
	if err := write(*dir, *revisions, *link); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, appliance, "bisect", "--plan", filepath.Join(*dir, "plan.yaml"), "--good", nameOf(0),
		"--revisions", filepath.Join(*dir, "revisions.txt"), "--metric", metric.FirstChange.String(), "--seed", strconv.FormatUint(*seed, 10),
		"--out", filepath.Join(*dir, "out"), "--deploy", `"$BENCH" -deploy -dir "$BENCH_DIR" -revisions "$BENCH_REVISIONS" `+
			`-delay "$BENCH_DELAY" -seed "$BENCH_SEED" "$1"`)
	command.Env = append(os.Environ(), "BENCH="+self, "BENCH_DIR="+*dir, fmt.Sprintf("BENCH_REVISIONS=%d", *revisions),
		fmt.Sprintf("BENCH_DELAY=%d", *delay), fmt.Sprintf("BENCH_SEED=%d", *seed))
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	start := time.Now()
	if err := command.Run(); ctx.Err() != nil {
		return errors.New("interrupted: run the same command again to continue")
	} else if err != nil {
		return fmt.Errorf("appliance bisect: %w", err)
	}
	return judge(filepath.Join(*dir, "out", "result.json"), nameOf(culprit), *delay, time.Since(start))
}

// nameOf is the name of a revision.
func nameOf(n int) string { return fmt.Sprintf("r%04d", n) }

// write writes the plan and the list.
func write(dir string, revisions int, link string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	plan := fmt.Sprintf("page: %s\narchive: %q\nlink: %s\nstill_s: 0.5\n", benchrig.Page, filepath.Join(absolute, "{revision}.wacz"), link)
	if err := os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(plan), 0o644); err != nil {
		return err
	}
	var list strings.Builder
	for n := range revisions + 1 {
		fmt.Fprintf(&list, "%s change number %d\n", nameOf(n), n)
	}
	return os.WriteFile(filepath.Join(dir, "revisions.txt"), []byte(list.String()), 0o644)
}

// deployed makes the recording of a revision.
func deployed(dir, name string, culprit, delay int) error {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "r"))
	if err != nil {
		return fmt.Errorf("revision %q: %w", name, err)
	}
	recorded, err := archive.Open(filepath.Join(dir, recordingFile))
	if err != nil {
		return err
	}
	if n < culprit {
		delay = 0
	}
	edited, err := truth.WithDelay(recorded, benchrig.Page, delay)
	if err != nil {
		return err
	}
	return archive.Save(filepath.Join(dir, name+".wacz"), edited)
}

// judge holds what was found against the truth.
func judge(file, culprit string, delay int, took time.Duration) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var r bisection.Result
	if err := json.Unmarshal(content, &r); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	fmt.Printf("The truth: %s, by %d ms. %d trials (%d pairs) in %v.\n", culprit, delay, r.Trials, r.Pairs, took.Round(time.Second))
	if len(r.Steps) != 1 || len(r.Steps[0].Revisions) != 1 || r.Steps[0].Revisions[0].Name != culprit {
		return errors.New("another one was named")
	}
	return nil
}
