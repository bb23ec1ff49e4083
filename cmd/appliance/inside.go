package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"eidetic/internal/device"
	"eidetic/internal/experiment"
	"eidetic/internal/isolate"
	"eidetic/internal/job"
	"eidetic/internal/lab"
	"eidetic/internal/samplesite"
	"eidetic/netlab/link"
	"eidetic/netlab/proxy"
)

// InsideCmd carries out a plan on a virtual device, in namespaces of its own.
type InsideCmd struct {
	Job string `arg:""`
}

// insideJob is what the outer half asks for.
type insideJob struct {
	ID   string // of the run
	Plan lab.Plan
	Out  string // the store
	// Connections are shaped instead of packets.
	Connections bool
	// Origins says who can be recorded: the sample site, started for it; whom
	// the outside can reach; or nobody.
	Origins string
	// Resolver and Roots are for origins outside: their name server, and PEM
	// certificates to trust besides the system's.
	Resolver netip.AddrPort
	Roots    string
	// News goes to a service, as JSON, instead of to a person.
	News bool
}

// Who can be recorded.
const (
	originsNone    = ""
	originsSample  = "sample"
	originsOutside = "outside"
)

// The descriptors that the outer half passes to an inside that tells it News.
const (
	newsFile = 3 + iota
	dialFile
)

// tempSize bounds what browsers and sockets may take of RAM.
const tempSize = 4 << 30

// Run sets the lab up, carries out the plan, and takes the lab down.
func (c *InsideCmd) Run(ctx context.Context, std *streams) error {
	if os.Getpid() != 1 {
		return usage(fmt.Errorf("inside is the own half of other commands: use appliance demo"))
	}
	var in insideJob
	if err := json.Unmarshal([]byte(c.Job), &in); err != nil {
		return usage(err)
	}
	bar := newProgress(std.out)
	defer bar.close()
	news := job.News{Say: func(text string) { bar.say("%s", text) }, Step: bar.step}
	var service *newsWriter
	if in.News {
		service = newNewsWriter(os.NewFile(newsFile, "news"))
		news = service.news()
	}
	err := in.carryOut(ctx, news, slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if ctx.Err() != nil {
		return &exitError{status: exitCannot} // the outer half says that it was interrupted
	}
	if err != nil && in.News {
		service.write(tidings{Error: err.Error()})
		return &exitError{status: exitCannot}
	}
	return err
}

// carryOut does the plan on a virtual device.
func (in insideJob) carryOut(ctx context.Context, news job.News, log *slog.Logger) error {
	// What else this machine does is seen in the processes' folder of the outside,
	// which stays open below the inside's own.
	processes := ""
	if outside, err := os.Open("/proc"); err == nil {
		defer outside.Close()
		processes = fmt.Sprintf("/proc/self/fd/%d", outside.Fd())
	}
	if err := isolate.Mount(isolate.Mounts{Keep: keep(in), Resolver: device.Gateway().String(), TempSize: tempSize}); err != nil {
		return err
	}
	config := job.VirtualConfig{Forwarder: linkForwarder(), ShapeConnections: in.Connections, Log: log}
	switch in.Origins {
	case originsSample:
		o := &origins{}
		if !in.Plan.Live { // a live run is to show what differs from load to load
			o.seed = &in.Plan.Seed
		}
		defer o.stop()
		config.Upstream, config.Sealed = o.start, o.stop
	case originsOutside:
		dialer, err := isolate.NewDialer(os.NewFile(dialFile, "outside"))
		if err != nil {
			return err
		}
		config.Upstream = in.outside(dialer)
		config.Sealed = func() { _ = dialer.Close() } // what is closed cannot be closed worse
	}
	rig, err := job.NewVirtual(ctx, config)
	if err != nil {
		return err
	}
	defer rig.Close()
	j := job.Job{
		ID: in.ID, Plan: in.Plan, Traces: link.OpenFile, // the outer half has decided which may be named
		Rig: rig.Rig, Root: in.Out, News: news, Log: log, Software: versionLine(), Processes: processes,
	}
	return j.Run(ctx)
}

// keep names the folders that the inside needs of the outside.
func keep(in insideJob) []string {
	dirs := []string{in.Out}
	for _, a := range in.Plan.Arms() {
		if a.Archive != "" {
			dirs = append(dirs, filepath.Dir(a.Archive))
		}
		dirs = append(dirs, traceDirs(a.Link)...)
	}
	return dirs
}

// outside reaches origins through connections that the outer half makes.
func (in insideJob) outside(dialer *isolate.Dialer) func(context.Context) (*proxy.UpstreamConfig, error) {
	return func(context.Context) (*proxy.UpstreamConfig, error) {
		roots, err := trusted(in.Roots)
		return &proxy.UpstreamConfig{Resolver: in.Resolver, Roots: roots, DialContext: dialer.DialContext}, err
	}
}

// trusted is the system's pool with more certificates; nil is the system's alone.
func trusted(pem string) (*x509.CertPool, error) {
	if pem == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if !pool.AppendCertsFromPEM([]byte(pem)) {
		return nil, errors.New("the certificates to trust are not PEM")
	}
	return pool, nil
}

// tidings is one piece of news, as JSON.
type tidings struct {
	Say  string           `json:",omitempty"`
	Step *experiment.Step `json:",omitempty"`
	Film job.FilmNews     `json:",omitempty"`
	// Error is why the plan was not carried out.
	Error string `json:",omitempty"`
}

// newsWriter writes news for a service.
type newsWriter struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

// newNewsWriter takes over the file; nothing else that is started here gets it.
func newNewsWriter(f *os.File) *newsWriter {
	syscall.CloseOnExec(int(f.Fd()))
	return &newsWriter{encoder: json.NewEncoder(f)}
}

// write needs no error: a service that has gone takes this process with it.
func (w *newsWriter) write(t tidings) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.encoder.Encode(t)
}

