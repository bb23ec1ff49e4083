// Command bench measures replaying beside other servers that could be used
// instead, in one run, and writes out/bench/replay.json.
//
// It compares requests (or questions) per second of a server's own
// processor time, read from /proc, since the client shares the machine. Every
// server has the same 10 KB bodies, its key is ECDSA P-256, and h2load asks all
// of them for the same URLs over TLS 1.3. Rounds alternate between the servers,
// and the median round counts.
//
//	go run ./netlab/replay/bench [-parts http,latency,match,leaf,load,dns] [-rounds 3] [-wpr DIR] [-coredns FILE]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"eidetic/internal/rigs/benchtable"
)

// options are the command's flags.
type options struct {
	rounds   int
	duration time.Duration // of one measurement
	only     []string      // servers; empty for all
	wpr      string
	coredns  string
	profile  string
	dir      string // scratch, in RAM
}

func main() { benchtable.Exit("bench", run()) }

func run() error {
	var o options
	parts := flag.String("parts", "http,latency,match,leaf,load,dns", "what to measure")
	only := flag.String("only", "", "measure these servers alone: appliance, go, nginx, mitmproxy, wpr, dnsmasq, coredns")
	flag.IntVar(&o.rounds, "rounds", 3, "of each measurement; the median counts")
	flag.DurationVar(&o.duration, "duration", 2*time.Second, "of one measurement")
	flag.StringVar(
		&o.wpr,
		"wpr",
		os.Getenv("WPR_DIR"),
		"folder web_page_replay_go of Chromium's catapult with its program built as wpr; no package has it",
	)
	flag.StringVar(&o.coredns, "coredns", os.Getenv("COREDNS"), "a CoreDNS program; without it one is built from its Go module")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a processor profile of our server's part to this file")
	out := flag.String("out", "out/bench/replay.json", "file to write")
	as := flag.String("as", "", "be a server: what the benchmark starts itself with")
	flag.Parse()
	if *as != "" {
		return be(*as, o, flag.Args())
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if o.dir, err = os.MkdirTemp("/dev/shm", "bench-replay-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	if err := record(filepath.Join(o.dir, "small.wacz"), exchanges, bodyBytes); err != nil {
		return err
	}
	var t table
	for _, part := range strings.Split(*parts, ",") {
		measure, ok := map[string]func(context.Context, options, *table) error{
			"http": measureHTTP, "latency": measureLatency, "match": measureMatch, "leaf": measureLeaf, "load": measureLoad, "dns": measureDNS,
		}[part]
		if !ok {
			return fmt.Errorf("-parts: there is no part %q", part)
		}
		if err := measure(ctx, o, &t); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return benchtable.Write(*out, t.results)
}

// wants reports whether a server is to be measured.
func (o options) wants(name string) bool { return len(o.only) == 0 || slices.Contains(o.only, name) }

// judge returns whether the goal is met, as text. It is of the ratio where there is a peer, else of the value.
func judge(r benchtable.Result) string {
	met := r.Value >= *r.Goal
	switch {
	case r.Missing != "":
		return "not measured"
	case r.Peer != "":
		met = r.Ratio >= *r.Goal
	case r.Better == benchtable.Lower:
		met = r.Value <= *r.Goal
	}
	if met {
		return "met"
	}
	return "NOT MET"
}

// table collects the results and prints each as it comes.
type table struct{ results []benchtable.Result }

func (t *table) add(r benchtable.Result) {
	t.results = append(t.results, r)
	line := fmt.Sprintf("%-42s %10.6g %-16s", r.Name, r.Value, r.Unit)
	switch {
	case r.Missing != "":
		line += fmt.Sprintf("     ? × %-10s", r.Peer)
	case r.Peer != "":
		line += fmt.Sprintf(" %5.2f × %-10s (%.6g)", r.Ratio, r.Peer, *r.PeerV)
	}
	if r.Goal != nil {
		line += fmt.Sprintf("  goal %.3g: %s", *r.Goal, judge(r))
	}
	if r.Missing != "" {
		line += ": " + strings.Join(strings.Fields(r.Missing), " ")
	}
	fmt.Println(line)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}
