package service

import (
	"context"
	"path/filepath"
	"time"

	"eidetic/image/box"
	"eidetic/internal/box/doctor"
	"eidetic/internal/fleet/member"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/run/errand"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/frequency"
	"eidetic/internal/run/seat"
	"eidetic/internal/web/panel"
	"eidetic/netlab/ca"
	"eidetic/netlab/link"
	"eidetic/systemd"
)

// boxService holds what the parts of a box's service have made.
type boxService struct {
	shared
	restart func() // stops the service, which is then started again

	waiting    *store.Queue // the file of the queue
	disk       *disk
	authority  *ca.Authority
	resumed    []string // runs that go on where the last process was cut off
	devices    *deviceList
	inPlace    *partList
	network    *ports
	pulse      *systemd.Pulse  // of the network
	runQueue   *runqueue.Queue // which carries the runs out
	membership *member.Keeper  // nil if its folder cannot be opened
	errands    *errand.Keeper
}

// parts are the box's, in the order of their start.
func (b *boxService) parts() []part {
	return append([]part{
		{name: "store of runs", start: b.openStore},
		{name: "queue of runs", start: b.openQueue},
		{name: "certificate authority", start: b.openAuthority},
		// In the background: the folder may hold many runs, and nobody waits for it.
		{name: "interrupted runs", start: b.resume, work: b.conclude},
		{name: "recordings", start: b.openRecordings},
		// The network stays until the runs that use it have ended.
		{name: "devices", start: b.findDevices, work: b.watchNetwork, untilStop: true},
		{name: "tokens", start: b.openTokens},
		{name: "runner", start: b.openRunner},
		{name: "errands", start: b.openErrands},
		{name: "workflows", start: b.openAutomation},
		{name: "bisects", start: b.openBisects},
		{name: "suites", start: func(context.Context) (func() error, error) { return nil, b.openSuites(nil) }},
		{name: "fleet", start: b.openMembership},
		{name: "retention", start: b.openRetention, work: b.workRetention},
		// All that runs need is there: they begin, and what asks for them does.
		{name: "runs", work: func(ctx context.Context) error { return b.runQueue.Work(ctx) }},
		{name: "automation", work: b.workAutomation},
		{name: "bisecting", work: b.workBisects},
		{name: "measuring suites", work: b.workSuites},
		{name: "membership", work: b.workMembership},
	}, b.panelParts(b.panelConfig)...)
}

func (b *boxService) openQueue(ctx context.Context) (stop func() error, err error) {
	queue, inMemory, err := openQueue(ctx, b.Data, b.Log)
	if err != nil {
		return nil, err
	}
	b.waiting, b.disk = queue, newDisk(b.Data, inMemory)
	b.disk.removeWriteTests()
	return queue.Close, nil
}

func (b *boxService) openAuthority(context.Context) (stop func() error, err error) {
	b.authority, err = ca.LoadOrCreate(filepath.Join(b.Data, "ca"), time.Now)
	return nil, err
}

func (b *boxService) resume(ctx context.Context) (stop func() error, err error) {
	b.resumed = resumeJobs(ctx, b.waiting, b.runs, b.Software, b.Log)
	return nil, nil
}

func (b *boxService) conclude(ctx context.Context) error {
	execute.ConcludeAll(ctx, b.runs, b.resumed, b.Log)
	return nil
}

// findDevices lists the devices; the networks of those that are plugged in come up in the background.
func (b *boxService) findDevices(context.Context) (stop func() error, err error) {
	reach := b.Config.Network.reach(b.Roots, b.listener.Addr())
	upstream, err := reach.Upstream()
	if err != nil {
		return nil, err
	}
	if b.pulse, err = b.Notifier.Subsystem("network"); err != nil {
		return nil, err
	}
	b.devices, b.inPlace = &deviceList{}, &partList{look: plugged(b.Log)}
	b.network = &ports{
		config: b.Config.Devices, data: b.Data, software: b.Software, authority: b.authority, upstream: upstream,
		forwarder: b.Commands.Forwarder, devices: b.devices, log: b.Log, root: root, known: map[string]*portDevice{},
		checker: b.checker, plugged: b.inPlace,
	}
	b.inside = b.network.prefixes
	if !box.Is(root) || len(doctor.Browsers()) > 0 { // few images of a box have a browser
		b.devices.add("virtual", &virtualDevice{
			data: b.Data, reach: reach, commands: b.Commands, check: doctor.CheckVirtualDevice,
			noSandbox: b.Config.Virtual.NoSandbox, browsers: b.Config.Browsers, apps: b.Config.Apps,
			seat: seat.Seat{Live: liveFolder(b.Data, "virtual"), Runs: &b.devices.runs},
		})
	}
	return nil, nil
}