func (w *newsWriter) news() job.News {
	return job.News{
		Say:  func(text string) { w.write(tidings{Say: text}) },
		Step: func(s experiment.Step) { s.Done = nil; w.write(tidings{Step: &s}) },
		Film: func(f job.FilmNews) { w.write(tidings{Film: f}) },
	}
}

// origins is the sample site in a process and a namespace of its own.
type origins struct {
	seed      *uint64 // what the site draws from, so that every recording is of the same page; nil is another one each time
	namespace *device.Namespace
	service   *device.Service
}

func (o *origins) start(ctx context.Context) (*proxy.UpstreamConfig, error) {
	addresses := map[netip.Addr]bool{samplesite.Resolver().Addr(): true}
	for _, a := range samplesite.Hosts() {
		addresses[a] = true
	}
	var list []netip.Addr
	for a := range addresses {
		list = append(list, a)
	}
	var err error
	if o.namespace, err = device.NewOrigins(list...); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "origins-")
	if err != nil {
		return nil, err
	}
	pem := filepath.Join(dir, "ca.pem")
	args := []string{"site", "--ca-out", pem}
	if o.seed != nil {
		args = append(args, "--seed", strconv.FormatUint(*o.seed, 10))
	}
	cmd := exec.Command("/proc/self/exe", args...)
	if o.service, err = o.namespace.StartService(ctx, "the sample site", cmd, "ready"); err != nil {
		return nil, err
	}
	roots, err := os.ReadFile(pem)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(roots) {
		return nil, fmt.Errorf("%s holds no certificate", pem)
	}
	return &proxy.UpstreamConfig{Resolver: samplesite.Resolver(), Roots: pool}, nil
}

// stop ends the origins for good and unplugs the uplink.
func (o *origins) stop() {
	if o.service != nil {
		o.service.Stop()
		o.service = nil
	}
	if o.namespace != nil {
		_ = device.Unplug(device.UplinkPort) // it is gone already when making it failed
		o.namespace.Close()
		o.namespace = nil
	}
}
