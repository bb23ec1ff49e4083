// Command bench lets 200 simulated boxes carry out 20,000 runs for one head: the head's real handler, called by the
// real client of a box over TLS on loopback. The network drops, doubles and delays calls, and the head stops and starts
// again every minute. It prints how long claims took, what the database and the process weigh, and whether a run was
// done twice or lost, and writes out/bench/fleet.json.
//
//	go run ./internal/fleet/bench [-boxes 200] [-runs 20000] [-needs 300] [-faults 0.01] [-work 2s] [-every 0] [-restart 1m]
//	    [-on sqlite,postgres] [-profile FILE] [-out out/bench/fleet.json]
package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"eidetic/internal/fleet/ledger/pgtest"
	"eidetic/internal/fleet/member"
	"eidetic/internal/fleet/simulate"
	"eidetic/internal/rigs/benchtable"
)

func main() { benchtable.Main("bench", run) }

// goal is for the 99th percentile of claims, in ms.
const goal = 100

func run(ctx context.Context) error {
	o := simulate.Options{
		Delay: 5 * time.Second, Series: 50, Lease: 30 * time.Second,
		Times: member.Times{Describe: 30 * time.Second, Claim: 25 * time.Second, Call: 30 * time.Second}, // those of a box
		Log:   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}
	flag.IntVar(&o.Boxes, "boxes", 200, "simulated boxes")
	flag.IntVar(&o.Runs, "runs", 20_000, "to be carried out")
	flag.IntVar(&o.Needs, "needs", 300, "distinct needs of their parts")
	flag.Float64Var(&o.Faults, "faults", 0.01, "share of calls that are dropped, whose answers are, that are doubled, and that are delayed, each")
	flag.DurationVar(&o.Work, "work", 2*time.Second, "mean time that a box takes for a part")
	flag.DurationVar(&o.Restart, "restart", time.Minute, "between restarts of the head")
	flag.DurationVar(&o.Every, "every", 0, "mean time between two runs that are added; 0 adds them as fast as the head takes them")
	flag.Uint64Var(&o.Seed, "seed", 1, "of everything that is drawn by lot")
	on := flag.String("on", "sqlite,postgres", "databases, one after the other")
	cores := flag.Int("cores", 2, "processors that boxes and head share")
	profile := flag.String("profile", "", "file for a profile of processor time")
	out := flag.String("out", "out/bench/fleet.json", "file for the list of results")
	flag.Parse()
	if o.Boxes < 1 || o.Runs < 1 || o.Work < time.Millisecond || o.Faults < 0 || o.Faults > 0.2 {
		return fmt.Errorf("-boxes %d, -runs %d, -work %v, -faults %v: too small, or faults above 0.2", o.Boxes, o.Runs, o.Work, o.Faults)
	}
	runtime.GOMAXPROCS(*cores)
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
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "database\tclaims\tp50 ms\tp99\tmax\twoken\tp50 ms\tp99\tmax\tempty p99\tcalls/s\tprocessor ms a call\t"+
		"failed\truns/s\tdatabase MB\tmemory MB\trestarts\tgiven again\ttwice\tlost\t\n")
	var list []benchtable.Result
	for name := range strings.SplitSeq(*on, ",") {
		more, err := one(ctx, name, o, w)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, more...)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return benchtable.Write(*out, list)
}

