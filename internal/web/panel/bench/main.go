// Command bench shows the panel to a crowd while it measures: it starts the appliance, and runs the recorded sample
// page by turns with nobody looking, and with many that follow the events and some that look at the device live. It
// prints what was lost of the trials' films, how much the first changes scatter, and how long the panel's answers took.
//
//	go run ./internal/web/panel/bench [-rounds 3] [-trials 5] [-followers 200] [-watchers 7] [-dir out/bench/panel]
//	    [-out out/bench/panel.json]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"eidetic/analysis/stats"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/benchrig"
	"eidetic/internal/rigs/benchtable"
	"eidetic/internal/run/seat"
)

func main() { benchtable.Main("bench", run) }

type bench struct {
	dir, base, token            string
	trials, followers, watchers int
	events, pictures, broken    atomic.Int64
}

func run(ctx context.Context) (err error) {
	b := &bench{}
	rounds := flag.Int("rounds", 3, "runs of each kind, by turns")
	flag.IntVar(&b.trials, "trials", 5, "of each run")
	flag.IntVar(&b.followers, "followers", 200, "connections that follow the events")
	flag.IntVar(&b.watchers, "watchers", lab.ShareOf(seat.MostViews), "of those that look at the device live")
	flag.StringVar(&b.dir, "dir", "out/bench/panel", "folder for the recording and the runs")
	out := flag.String("out", "out/bench/panel.json", "file for the list of results")
	flag.Parse()
	if *rounds < 1 || b.trials < 1 || b.followers < 0 || b.watchers < 0 || b.watchers > lab.ShareOf(seat.MostViews) {
		return fmt.Errorf("-rounds and -trials: at least 1; -followers: at least 0; -watchers: 0 … %d", lab.ShareOf(seat.MostViews))
	}
	appliance, err := benchrig.Build(ctx, filepath.Join(b.dir, "bin"))
	if err != nil {
		return err
	}
	recording := filepath.Join(b.dir, "recording.wacz")
	if err := benchrig.Record(ctx, appliance, recording); err != nil {
		return err
	}
	stop, err := b.serve(ctx, appliance)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := b.upload(ctx, recording); err != nil {
		return err
	}
	names := [2]string{"nobody looks", fmt.Sprintf("%d follow, %d watch", b.followers, b.watchers)}
	var trials [2][]*lab.Trial
	var waits [2][]float64
	for range *rounds {
		for kind := range names {
			done, took, err := b.round(ctx, kind == 1)
			if err != nil {
				return err
			}
			trials[kind], waits[kind] = append(trials[kind], done...), append(waits[kind], took...)
		}
	}
	var list []benchtable.Result
	for kind, name := range names {
		lost, valid, drawn, frames, interval := 0, 0, 0, 0, 0.0
		var firsts []float64
		for _, t := range trials[kind] {
			if v, ok := t.Value(metric.FirstChange.String()); ok && t.Valid {
				firsts = append(firsts, v)
			}
			lost, frames = lost+t.FramesLost, frames+t.Frames
			if t.Valid {
				valid++
			}
			if c := t.Capture; c != nil {
				drawn, interval = drawn+c.MissedDrawn, max(interval, c.IntervalP99)
			}
		}
		slices.Sort(waits[kind])
		p99 := stats.Quantile(waits[kind], 0.99)
		fmt.Printf("%s: %d of %d trials valid, %d of %d frames lost, %d ticks missed while the screen changed, ",
			name, valid, len(trials[kind]), lost, frames, drawn)
		fmt.Printf("99 %% of intervals within %.1f ms; %d answers of the panel, %.1f ms in the middle, 99 %% within %.1f ms\n",
			interval, len(waits[kind]), stats.Quantile(waits[kind], 0.5), p99)
		mean, sd := moments(firsts)
		fmt.Printf("  first visual change of %d valid trials: mean %.1f ms, standard deviation %.1f ms\n", len(firsts), mean, sd)
		list = append(list,
			benchtable.Less("standard deviation of the first visual change, "+name, sd, "ms"),
			benchtable.Less("frames lost, "+name, float64(lost), "frames").Aim(0),
			benchtable.Less("ticks missed while the screen changed, "+name, float64(drawn), "ticks").Aim(0),
			benchtable.Less("panel's answer in 99 %, "+name, p99, "ms").Aim(100))
	}
	fmt.Printf("the crowd got %d events and %d pictures; %d streams broke\n", b.events.Load(), b.pictures.Load(), b.broken.Load())
	return benchtable.Write(*out, list)
}

