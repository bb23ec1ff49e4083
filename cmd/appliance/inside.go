package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"eidetic/internal/device"
	"eidetic/internal/isolate"
	"eidetic/internal/samplesite"
	"eidetic/netlab"
	"eidetic/netlab/ca"
	"eidetic/netlab/link"
	"eidetic/netlab/proxy"
)

// InsideCmd is the demo's inner half, which runs in namespaces of its own.
type InsideCmd struct {
	Job string `arg:""`
}

// insideJob is what the outer half asks for.
type insideJob struct {
	Trials       int
	Link         string
	Out          string
	Live         bool
	Archive      string // replay this one; "" records the sample site
	Page         string
	Still, Limit time.Duration
	Seed         uint64
}

// screenSize of the virtual device.
var screenSize = device.Screen{Width: 1280, Height: 720}

// tempSize bounds what browsers and sockets may take of RAM.
const tempSize = 4 << 30

// syncURL leads from the box's green page to a page under test.
func syncURL(page string) string { return "http://box.test/sync?next=" + queryEscape(page) }

// Run sets the lab up, hands it to the demo's steps, and takes it down.
func (c *InsideCmd) Run(ctx context.Context, std *streams) error {
	if os.Getpid() != 1 {
		return usage(fmt.Errorf("inside is the demo's own half: use appliance demo"))
	}
	var job insideJob
	if err := json.Unmarshal([]byte(c.Job), &job); err != nil {
		return usage(err)
	}
	if err := isolate.Mount(isolate.Mounts{
		Keep: keep(job), Resolver: device.Gateway().String(), TempSize: tempSize,
	}); err != nil {
		return cannot(err)
	}
	setup, err := newSetup(ctx, job, slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return cannot(err)
	}
	defer setup.close()
	err = runDemo(ctx, std, job, setup)
	if ctx.Err() != nil {
		return &exitError{status: exitCannot} // the outer half says that it was interrupted
	}
	return err
}

// keep names the folders that the inside needs of the outside.
func keep(job insideJob) []string {
	if job.Archive == "" {
		return []string{job.Out}
	}
	return []string{job.Out, filepath.Dir(job.Archive)}
}

// setup is the lab: origins, box and device.
type setup struct {
	log     *slog.Logger
	origins *origins
	network *netlab.Network
	device  *device.Virtual
	profile link.Profile
}

// newSetup brings everything up in the order of the packets: origins, box, device.
func newSetup(ctx context.Context, job insideJob, log *slog.Logger) (_ *setup, err error) {
	s := &setup{log: log}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.profile, err = link.Parse(job.Link); err != nil {
		return nil, err
	}
	if s.device, err = device.NewVirtual(ctx, screenSize); err != nil {
		return nil, err
	}
	var upstream *proxy.UpstreamConfig // without origins nobody can be contacted
	if job.Archive == "" {
		if s.origins, err = startOrigins(ctx); err != nil {
			return nil, err
		}
		upstream = &proxy.UpstreamConfig{Resolver: samplesite.Resolver(), Roots: s.origins.roots}
	}
	authority, err := ca.New(time.Now)
	if err != nil {
		return nil, err
	}
	const pem = "/tmp/box-ca.pem"
	if err := os.WriteFile(pem, authority.PEM(), 0o644); err != nil {
		return nil, err
	}
	if s.device.Browser, err = device.NewChromium(ctx, "/tmp", pem); err != nil {
		return nil, err
	}
	s.network, err = netlab.Start(ctx, netlab.Config{
		Gateway: device.Gateway(), Synthetic: device.Synthetic(), Routes: true,
		HTTPAddr: "0.0.0.0:80", HTTPSAddr: "0.0.0.0:443",
		DNSAddr:   netip.AddrPortFrom(device.Gateway(), 53).String(),
		ProxyAddr: netip.AddrPortFrom(device.Gateway(), 3128).String(),
		Port:      &netlab.Port{Device: device.DevicePort, Lab: device.InnerPort, Forwarder: linkForwarder()},
		CA:        authority, Upstream: upstream, Clock: clock, Log: log,
	})
	return s, err
}

func (s *setup) close() {
	if s.network != nil {
		s.network.Close()
	}
	if s.origins != nil {
		s.origins.stop()
	}
	if s.device != nil {
		s.device.Close()
	}
}

// origins is the sample site in a process and a namespace of its own.
type origins struct {
	namespace *device.Namespace
	service   *device.Service
	roots     *certPool
}

func startOrigins(ctx context.Context) (_ *origins, err error) {
	o := &origins{}
	defer func() {
		if err != nil {
			o.stop()
		}
	}()
	addresses := map[netip.Addr]bool{samplesite.Resolver().Addr(): true}
	for _, a := range samplesite.Hosts() {
		addresses[a] = true
	}
	var list []netip.Addr
	for a := range addresses {
		list = append(list, a)
	}
	if o.namespace, err = device.NewOrigins(list...); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "origins-")
	if err != nil {
		return nil, err
	}
	pem := filepath.Join(dir, "ca.pem")
	cmd := exec.Command("/proc/self/exe", "site", "--ca-out", pem)
	if o.service, err = o.namespace.StartService(ctx, "the sample site", cmd, "ready"); err != nil {
		return nil, err
	}
	o.roots, err = readPool(pem)
	return o, err
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
