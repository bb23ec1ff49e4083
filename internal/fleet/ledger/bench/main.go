// Command bench lets 200 simulated boxes carry out 20,000 runs through one ledger, over a network that drops, doubles
// and delays calls, while the ledger is closed and opened again every minute. It prints how long claims took, what the
// database and the process weigh, and whether a run was done twice or lost, and writes out/bench/fleet.json.
//
//	go run ./internal/fleet/ledger/bench [-boxes 200] [-runs 20000] [-needs 300] [-faults 0.01] [-work 2s] [-restart 1m]
//	    [-on sqlite,postgres] [-out out/bench/fleet.json]
package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"eidetic/internal/benchtable"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/fleet/ledger/pgtest"
	"eidetic/internal/fleet/ledger/simulate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// goal is for the 99th percentile of claims, in ms.
const goal = 100

func run(ctx context.Context) error {
	o := simulate.Options{Delay: 5 * time.Second, Series: 50}
	flag.IntVar(&o.Boxes, "boxes", 200, "simulated boxes")
	flag.IntVar(&o.Runs, "runs", 20_000, "to be carried out")
	flag.IntVar(&o.Needs, "needs", 300, "distinct needs of their parts")
	flag.Float64Var(&o.Faults, "faults", 0.01, "share of calls that are dropped, whose answers are, that are doubled, and that are delayed, each")
	flag.DurationVar(&o.Work, "work", 2*time.Second, "mean time that a box takes for a part")
	flag.DurationVar(&o.Restart, "restart", time.Minute, "between restarts of the ledger")
	flag.Uint64Var(&o.Seed, "seed", 1, "of everything that is drawn by lot")
	on := flag.String("on", "sqlite,postgres", "databases, one after the other")
	cores := flag.Int("cores", 2, "processors that boxes and ledger share")
	out := flag.String("out", "out/bench/fleet.json", "file for the list of results")
	flag.Parse()
	if o.Boxes < 1 || o.Runs < 1 || o.Work < time.Millisecond || o.Faults < 0 || o.Faults > 0.2 {
		return fmt.Errorf("-boxes %d, -runs %d, -work %v, -faults %v: too small, or faults above 0.2", o.Boxes, o.Runs, o.Work, o.Faults)
	}
	runtime.GOMAXPROCS(*cores)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "database\tclaims\tp50 ms\tp99 ms\tmax ms\tempty p99\truns/s\tdatabase MB\tmemory MB\trestarts\tgiven again\ttwice\tlost\t\n")
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
	database := filepath.Join(dir, "fleet.db")
	size := func() (int64, error) { return files(dir) }
	if name == "postgres" {
		server, err := pgtest.Start(ctx, dir, pgtest.Lasting)
		if err != nil {
			return nil, err
		}
		defer func() { _ = server.Stop() }()
		if database, err = server.Database(ctx); err != nil {
			return nil, err
		}
		size = func() (int64, error) { return postgresSize(ctx, database) }
	} else if name != "sqlite" {
		return nil, errors.New("use sqlite or postgres")
	}
	o.Open = func(ctx context.Context, assemble func(context.Context, ledger.Run) (ledger.Assembled, error)) (*ledger.Ledger, error) {
		log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
		return ledger.Open(ctx, ledger.Config{Database: database, Lease: 30 * time.Second, Assemble: assemble, Log: log})
	}
	o.Tick = func(r simulate.Result) {
		fmt.Fprintf(os.Stderr, "\r%s: %d of %d runs have ended, %d restarts ", name, r.Ended, o.Runs, r.Restarts)
	}
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
	p50, p99, most, empty := share(r.Claims, 0.5), share(r.Claims, 0.99), share(r.Claims, 1), share(r.Empty, 0.99)
	pace := float64(o.Runs) / r.Took.Seconds()
	fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.0f\t%.1f\t%.0f\t%.0f\t%.0f\t%d\t%d\t%d\t%d\t\n",
		name, len(r.Claims), p50, p99, most, empty, pace, float64(bytes)/1e6, memory, r.Restarts, r.Again, r.Twice, r.Lost)
	what := fmt.Sprintf("%s, %d boxes, %d runs: ", name, o.Boxes, o.Runs)
	return []benchtable.Result{
		benchtable.Less(what+"claims, 50th percentile", p50, "ms"),
		benchtable.Less(what+"claims, 99th percentile", p99, "ms").Aim(goal),
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

func files(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
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
