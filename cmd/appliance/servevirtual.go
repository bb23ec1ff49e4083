package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"time"

	"eidetic/internal/experiment"
	"eidetic/internal/isolate"
	"eidetic/internal/job"
	"eidetic/internal/lab"
	"eidetic/internal/panel"
	"eidetic/netlab/dns"
)

type step = experiment.Step

// virtualDevice is a browser on this machine, in namespaces that are made for
// each run. It has no way to anybody but through the box, and the box none but
// the connections that this process makes for it while it records.
type virtualDevice struct {
	data     string
	resolver netip.AddrPort // of origins; the system's when it is not valid
	roots    string         // PEM, trusted besides the system's
	// check says what the machine lacks; it makes namespaces to see whether it may.
	check func(context.Context) error

	mu    sync.Mutex
	fine  time.Time // when check had nothing to say
	going bool      // whether a run goes on
}

// fineFor is how long a good answer of check holds.
const fineFor = time.Minute

func (v *virtualDevice) describe(ctx context.Context) panel.Device {
	d := panel.Device{Name: "virtual", Kind: "virtual", Ready: true, Screen: "a virtual screen of this machine"}
	if err := v.problem(ctx); err != nil {
		d.Ready, d.Problem = false, err.Error()
	}
	return d
}

// problem says what the machine lacks. Every page of the panel that is open asks
// every few seconds: while a run goes on, the machine is left in peace.
func (v *virtualDevice) problem(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.going || time.Since(v.fine) < fineFor {
		return nil
	}
	err := v.check(ctx)
	if err == nil {
		v.fine = time.Now()
	}
	return err
}

func (v *virtualDevice) goes(going bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.going = going
}

func (v *virtualDevice) carryOut(ctx context.Context, id string, p lab.Plan, news job.News) error {
	v.goes(true)
	defer v.goes(false)
	resolver, err := v.nameServer()
	if err != nil {
		return err
	}
	in, err := json.Marshal(insideJob{ID: id, Plan: p, Out: v.data, Origins: originsOutside, Resolver: resolver, Roots: v.roots, News: true})
	if err != nil {
		return err
	}
	outside, inside, err := isolate.DialSockets()
	if err != nil {
		return err
	}
	defer inside.Close()
	go isolate.ServeDials(ctx, outside, new(net.Dialer).DialContext)
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	heard := make(chan error, 1)
	go func() { heard <- hear(read, news) }()
	err = isolate.Run(ctx, []string{"inside", string(in)}, write, inside)
	write.Close()
	told := <-heard
	var exit *exec.ExitError
	if told != nil && errors.As(err, &exit) {
		return told
	}
	return err
}

// nameServer is whom the recorder asks for the addresses of origins.
func (v *virtualDevice) nameServer() (netip.AddrPort, error) {
	if v.resolver.IsValid() {
		return v.resolver, nil
	}
	resolver, err := dns.SystemResolver(dns.ResolvConf)
	if err != nil {
		err = fmt.Errorf("%w; set network.resolver in the configuration", err)
	}
	return resolver, err
}

// hear passes on what the inside tells, until it ends, and returns the error
// that it told of.
func hear(r *os.File, news job.News) (told error) {
	decoder := json.NewDecoder(r)
	for {
		var t tidings
		if err := decoder.Decode(&t); err != nil {
			return told // the pipe's end is the inside's
		}
		switch {
		case t.Error != "":
			told = errors.New(t.Error)
		case t.Step != nil:
			news.Step(*t.Step)
		case t.Film != "":
			news.Film(t.Film)
		case t.Say != "":
			news.Say(t.Say)
		}
	}
}
