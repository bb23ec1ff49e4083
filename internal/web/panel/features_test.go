package panel

import (
	"context"
	"crypto/tls"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/bisects"
	"eidetic/internal/box/credentials"
	"eidetic/internal/box/suites"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// setup is the panel of a test: what it is given by name. A feature of which nothing is given is not there.
type setup struct {
	Store       *store.Store
	Token       lab.Secret
	Credentials *credentials.Store
	TLS         *tls.Certificate
	Fingerprint string
	Version     string
	Hosts       []string

	Queue       Queue
	Boxes       Boxes
	Automation  *automation.Keeper
	Bisects     *bisects.Keeper
	Suites      *suites.Keeper
	Devices     func(context.Context) []Device
	PluggedIn   func(context.Context) []PluggedPart
	Links       []string
	Disk        func() (free, size int64, err error)
	Seats       Seats
	Errands     Errands
	Archives    Archives
	Settings    Settings
	System      System
	Backups     Backups
	Retainer    Retainer
	Fleet       Fleet
	Supporter   Supporter
	Certificate []byte
	Parts       func() []Part
}

func (s setup) config() Config {
	c := Config{
		Store: s.Store, Token: s.Token, Credentials: s.Credentials, TLS: s.TLS, Fingerprint: s.Fingerprint, Version: s.Version, Hosts: s.Hosts,
	}
	add := func(given bool, feature func() Module) {
		if given {
			c.Modules = append(c.Modules, feature())
		}
	}
	add(s.Queue != nil, func() Module { return WithRuns(s.Queue, nil, nil) })
	if own, ok := s.Queue.(*runqueue.Queue); ok {
		c.Modules = append(c.Modules, WithAnswers(own.Jobs))
	}
	add(s.Boxes != nil, func() Module { return WithBoxes(s.Boxes) })
	add(s.Automation != nil, func() Module { return WithAutomation(s.Automation) })
	add(s.Bisects != nil, func() Module { return WithBisects(s.Bisects) })
	add(s.Suites != nil, func() Module { return WithSuites(s.Suites) })
	add(s.Devices != nil && s.PluggedIn == nil, func() Module { return WithDevices(s.Devices, s.Links) })
	add(s.Devices != nil && s.PluggedIn != nil, func() Module { return WithDevices(s.Devices, s.Links, s.PluggedIn) })
	add(s.Disk != nil, func() Module { return WithDisk(s.Disk) })
	add(s.Seats != nil, func() Module { return WithSeats(s.Seats) })
	add(s.Errands != nil, func() Module { return WithErrands(s.Errands) })
	add(s.Archives != nil, func() Module { return WithArchives(s.Archives) })
	add(s.Settings != nil, func() Module { return WithSettings(s.Settings) })
	add(s.System != nil, func() Module { return WithSystem(s.System) })
	add(s.Backups != nil, func() Module { return WithBackups(s.Backups) })
	add(s.Retainer != nil, func() Module { return WithRetention(s.Retainer) })
	add(s.Fleet != nil, func() Module { return WithMembership(s.Fleet) })
	add(s.Supporter != nil, func() Module { return WithSupport(s.Supporter) })
	add(s.Certificate != nil, func() Module { return WithCertificate(s.Certificate) })
	add(s.Parts != nil, func() Module { return WithParts(s.Parts) })
	return c
}

func newPanel(s setup) (*Panel, error) { return New(s.config()) }
