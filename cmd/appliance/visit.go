package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"eidetic/internal/device"
	"eidetic/internal/isolate"
	"eidetic/internal/job"
	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/dns"
	"eidetic/netlab/inject"
	"eidetic/netlab/link"
	"eidetic/netlab/proxy"
	"eidetic/netlab/replay"

	mdns "github.com/miekg/dns"
)

// visitJob opens pages in a virtual device, recording or replaying. It is what
// record and replay ask of their half inside namespaces.
type visitJob struct {
	Record       bool
	HTTP3        bool // look for it first
	Archive      string
	Pages        []string
	Still, Limit time.Duration
	Seed         uint64
	// These are of a recording.
	Resolver netip.AddrPort
	Roots    string
	// These are of a replay.
	Timing, Link string

	served func(lab.Served) // hears of each request, outside
}

// The descriptors that the inside is given.
const (
	visitServed = 3 + iota // takes lab.Served as JSON
	visitDials
)

// runVisit starts the inside and waits for it.
func runVisit(ctx context.Context, v visitJob) error {
	if err := checkMachine(ctx); err != nil {
		return cannot(err)
	}
	var err error
	if v.Archive, err = realPath(v.Archive); err != nil {
		return usage(fmt.Errorf("--archive: %w", err))
	}
	if v.Record && !v.Resolver.IsValid() {
		if v.Resolver, err = systemResolver(); err != nil {
			return cannot(err)
		}
	}
	in, err := json.Marshal(v)
	if err != nil {
		return err
	}
	outside, inside, err := isolate.DialSockets()
	if err != nil {
		return cannot(err)
	}
	defer inside.Close()
	if v.Record {
		go isolate.ServeDials(ctx, outside, new(net.Dialer).DialContext)
	} else {
		_ = outside.Close() // a replay reaches nobody
	}
	read, write, err := os.Pipe()
	if err != nil {
		return cannot(err)
	}
	defer read.Close()
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for d := json.NewDecoder(read); ; {
			var s lab.Served
			if d.Decode(&s) != nil {
				return // the pipe's end is the inside's
			}
			if v.served != nil {
				v.served(s)
			}
		}
	}()
	err = isolate.Run(ctx, []string{"visit", string(in)}, write, inside)
	_ = write.Close() // the inside's copy is closed with it
	<-heard
	if err != nil {
		return ended(ctx, err)
	}
	return nil
}

// realPath resolves the folder of a file that need not exist: inside, only
// what really is there can be seen.
func realPath(path string) (string, error) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	dir, err = filepath.Abs(dir)
	return filepath.Join(dir, filepath.Base(path)), err
}

// systemResolver is the name server that this machine asks.
func systemResolver() (netip.AddrPort, error) {
	resolver, err := dns.SystemResolver(dns.ResolvConf)
	if err != nil {
		err = fmt.Errorf("%w; say which with --resolver", err)
	}
	return resolver, err
}

// VisitCmd is the half of record and replay that runs in namespaces.
type VisitCmd struct {
	Job string `arg:""`
}

// Run sets the device up, opens the pages, and takes it down.
func (c *VisitCmd) Run(ctx context.Context, std *streams) error {
	if os.Getpid() != 1 {
		return usage(errors.New("visit is the own half of other commands: use appliance record or appliance replay"))
	}
	var v visitJob
	if err := json.Unmarshal([]byte(c.Job), &v); err != nil {
		return usage(err)
	}
	log := slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := v.carryOut(ctx, newProgress(std.err), log); err != nil {
		if ctx.Err() != nil {
			return &exitError{status: exitCannot} // the outer half says that it was interrupted
		}
		return cannot(err)
	}
	return nil
}

func (v *visitJob) carryOut(ctx context.Context, bar *progress, log *slog.Logger) error {
	if err := isolate.Mount(isolate.Mounts{Keep: []string{filepath.Dir(v.Archive)}, Resolver: device.Gateway().String(), TempSize: tempSize}); err != nil {
		return err
	}
	config := job.VirtualConfig{Forwarder: linkForwarder(), Log: log}
	if v.Record {
		dialer, err := isolate.NewDialer(os.NewFile(visitDials, "outside"))
		if err != nil {
			return err
		}
		defer dialer.Close()
		config.Upstream = func(context.Context) (*proxy.UpstreamConfig, error) {
			roots, err := trusted(v.Roots)
			return &proxy.UpstreamConfig{
				Resolver: v.Resolver, Roots: roots, DialContext: dialer.DialContext,
				DialPacket: func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "udp", addr) },
			}, err
		}
	}
	rig, err := job.NewVirtual(ctx, config)
	if err != nil {
		return err
	}
	defer rig.Close()
	visit := &visit{visitJob: v, rig: rig, bar: bar, lines: json.NewEncoder(os.NewFile(visitServed, "served"))}
	if v.Record {
		return visit.record(ctx)
	}
	return visit.replay(ctx)
}