// serve starts the appliance; stop ends it.
func (b *bench) serve(ctx context.Context, appliance string) (stop func() error, err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return nil, err
	}
	b.base, b.token = "http://"+address, "a token of the benchmark's own"
	tokenFile := filepath.Join(b.dir, "token")
	if err := os.WriteFile(tokenFile, []byte(b.token+"\n"), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(b.dir, "serve.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c := exec.Command(appliance, "serve", "--listen", address, "--data", filepath.Join(b.dir, "data"), "--token-file", tokenFile)
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	stop = func() error { return errors.Join(c.Process.Signal(syscall.SIGTERM), <-ended) }
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		if answer, err := b.ask(ctx, http.MethodGet, "/api/v1/health", nil); err == nil {
			return stop, answer.Body.Close()
		}
		select {
		case err := <-ended:
			return nil, fmt.Errorf("the appliance ended: %w; see %s", err, log.Name())
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), stop())
		case <-ticker.C:
		}
	}
}

// ask asks the panel, and returns what is no error.
func (b *bench) ask(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, b.base+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+b.token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000)) // for the error alone
		return nil, errors.Join(fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text), answer.Body.Close())
	}
	return answer, nil
}

// read asks for a path, and reads the answer into a value; nil drops it.
func (b *bench) read(ctx context.Context, path string, into any) error {
	answer, err := b.ask(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if into == nil {
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

const archiveName = "sample.wacz"

func (b *bench) upload(ctx context.Context, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	answer, err := b.ask(ctx, http.MethodPut, "/api/v1/archives/"+archiveName, f)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// round carries out a run, and samples the panel's answers meanwhile.
func (b *bench) round(ctx context.Context, crowded bool) (trials []*lab.Trial, waits []float64, err error) {
	plan, err := json.Marshal(map[string]any{"page": benchrig.Page, "archive": archiveName, "trials": b.trials, "still_s": 0.5})
	if err != nil {
		return nil, nil, err
	}
	answer, err := b.ask(ctx, http.MethodPost, "/api/v1/runs", bytes.NewReader(plan))
	if err != nil {
		return nil, nil, err
	}
	var started struct{ ID string }
	if err := errors.Join(json.NewDecoder(answer.Body).Decode(&started), answer.Body.Close()); err != nil {
		return nil, nil, err
	}
	crowd, disperse := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer disperse()
	if crowded {
		for i := range b.followers {
			all.Go(func() { b.follow(crowd, time.Duration(i)*arrival) })
		}
		for range b.watchers {
			all.Go(func() { b.watch(crowd) })
		}
	}
	paths := []string{"/", "/api/v1/health", "/api/v1/runs", "/api/v1/runs/" + started.ID, "/api/v1/devices"}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for n := 0; ; n++ {
		began := time.Now()
		path := paths[n%len(paths)]
		if err := b.read(ctx, path, nil); err != nil {
			return nil, nil, err
		}
		waits = append(waits, float64(time.Since(began).Microseconds())/1e3)
		if n%len(paths) == 0 {
			var run lab.Run
			if err := b.read(ctx, "/api/v1/runs/"+started.ID, &run); err != nil {
				return nil, nil, err
			}
			switch run.State {
			case "done":
				return run.Trials, waits, nil
			case "queued", "running", "":
			default:
				return nil, nil, fmt.Errorf("run %s is %s: %s", started.ID, run.State, run.Error)
			}
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-ticker.C:
		}
	}
}

// arrival is after how long the next follower comes. Were they to come all at once, the panel would end the oldest of
// the connections that it does not know yet.
const arrival = 20 * time.Millisecond

// follow follows the events of all runs.
func (b *bench) follow(ctx context.Context, after time.Duration) {
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	answer, err := b.ask(ctx, http.MethodGet, "/api/v1/events", nil)
	if err != nil {
		b.failed(ctx)
		return
	}
	defer answer.Body.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := answer.Body.Read(buffer)
		b.events.Add(int64(strings.Count(string(buffer[:n]), "event: ")))
		if err != nil {
			b.failed(ctx)
			return
		}
	}
}

// failed counts a stream that did not end because the crowd went away.
func (b *bench) failed(ctx context.Context) {
	if ctx.Err() == nil {
		b.broken.Add(1)
	}
}

// watch looks at the device live, as its page does.
func (b *bench) watch(ctx context.Context) {
	conn, _, err := websocket.Dial(ctx, b.base+"/api/v1/devices/virtual/view", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + b.token}},
	})
	if err != nil {
		b.failed(ctx)
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(mostPicture)
	for {
		kind, _, err := conn.Read(ctx)
		if err == nil && kind == websocket.MessageBinary { // before the first trial there is none, which is no fault
			b.pictures.Add(1)
			err = conn.Write(ctx, websocket.MessageText, []byte("shown"))
		}
		if err != nil {
			b.failed(ctx)
			return
		}
	}
}

// mostPicture bounds a message of the live view.
const mostPicture = 64 << 20

// moments are the mean and the standard deviation.
func moments(values []float64) (mean, sd float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sd += (v - mean) * (v - mean) / float64(max(1, len(values)-1))
	}
	return mean, math.Sqrt(sd)
}