// one simulates on one kind of database.
func one(ctx context.Context, name string, o simulate.Options, w *tabwriter.Writer) (list []benchtable.Result, err error) {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	o.Dir, o.Database = dir, filepath.Join(dir, "fleet.db")
	size := func() (int64, error) { return files(o.Database) }
	if name == "postgres" {
		server, err := pgtest.Start(ctx, dir, pgtest.Lasting)
		if err != nil {
			return nil, err
		}
		defer func() { _ = server.Stop() }()
		if o.Database, err = server.Database(ctx); err != nil {
			return nil, err
		}
		size = func() (int64, error) { return postgresSize(ctx, o.Database) }
	} else if name != "sqlite" {
		return nil, errors.New("use sqlite or postgres")
	}
	o.Tick = func(r simulate.Result) {
		fmt.Fprintf(os.Stderr, "\r%s: %d of %d runs have ended, %d restarts, load %s ", name, r.Ended, o.Runs, r.Restarts, load())
	}
	// What an earlier database needed does not count. Where the kernel cannot forget it, it counts.
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	before := processor()
	r, err := simulate.Run(ctx, o)
	fmt.Fprintln(os.Stderr)
	if err != nil {
		return nil, err
	}
	bytes, err := size()
	if err != nil {
		return nil, err
	}
	memory, err := peakMemory()
	if err != nil {
		return nil, err
	}
	each := (processor() - before).Seconds() * 1e3 / float64(r.Calls)
	p50, p99, most, empty := share(r.Claims, 0.5), share(r.Claims, 0.99), share(r.Claims, 1), share(r.Empty, 0.99)
	pace, calls := float64(o.Runs)/r.Took.Seconds(), float64(r.Calls)/r.Took.Seconds()
	fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.0f\t", name, len(r.Claims), p50, p99, most)
	fmt.Fprintf(w, "%d\t%.1f\t%.1f\t%.0f\t%.1f\t", len(r.Woken), share(r.Woken, 0.5), share(r.Woken, 0.99), share(r.Woken, 1), empty)
	fmt.Fprintf(w, "%.0f\t%.1f\t%d\t%.0f\t%.0f\t%.0f\t", calls, each, r.Failed, pace, float64(bytes)/1e6, memory)
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t\n", r.Restarts, r.Again, r.Twice, r.Lost)
	what := fmt.Sprintf("%s, %d boxes, %d runs: ", name, o.Boxes, o.Runs)
	return []benchtable.Result{
		benchtable.Less(what+"claims, 50th percentile", p50, "ms"),
		benchtable.Less(what+"claims, 99th percentile", p99, "ms").Aim(goal),
		benchtable.Less(what+"claims that waited, 99th percentile", share(r.Woken, 0.99), "ms"),
		benchtable.More(what+"calls", calls, "1/s"),
		benchtable.Less(what+"processor time a call, head and box, without a database server", each, "ms"),
		benchtable.More(what+"runs that ended", pace, "1/s"),
		benchtable.Less(what+"database", float64(bytes)/1e6, "MB"),
		benchtable.Less(what+"memory, with the boxes", memory, "MB"),
		benchtable.Less(what+"done twice", float64(r.Twice), "").Aim(0),
		benchtable.Less(what+"lost", float64(r.Lost), "").Aim(0),
	}, nil
}

// share is a quantile in ms, of no times 0.
func share(times []time.Duration, q float64) float64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[int(q*float64(len(times)-1))].Seconds() * 1e3
}

// files is the size of a SQLite database with what belongs to it.
func files(database string) (sum int64, err error) {
	all, err := filepath.Glob(database + "*")
	if err != nil {
		return 0, err
	}
	for _, name := range all {
		info, err := os.Stat(name)
		if err != nil {
			return 0, err
		}
		sum += info.Size()
	}
	return sum, nil
}

// processor is the processor time that this process has taken, boxes included.
func processor() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// load is that of the last minute, of all that the machine does.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg") // a kernel without it has none to show
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

func postgresSize(ctx context.Context, database string) (size int64, err error) {
	db, err := sql.Open("pgx", database)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return size, db.QueryRowContext(ctx, `SELECT pg_database_size(current_database())`).Scan(&size)
}

// peakMemory is the most that this process has had, in MB, boxes included.
func peakMemory() (float64, error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if rest, ok := strings.CutPrefix(in.Text(), "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 64)
			return kb * 1024 / 1e6, err
		}
	}
	return 0, errors.New("the kernel does not say how much memory the process has had")
}