func (b *boxService) watchNetwork(ctx context.Context) error {
	b.network.watch(ctx, b.pulse.Tick)
	return nil
}

func (b *boxService) openRunner(context.Context) (stop func() error, err error) {
	b.carrier = &runner{data: b.Data, runs: b.runs, devices: b.devices, notifier: b.Notifier, disk: b.disk,
		browsers: b.Config.Browsers, apps: b.Config.Apps}
	m := frequency.This(filepath.Join(b.Data, "processors.json"))
	if err := m.Recover(); err != nil {
		b.Log.Error("a killed process has left the processors' frequency as it set it", "error", err)
	}
	if b.carrier.log = b.Log; !b.Config.Processors.Keep {
		b.carrier.processors = &m
	}
	b.runQueue = runqueue.New(runqueue.Config{Jobs: b.waiting, Store: b.runs, Runner: b.carrier, Log: b.Log})
	b.queue = b.runQueue
	return nil, nil
}

func (b *boxService) openErrands(context.Context) (stop func() error, err error) {
	b.errands = &errand.Keeper{Store: b.runs, Recordings: b.uploads, Room: b.disk.refusal, Software: b.Software, Log: b.Log}
	return b.errands.Close, nil
}

func (b *boxService) openMembership(context.Context) (stop func() error, err error) {
	b.membership, err = b.member(b.runQueue, b.runs, b.carrier, b.uploads)
	if err != nil {
		b.Log.Error("the box is no member of a fleet until the next start", "error", err)
		b.warnings = append(b.warnings, "the box is no member of a fleet: its folder cannot be opened")
	}
	return nil, nil
}

func (b *boxService) workMembership(ctx context.Context) error {
	if b.membership == nil {
		return nil
	}
	return b.membership.Work(ctx)
}

func (b *boxService) openRetention(context.Context) (stop func() error, err error) {
	b.retain(b.waiting.Jobs)
	if b.membership != nil {
		b.retainer.fleet = b.membership.Needed
	}
	b.carrier.retainer = b.retainer
	return nil, nil
}

// panelConfig is the panel of a box.
func (b *boxService) panelConfig() panel.Config {
	c := b.shared.panelConfig()
	c.Hosts = b.Config.hostNames()
	switch {
	case b.Config.Network.AllowPrivate:
		c.Reaches = panel.ReachesPrivate
	case panel.Loopback(b.listener.Addr()) && !box.Is(root):
		c.Reaches = panel.ReachesPages
	}
	c.Modules = append(c.Modules,
		panel.WithRuns(b.runQueue, b.Config.Browsers, b.Config.Apps), panel.WithAnswers(b.waiting),
		panel.WithParts(b.turns), panel.WithAlerts(b.problems),
		panel.WithDevices(b.devices.describe, link.Names(), b.inPlace.list), panel.WithSeats(seats{b.devices}),
		panel.WithErrands(errands{b.devices, b.errands}), panel.WithCertificate(b.authority.PEM()),
	)
	if b.membership != nil {
		c.Modules = append(c.Modules, panel.WithMembership(boxFleet{b.membership}))
	}
	var settings panel.Settings
	if box.Is(root) {
		settings = boxSettings{root}
		c.Modules = append(c.Modules, panel.WithSettings(settings), panel.WithSystem(boxSystem{root}))
	}
	c.Modules = append(c.Modules, panel.WithBackups(b.Backups(b.runs, settings, b.restart)), panel.WithSupport(supporter{
		b.Service, b.runs, b.waiting, b.keeper, b.bisects, b.configText(settings), b.devices.describe, b.inPlace.list,
	}))
	return c
}

// problems are what somebody should mend, for the panel's health.
func (b *boxService) problems() []string {
	all := b.alerts(b.disk, b.network)
	if notice := b.authority.Notice(); notice != "" {
		all = append(all, notice)
	}
	return all
}

// turns is what the watchdog sees, for the panel's health.
func (b *boxService) turns() (parts []panel.Part) {
	for _, turn := range b.Notifier.Turns() {
		parts = append(parts, panel.Part{Name: turn.Name, OK: turn.OK, AgoMS: turn.Ago.Milliseconds()})
	}
	return parts
}
