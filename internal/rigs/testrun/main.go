// Command testrun runs this repository's tests: what make test, make test-unit,
// make test-net, make test-box and make test-slow start.
//
//	testrun test|all|unit|race|net|box the groups of plan.go
//	testrun rest                    what make test leaves out and is not known, by .ci/tested, to pass as it is
//	testrun packages [-run R] P…    packages by name, one after another
//
// In flow the packages of the module; out flow go test's own summary lines, the
// output of failed tests, and a summary: which test passed on its second try,
// which failed, and where the time went. out/test keeps the full output of
// every package and times.json.
//
// A failed test is run once more, when nothing else runs; a test that fails
// twice fails. Each go test runs below a supervisor (supervise.go), so that
// nothing that a test started outlives it, or this program, however it ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exit statuses: of a shell's command that SIGTERM ended, of tests that failed, of wrong usage.
const (
	statusFailed      = 1
	statusUsage       = 2
	statusInterrupted = 128 + int(syscall.SIGTERM)
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == superviseCommand {
		os.Exit(supervise(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == joinCommand {
		fmt.Fprintln(os.Stderr, "testrun:", join(os.Args[2:]))
		os.Exit(statusUsage)
	}
	// A parent (make or a shell) that is killed cannot pass a signal on. With this
	// setting the kernel sends SIGTERM when the parent ends, as long as this thread exists.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "testrun: ", err)
	}
	// The descendants of a killed supervisor become children of this process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "testrun: ", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	status := run(ctx, os.Args[1:], os.Stdout)
	endDescendants()
	os.Exit(status)
}

// config is the command line.
type config struct {
	group    string
	packages []string
	run      string        // as of go test
	timeout  time.Duration // of a package
	slow     float64
	limit    time.Duration // for the groups rest and all: no part of the rest begins that would end later
	race     bool
	shortly  bool // with packages: as make test
	verbose  bool
	out      string
}

func parse(args []string) (config, error) {
	var c config
	flags := flag.NewFlagSet("testrun", flag.ContinueOnError)
	flags.StringVar(&c.run, "run", "", "with packages: only tests that match, as of go test")
	flags.BoolVar(&c.race, "race", false, "with packages: under the race detector")
	flags.BoolVar(&c.shortly, "short", false, "with packages: only what make test runs of them")
	flags.BoolVar(&c.verbose, "v", false, "print what passing tests log, too")
	flags.Float64Var(&c.slow, "slow", 1, "hold the tests to one part in so many of the processors' time")
	flags.DurationVar(&c.timeout, "timeout", packageLimit, "how long a package may take: what is longer hangs")
	flags.DurationVar(&c.limit, "for", 24*time.Hour, "with rest and all: begin no part of the rest that would end later than this")
	flags.StringVar(&c.out, "out", filepath.Join("out", "test"), "folder for the packages' full output and times.json")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: testrun [flags] test|all|rest|unit|race|net|box|packages PACKAGE…")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	c.group, c.packages = flags.Arg(0), flags.Args()[min(1, flags.NArg()):]
	switch {
	case c.group == "":
		return c, errors.New("which tests? test, all, rest, unit, race, net, box, or packages PACKAGE…")
	case c.group == groupPackages && len(c.packages) == 0:
		return c, errors.New("which packages? For example: testrun packages ./netlab/dns")
	case c.group != groupPackages && (len(c.packages) > 0 || c.run != "" || c.race || c.shortly):
		return c, errors.New("-run, -race, -short and names of packages need the command: testrun packages")
	case c.slow < 1:
		return c, fmt.Errorf("-slow %v: 3 is a third of the time, 1 is all", c.slow)
	}
	return c, nil
}

// short reports whether the tests leave to make test-all what it alone runs: see testlab.Long.
func (c config) short() bool {
	return c.shortly || slices.Contains([]string{groupTest, groupAll, groupUnit, groupNet}, c.group)
}

func run(ctx context.Context, args []string, w io.Writer) int {
	c, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		return statusUsage
	}
	s := newSession(c, w)
	if err := s.prepare(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		return statusUsage
	}
	defer s.close()
	if c.group != groupRest {
		err = s.runPlan(ctx)
		s.secondTries(ctx)
	}
	if err == nil && (c.group == groupRest || c.group == groupAll) {
		err = s.runRest(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		return statusFailed
	}
	if len(s.notes) == 0 && ctx.Err() == nil { // there was nothing to run, or no time for it
		if len(s.leftOut) > 0 {
			s.list(leftOutTitle, s.leftOut)
		}
		return 0
	}
	return s.summary(ctx)
}
