package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/run/device"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/experiment"
	"eidetic/internal/run/isolate"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
	"eidetic/netlab/link"
	"eidetic/netlab/proxy"
	"eidetic/netlab/replay"
	"eidetic/netlab/replay/match"

	"github.com/miekg/dns"
)

// VisitInside visits pages, as the outer half has handed over, in the namespaces that this
// process is the first of.
func VisitInside(ctx context.Context, in Inner) error {
	if os.Getpid() != 1 {
		return ErrNotInside
	}
	var v Visit
	if err := takeOver(&v); err != nil {
		return err
	}
	return v.carryOut(ctx, in)
}

// carryOut brings the device up, opens the pages, and takes the device down.
func (v *Visit) carryOut(ctx context.Context, in Inner) error {
	v.Reach.ownHosts() // before its file is covered
	keep := []string{filepath.Dir(v.Archive)}
	if v.Fill != "" {
		keep = append(keep, filepath.Dir(v.Fill))
	}
	if err := isolate.Mount(isolate.Mounts{Keep: keep, Resolver: device.Gateway().String(), TempSize: tempSize}); err != nil {
		return err
	}
	config := execute.VirtualConfig{Forwarder: in.Commands.Forwarder, Log: in.Log, NoSandbox: v.NoSandbox}
	if v.asksOrigins() {
		dialer, err := isolate.NewDialer(os.NewFile(visitDials, "outside"))
		if err != nil {
			return err
		}
		defer dialer.Close()
		v.Reach.dial = outsideDial(dialer)
		config.Upstream = func(context.Context) (*proxy.UpstreamConfig, error) { return v.Reach.through(dialer) }
	}
	rig, err := execute.NewVirtual(ctx, config)
	if err != nil {
		return err
	}
	defer rig.Close()
	for _, page := range v.Pages {
		if err := rig.Reach(page, nil); err != nil {
			return err
		}
	}
	visit := &visit{Visit: v, inner: in, rig: rig, lines: json.NewEncoder(os.NewFile(visitServed, "served"))}
	if v.Record {
		return visit.record(ctx)
	}
	return visit.replay(ctx)
}

// visit is a Visit in progress.
type visit struct {
	*Visit
	inner    Inner
	rig      *execute.Virtual
	lines    *json.Encoder
	done     atomic.Bool // the page called lab.done()
	problems execute.OriginProblems
	// dialogues counts what pages asked a person.
	dialogues atomic.Int64
}

// say tells the person a sentence.
func (v *visit) say(format string, args ...any) { v.inner.Say(fmt.Sprintf(format, args...)) }

// annotate gets the marks that a page sets, and what it asks a person.
func (v *visit) annotate(a replay.Annotation) {
	if a.Name == "done" {
		v.done.Store(true)
	}
	const most = 5 // a page may ask for ever
	if d, ok := execute.Dialogue(a); ok && v.dialogues.Add(1) <= most {
		v.say("%s: a page may wait for the answer, and nobody gives it here", d.Asked())
	}
}

// record records the pages into the archive.
func (v *visit) record(ctx context.Context) error {
	var offered []string
	if v.HTTP3 {
		v.say("Opening each page once, to find the hosts that offer HTTP/3; the recording comes after that.")
		var err error
		if offered, err = v.findHTTP3(ctx); err != nil {
			return err
		}
	}
	return v.recordInto(ctx, v.Archive, offered)
}

