// Command drift makes a real box slower, and prints after how many reference runs its head calls it drifting. A head
// and a box run as processes of their own; the reference is a page that computes for about a second. Some readings
// after the baseline, busy threads take a share of each processor, so that everything on the box lasts longer.
//
//	go run ./internal/fleet/bench/drift [-baseline 12] [-share 0.05] [-most 10] [-trials 6] [-out out/bench/drift]
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/benchrig"
	"eidetic/netlab/archive"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "drift:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	baseline := flag.Int("baseline", 12, "readings before the box is made slower")
	share := flag.Float64("share", 0.05, "of each processor that busy threads take from then on")
	most := flag.Int("most", 10, "readings after that")
	trials := flag.Int("trials", 6, "trials of a reading")
	out := flag.String("out", "out/bench/drift", "folder for the programs' data; what is there is removed")
	flag.Parse()
	if *baseline < 1 || *most < 1 || *trials < 2 || !(*share >= 0 && *share < 0.9) {
		return errors.New("give -baseline and -most at least 1, -trials at least 2, -share 0 to 0.9")
	}
	if err := os.RemoveAll(*out); err != nil {
		return err
	}
	appliance, err := benchrig.Build(ctx, *out)
	if err != nil {
		return err
	}
	site := filepath.Join(*out, "busy.wacz")
	if err := record(site); err != nil {
		return err
	}
	head, err := start(ctx, appliance, "head", filepath.Join(*out, "head"))
	if err != nil {
		return err
	}
	box, err := start(ctx, appliance, "serve", filepath.Join(*out, "box"))
	if err != nil {
		return err
	}
	code, err := head.MakeJoinCode(ctx)
	if err != nil {
		return err
	}
	if _, err := box.JoinFleet(ctx, code.Link, "lab-1"); err != nil {
		return err
	}
	if err := refer(ctx, head, site, *trials); err != nil {
		return err
	}
	for n := 1; n <= *baseline+*most; n++ {
		if n == *baseline+1 {
			burn(ctx, *share)
			fmt.Printf("From here on busy threads take %.0f %% of each processor.\n", 100**share)
		}
		health, err := measure(ctx, head, n)
		if err != nil {
			return err
		}
		if (health == "drifting" || health == "bad") && n > *baseline {
			fmt.Printf("Called %s with reading %d after the change.\n", health, n-*baseline)
			return nil
		}
	}
	fmt.Printf("Not called within %d readings.\n", *most)
	return nil
}

// page computes for about a second, then shows itself.
const page = `<!doctype html><link rel="icon" href="data:,"><title>busy</title><body style="margin:0"><div style="height:300px"></div><script>
function compute() { let x = 1; for (let i = 0; i < 1.5e8; i++) x = Math.imul(x, 16807) + i | 0; return x }
document.querySelector("div").style.background = compute() ? "orange" : "navy"
</script>`

const address = "https://busy.example/"

func record(file string) error {
	wall := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
	w, err := archive.Create(file, archive.CreateOptions{Software: "drift", Wall: wall})
	if err != nil {
		return err
	}
	err = w.Add(&lab.Exchange{
		Wall: wall, Method: http.MethodGet, URL: address, Protocol: "http/1.1", TLS: "tls/1.3", Status: http.StatusOK, Reason: "OK",
		Response: lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: "text/html"}}, Body: []byte(page)},
		Chunks:   []lab.Chunk{{Bytes: len(page)}},
	})
	return errors.Join(err, w.Close())
}

// start starts a head or a box, which ends with ctx, and returns a client of its panel.
func start(ctx context.Context, appliance, command, data string) (*client.Client, error) {
	cmd := exec.CommandContext(ctx, appliance, command, "--data", data, "--listen", "127.0.0.1:0")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGTERM}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread() // the kernel ends the process when the thread that started it ends
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "The panel is at "); ok {
			go func() {
				for lines.Scan() {
				}
				_ = cmd.Wait() // how it ended is in its log
			}()
			token, err := os.ReadFile(filepath.Join(data, "token"))
			if err != nil {
				return nil, err
			}
			return client.New(client.Config{
				Base: strings.TrimRight(strings.Fields(at)[0], "/"), Token: client.NewSecret(strings.TrimSpace(string(token))),
			}), nil
		}
	}
	return nil, fmt.Errorf("appliance %s ended: %w", command, cmd.Wait())
}

// refer sets the reference. It is measured when this program asks for it.
func refer(ctx context.Context, head *client.Client, site string, trials int) error {
	name, err := head.UploadArchive(ctx, site, func(string, int64) {})
	if err != nil {
		return err
	}
	q := &client.Request{Plan: lab.Plan{Trials: trials, Still: 0.3, Limit: 30, Seed: 7, Arm: lab.Arm{Page: address, Archive: name}}}
	_, err = head.SetReference(ctx, q, "24h")
	return err
}

// measure has the box measure the reference, and prints what came of it.
func measure(ctx context.Context, head *client.Client, n int) (health string, err error) {
	id, err := head.MeasureReference(ctx, "lab-1", "virtual")
	for refused := new(client.RefusedError); errors.As(err, &refused) && refused.Status == http.StatusConflict; {
		if err = lab.Wait(ctx, time.Second); err == nil { // it measures by itself just now
			id, err = head.MeasureReference(ctx, "lab-1", "virtual")
		}
	}
	if err != nil {
		return "", err
	}
	if _, err := head.Await(ctx, id); err != nil {
		return "", err
	}
	var all client.BoxReadings
	for { // the reading is judged after the run has ended
		if all, err = head.Readings(ctx, "lab-1", "virtual"); err != nil {
			return "", err
		}
		if len(all.Readings) > 0 && all.Readings[len(all.Readings)-1].Run == id {
			break
		}
		if err := lab.Wait(ctx, 200*time.Millisecond); err != nil {
			return "", err
		}
	}
	last := all.Readings[len(all.Readings)-1]
	fmt.Printf("%2d  %-9s", n, all.Health)
	for _, l := range last.Levels {
		fmt.Printf("  %s %.1f %s", l.Metric, l.Median, l.Unit)
	}
	fmt.Printf("  thrown %.0f %%  %s\n", last.Thrown, all.Why)
	return all.Health, nil
}

// burn takes a share of each processor, before all others, until ctx ends.
func burn(ctx context.Context, share float64) {
	for cpu := range runtime.NumCPU() {
		go func() {
			runtime.LockOSThread()
			var set unix.CPUSet
			set.Set(cpu)
			if err := errors.Join(unix.SchedSetaffinity(0, &set), unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20)); err != nil {
				fmt.Fprintln(os.Stderr, "drift: a busy thread is not before all others:", err)
			}
			for began, used := time.Now(), time.Duration(0); ctx.Err() == nil; {
				if owed := time.Duration(share*float64(time.Since(began))) - used; owed > 0 {
					for from := time.Now(); time.Since(from) < owed; {
					}
					used += owed
				}
				time.Sleep(5 * time.Millisecond)
			}
		}()
	}
}