// visit is a visitJob under way.
type visit struct {
	*visitJob
	rig   *job.Virtual
	bar   *progress
	lines *json.Encoder
	done  atomic.Bool // the page said so
}

func (v *visit) annotate(a replay.Annotation) {
	if a.Name == "done" {
		v.done.Store(true)
	}
}

func (v *visit) record(ctx context.Context) error {
	var offered []string
	if v.HTTP3 {
		v.bar.say("Looking for who offers HTTP/3; what is recorded comes after.")
		var err error
		if offered, err = v.lookForHTTP3(ctx); err != nil {
			return err
		}
	}
	return v.recordInto(ctx, v.Archive, offered)
}

// lookForHTTP3 records the pages once, for nothing but that.
func (v *visit) lookForHTTP3(ctx context.Context) ([]string, error) {
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

// offersHTTP3 are the hosts of a recording that say they speak HTTP/3 on port
// 443, in Alt-Svc or an HTTPS record.
func offersHTTP3(a *archive.Archive) []string {
	offers := map[string]bool{}
	for _, e := range a.Exchanges() {
		u, err := url.Parse(e.URL)
		if err != nil || u.Scheme != "https" || u.Port() != "" {
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
			rr, err := mdns.NewRR(line)
			if record, ok := rr.(*mdns.HTTPS); err == nil && ok {
				for _, kv := range record.Value {
					if alpn, ok := kv.(*mdns.SVCBAlpn); ok && slices.Contains(alpn.Alpn, "h3") {
						offers[d.Name] = true
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(offers))
}

// recordInto records the pages. With hosts that offer HTTP/3 the browser speaks
// it with those of them whose origins do.
func (v *visit) recordInto(ctx context.Context, path string, offered []string) error {
	wall := time.Now()
	w, err := archive.Create(path, archive.CreateOptions{Software: versionLine(), Wall: wall, Seed: v.Seed, PageDate: wall})
	if err != nil {
		return err
	}
	recorder, err := v.rig.Network.Record(ctx, w, replay.RecordOptions{
		Wall: time.Now, Inject: inject.Options{Seed: v.Seed, Date: wall}, Annotate: v.annotate,
	})
	if err != nil {
		return errors.Join(err, w.Discard())
	}
	v.rig.Network.AskHTTP3(offered)
	if hosts := v.rig.Network.HTTP3Hosts(); len(hosts) > 0 {
		v.bar.say("HTTP/3 with %s", strings.Join(hosts, ", "))
	} else if len(offered) > 0 {
		v.bar.say("%s offered HTTP/3, and did not answer by it", strings.Join(offered, ", "))
	}
	for _, page := range v.Pages {
		if err = w.AddPage(archive.Page{URL: page, Wall: time.Now()}); err != nil {
			break
		}
		if err = v.open(ctx, page, recorder.Stats); err != nil {
			break
		}
	}
	v.rig.Network.Disarm()
	if err = errors.Join(err, recorder.Wait()); err != nil {
		return errors.Join(err, w.Discard())
	}
	return w.Close()
}

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
	var mu sync.Mutex
	var writing error
	log := func(s lab.Served) { // the outer half reads at once
		mu.Lock()
		defer mu.Unlock()
		writing = errors.Join(writing, v.lines.Encode(s))
	}
	for _, page := range v.Pages {
		// A session of its own: each browser is a device that was never here.
		session, serr := v.rig.Network.Replay(ctx, a, replay.Options{
			Seed: v.Seed, Timing: timing, Wall: time.Now(), Annotate: v.annotate, Log: log,
		})
		if err = serr; err == nil {
			err = v.open(ctx, page, session.Stats)
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

// look is how often a page's traffic is looked at.
const look = 50 * time.Millisecond

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
			v.bar.say("stopping the browser: %v", err)
		}
	}()
	begun := time.Now()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		s := stats()
		asked, still := s.Requests-before, lab.Monotonic().Sub(s.LastActivity)
		switch {
		case asked > 0 && (s.InFlight == 0 || v.done.Load()) && still >= v.Still:
			v.bar.say("%s: %d requests in %.1f s", page, asked, (time.Since(begun) - still).Seconds())
			return nil
		case time.Since(begun) < v.Limit:
		case asked == 0:
			return fmt.Errorf("%s: the browser has asked for nothing in %v", page, v.Limit)
		default:
			v.bar.say("%s: %d requests, and still %d under way after %v; going on", page, asked, s.InFlight, v.Limit)
			return nil
		}
	}
}