// findHTTP3 records the pages once, to find the hosts that offer HTTP/3.
func (v *visit) findHTTP3(ctx context.Context) ([]string, error) {
	dir, err := os.MkdirTemp("", "offers-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	trial := filepath.Join(dir, "offers.wacz")
	if err := v.recordInto(ctx, trial, nil); err != nil {
		return nil, err
	}
	a, err := archive.Open(trial)
	if err != nil {
		return nil, err
	}
	return offersHTTP3(a), nil
}

// offersHTTP3 returns the hosts of a recording that say, in Alt-Svc or in an HTTPS
// record, that they speak HTTP/3 on port 443.
func offersHTTP3(a *archive.Archive) []string {
	offers := map[string]bool{}
	for _, e := range a.Exchanges() {
		u := lab.ParseURL(e.URL)
		if u.Scheme != "https" || u.Port() != "" {
			continue
		}
		for _, f := range e.Response.Header {
			if strings.EqualFold(f.Name, "Alt-Svc") && strings.Contains(f.Value, `h3=":443"`) {
				offers[u.Hostname()] = true
			}
		}
	}
	for _, d := range a.DNS() {
		for _, line := range d.Records {
			rr, err := dns.NewRR(line)
			if record, ok := rr.(*dns.HTTPS); err == nil && ok {
				for _, kv := range record.Value {
					if alpn, ok := kv.(*dns.SVCBAlpn); ok && slices.Contains(alpn.Alpn, "h3") {
						offers[d.Name] = true
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(offers))
}

// recordInto records the pages. Of the hosts that offer HTTP/3, the browser speaks
// it with those whose origins answer by it.
func (v *visit) recordInto(ctx context.Context, path string, offered []string) error {
	wall := time.Now()
	w, err := archive.Create(path, archive.CreateOptions{Software: v.inner.Software, Wall: wall, Seed: v.Seed, PageDate: wall})
	if err != nil {
		return err
	}
	recorder, err := v.rig.Network.Record(ctx, w, replay.RecordOptions{
		Traceparent: v.Traceparent,
		Wall:        time.Now, Inject: inject.Options{Seed: v.Seed, Date: wall}, Annotate: v.annotate, Log: v.problems.Add,
	})
	if err != nil {
		return errors.Join(err, w.Discard())
	}
	v.rig.Network.AskHTTP3(offered)
	if hosts := v.rig.Network.HTTP3Hosts(); len(hosts) > 0 {
		v.say("HTTP/3 with %s", strings.Join(hosts, ", "))
	} else if len(offered) > 0 {
		v.say("%s offered HTTP/3, and did not answer by it", strings.Join(offered, ", "))
	}
	for _, page := range v.Pages {
		if err = w.AddPage(archive.Page{URL: page, Wall: time.Now()}); err != nil {
			break
		}
		if err = v.open(ctx, page, recorder.Stats); err != nil {
			break
		}
		others, problem := v.problems.Take(page)
		for _, o := range others {
			v.say("%s", o)
		}
		if err = v.Reach.hint(ctx, page, problem); err != nil {
			break
		}
	}
	v.rig.Network.Disarm()
	if err = errors.Join(err, recorder.Wait()); err != nil {
		return errors.Join(err, w.Discard())
	}
	return w.Close()
}

// replay opens the pages, each answered from the archive in a session of its own. What the archive lacks
// comes from the origins if the policy says so.
func (v *visit) replay(ctx context.Context) error {
	a, err := archive.Open(v.Archive)
	if err != nil {
		return err
	}
	timing, err := replay.ParseTiming(v.Timing)
	if err != nil {
		return err
	}
	profile, err := link.Parse(v.Link)
	if err != nil {
		return err
	}
	if err := v.rig.Network.SetLink(profile); err != nil {
		return err
	}
	o := replay.Options{Seed: v.Seed, Match: match.Policy(v.Match), Timing: timing, Miss: v.Miss, Annotate: v.annotate}
	var filled *archive.Writer
	if v.Miss == replay.MissFill {
		now := time.Now()
		if filled, err = archive.Create(v.Fill, archive.CreateOptions{Software: v.inner.Software, Wall: now, Seed: v.Seed}); err != nil {
			return fmt.Errorf("--fill: %w", err)
		}
		o.Fill = replay.NewView(filled, now)
	}
	err = v.replayPages(ctx, a, o)
	if filled == nil {
		return err
	}
	if filled.Count() == 0 {
		v.say("The recording lacked nothing: %s was not made", v.Fill)
		return errors.Join(err, filled.Discard())
	}
	v.say("%d exchanges that the recording lacked are in %s", filled.Count(), v.Fill)
	return errors.Join(err, filled.Close())
}

// replayPages opens the pages one after the other.
func (v *visit) replayPages(ctx context.Context, a *archive.Archive, o replay.Options) error {
	var mu sync.Mutex
	var writing error
	o.Log = func(s lab.Served) { // does not block for long: the outer half reads at once
		mu.Lock()
		defer mu.Unlock()
		writing = errors.Join(writing, v.lines.Encode(s))
	}
	var err error
	v.rig.Locale(a.Locale())
	for _, page := range v.Pages {
		// Each browser is a device that was never here, so it gets a session of its own.
		o.Wall = time.Now()
		session, serr := v.rig.Network.Replay(ctx, a, o)
		if err = serr; err == nil {
			err = v.open(ctx, page, session.Stats)
			v.rig.Network.Disarm()
			err = errors.Join(err, session.Wait())
		}
		if err != nil {
			break
		}
	}
	v.rig.Network.Disarm()
	mu.Lock()
	defer mu.Unlock()
	return errors.Join(err, writing)
}

// pollPeriod is how often a page's traffic is looked at.
const pollPeriod = 50 * time.Millisecond

// open starts a browser at a page and returns when the page is still.
func (v *visit) open(ctx context.Context, page string, stats func() replay.Stats) error {
	v.done.Store(false)
	before := stats().Requests
	life, err := v.rig.Device.Birth(ctx, page)
	if err != nil {
		return err
	}
	defer func() {
		if err := life.Stop(); err != nil {
			v.say("stopping the browser: %v", err)
		}
	}()
	begun := time.Now()
	atRest := experiment.Rest{MainThreads: v.rig.MainThreads}
	tick := time.NewTicker(pollPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := experiment.Crash(life); err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
		s, now := stats(), lab.Monotonic()
		asked, still := s.Requests-before, now.Sub(s.LastActivity)
		isQuiet := asked > 0 && (s.InFlight == 0 || v.done.Load())
		switch {
		case !isQuiet || still < v.Still/2:
			atRest.Moved()
		case still < v.Still:
			atRest.Begin(now)
		}
		switch {
		case isQuiet && still >= v.Still && (v.done.Load() || !atRest.IsBusy(now)):
			v.say("%s: %d requests in %.1f s", page, asked, (time.Since(begun) - still).Seconds())
			return nil
		case time.Since(begun) < v.Limit:
		case asked == 0:
			return fmt.Errorf("%s: the browser has asked for nothing in %v", page, v.Limit)
		case s.InFlight == 0:
			v.say("%s: %d requests, and the page still asked or computed after %v; going on", page, asked, v.Limit)
			return nil
		default:
			v.say("%s: %d requests, and still %d under way after %v; going on", page, asked, s.InFlight, v.Limit)
			return nil
		}
	}
}
