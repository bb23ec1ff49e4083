package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"time"

	"eidetic/internal/rigs/samplesite"
)

// SiteCmd serves the sample shop in the foreground.
type SiteCmd struct {
	CAOut    string                `name:"ca-out" required:"" placeholder:"FILE" help:"Where to write the origins' root certificate, as PEM."`
	Address  map[string]netip.Addr `placeholder:"HOST=IP" help:"Serve a host on another address than its own (repeatable)."`
	Resolver netip.AddrPort        `default:"203.0.113.53:53" placeholder:"IP:PORT" help:"Where the name server listens (${default})."`
	Seed     *uint64               `placeholder:"N" help:"Draw prices, order and layout from this seed, so that the n-th load is the same each time the site is started; without it, no two are."`
	Slow     []string              `placeholder:"PART=+DURATION" help:"Add think time to a part, as a treatment does: hero=+200ms (repeatable; parts: api, css, document, font, hero, pictures, widget)."`
}

// Help is the example below the flags.
func (SiteCmd) Help() string {
	return `Inside a network namespace that has the addresses:

  ip link set lo up
  for a in 10 20 30 53; do ip address add 203.0.113.$a/32 dev lo; done
  appliance site --ca-out origin-root.pem

It prints "ready" when everything listens, and ends on SIGTERM.`
}

// Run serves until ctx ends.
func (c *SiteCmd) Run(ctx context.Context, std *streams) error {
	opt := samplesite.Options{Slow: map[string]time.Duration{}}
	for _, text := range c.Slow {
		part, extra, err := samplesite.ParseSlow(text)
		if err != nil {
			return usage(fmt.Errorf("--slow: %w", err))
		}
		opt.Slow[part] += extra
	}
	if c.Seed != nil {
		opt.Rand = rand.New(rand.NewPCG(*c.Seed, 0))
	}
	site, err := samplesite.New(opt)
	if err != nil {
		return cannot(err)
	}
	authority, err := samplesite.NewAuthority(time.Now())
	if err != nil {
		return cannot(err)
	}
	if err := os.WriteFile(c.CAOut, authority.RootPEM(), 0o644); err != nil {
		return cannot(fmt.Errorf("--ca-out: %w", err))
	}
	return samplesite.Serve(ctx, samplesite.Config{
		Site: site, Certificates: authority.Certificate, Addresses: c.Address, Resolver: c.Resolver,
		Ready: func() { fmt.Fprintln(std.out, "ready") },
	})
}
