// Package sandbox is the half of a run that works in namespaces of its own, and the
// pipe between the two halves. In go a [Task] (measure a plan on a virtual
// device) or a [Visit] (open pages, recording or replaying); the outer half starts
// this program again in namespaces (package isolate), where the inner half brings
// up origins, box and device, and tells its events, as JSON, over a descriptor.
// What the inner half cannot do itself, reaching the outside, the outer half does
// for it, connection by connection, and only while something is recorded.
package sandbox

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/device"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/experiment"
	"eidetic/internal/run/inspect"
	"eidetic/internal/run/isolate"
	"eidetic/netlab/link"
	"eidetic/netlab/proxy"
)

// Commands are the commands of this program that the two halves start as processes.
type Commands struct {
	Inside []string // arguments of the command that calls [Inside]
	Visit  []string // arguments of the command that calls [VisitInside]
	// Forwarder is the whole command line of the link's process, which calls link.Serve.
	Forwarder []string
	// Inspect is the whole command line of the process that checks a recording, to which the file and
	// its memory are added.
	Inspect []string
	// Meter is the whole command line of the process that measures how fast this machine is, which calls meter.Serve.
	Meter []string
	// Site is the whole command line of the sample site, to which flags are added.
	Site []string
	// Ahead lets what is started on this thread go before the service's other work, until back is called; see
	// priority.Behind. Nil where the service is not behind.
	Ahead func() (back func())
}

// run runs the inner half with arguments and files, ahead of the outer one.
func (c Commands) run(ctx context.Context, args []string, files ...*os.File) error {
	if c.Ahead != nil {
		runtime.LockOSThread() // which isolate.Run forks on
		defer runtime.UnlockOSThread()
		defer c.Ahead()()
	}
	return isolate.Run(ctx, args, files...)
}

// Task is what the outer half asks of the inner one: a plan, and what it needs.
type Task struct {
	ID   string // of the run
	Plan lab.Plan
	Out  string // the store
	// Browsers and Apps are those of the box's configuration that the plan may name.
	Browsers plan.Browsers `json:",omitempty"`
	Apps     plan.Apps     `json:",omitempty"`
	// Files is the folder of the pictures and gestures that the plan's steps name.
	Files string `json:",omitempty"`
	// Live is that of execute.Execution, within Out.
	Live string `json:",omitempty"`
	// Connections are shaped instead of packets.
	Connections bool
	// Origins says which origins can be recorded: those of the sample site, which is
	// started for the run; those that the outside can reach; or none.
	Origins string
	// Reach is for origins outside.
	Reach Reach
	// NoSandbox is that of execute.VirtualConfig.
	NoSandbox bool `json:",omitempty"`
	// KeepProcessors leaves the processors' frequency as it is.
	KeepProcessors bool `json:",omitempty"`
	// Warnings are what the run must say of what the outer half found.
	Warnings []string `json:",omitempty"`
	// Events go to the outer half, as JSON, instead of to a person.
	Events bool
}

// The origins that can be recorded.
const (
	OriginsNone    = ""
	OriginsSample  = "sample"
	OriginsOutside = "outside"
)

// The descriptors that the outer half passes to an inner half that tells it events.
const (
	eventsFile = taskFile + 1 + iota
	dialFile
)

// dialFileAlone is the descriptor of the outer half's connections when there are no events.
const dialFileAlone = taskFile + 1

// tempSize bounds what browsers and sockets may take of RAM.
const tempSize = 4 << 30

// ErrNotInside says that a process was asked to be the inner half and is not the
// first one of namespaces.
var ErrNotInside = errors.New("this command is one half of other commands, such as appliance demo") // constant

// ReportedError is an error that the outer half was told as an event.
type ReportedError struct{ Err error }

func (e *ReportedError) Error() string { return e.Err.Error() }

// Unwrap returns what was told.
func (e *ReportedError) Unwrap() error { return e.Err }

// Inner is what the inner half gets from the program that it is part of.
type Inner struct {
	Commands Commands
	Software string                // what runs and archives name as the software that made them
	Say      func(text string)     // a sentence for a person
	Step     func(experiment.Step) // progress for a person
	Log      *slog.Logger
}

// Inside carries out the task that the outer half has handed over, in the namespaces that this process is
// the first of.
func Inside(ctx context.Context, in Inner) error {
	if os.Getpid() != 1 {
		return ErrNotInside
	}
	var t Task
	if err := takeOver(&t); err != nil {
		return err
	}
	if !t.Events {
		return t.carryOut(ctx, execute.News{Say: in.Say, Step: in.Step}, in)
	}
	events := newEventWriter(os.NewFile(eventsFile, "events"))
	err := t.carryOut(ctx, events.news(), in)
	if err != nil && ctx.Err() == nil {
		events.write(event{Error: err.Error()})
		return &ReportedError{err}
	}
	return err
}

// carryOut carries the plan out on a virtual device.
func (t Task) carryOut(ctx context.Context, news execute.News, in Inner) error {
	// The outside's /proc, which shows what else this machine does, stays open
	// below the inner half's own.
	processes := ""
	if outside, err := os.Open("/proc"); err == nil {
		defer outside.Close()
		processes = fmt.Sprintf("/proc/self/fd/%d", outside.Fd())
	}
	t.Reach.ownHosts() // before its file is covered
	asked, traces, err := t.read()
	if err != nil {
		return err
	}
	mounts := isolate.Mounts{Keep: append(t.folders(asked), traces...), Resolver: device.Gateway().String(), TempSize: tempSize}
	if err := isolate.Mount(mounts); err != nil {
		return err
	}
	config := execute.VirtualConfig{
		Forwarder: in.Commands.Forwarder, Meter: in.Commands.Meter, ShapeConnections: t.Connections, Log: in.Log,
		Browser: asked.Cells[0].Arms[0].Browser, NoSandbox: t.NoSandbox,
		Protocol: asked.NeedsProtocol(), Again: asked.LaunchesAgain(), Count: asked.Measure.MachineHz() > 0,
		Touch: asked.Touches() > 0, Chosen: asked.Chosen,
	}
	if asked.Screen != nil {
		config.Through, config.Rate = asked.Screen.Through, asked.Screen.Rate
	}
	switch t.Origins {
	case OriginsSample:
		o := &origins{command: in.Commands.Site}
		if !t.Plan.Live { // a live run is to show what differs from load to load
			o.seed = &t.Plan.Seed
		}
		defer o.stop()
		config.Upstream, config.Sealed = o.start, o.stop
	case OriginsOutside:
		dialer, err := isolate.NewDialer(os.NewFile(t.dialFile(), "outside"))
		if err != nil {
			return err
		}
		config.Upstream = func(context.Context) (*proxy.UpstreamConfig, error) { return t.Reach.through(dialer) }
		config.Sealed = func() { _ = dialer.Close() } // an error would change nothing: the dialer is not used again
	}
	rig, err := execute.NewVirtual(ctx, config)
	if err != nil {
		return err
	}
	defer rig.Close()
	if err := prepare(rig, asked); err != nil {
		return err
	}
	x := execute.Execution{
		ID: t.ID, Plan: asked, Rig: rig.Rig, Root: t.Out, Live: t.Live, News: news, Log: in.Log, Software: in.Software, Processes: processes,
		Check: inspect.Checker{Command: in.Commands.Inspect},
	}
	if t.Reach.AnyCertificate && t.records() {
		x.Warnings = append(x.Warnings, "The certificates of origins were not verified (--insecure-origin).")
	}
	x.Warnings = append(x.Warnings, t.Warnings...)
	if t.NoSandbox {
		x.Warnings = append(x.Warnings, "The browser worked without its sandbox (--no-sandbox).")
	}
	return x.Run(ctx)
}

// records tells whether a page is recorded from its origin.
func (t Task) records() bool {
	return slices.ContainsFunc(t.Plan.Every(), func(a lab.NamedArm) bool { return a.Archive == "" })
}

// dialFile is the descriptor of the outer half's connections.
func (t Task) dialFile() uintptr {
	if t.Events {
		return dialFile
	}
	return dialFileAlone
}

// prepare readies the device for the plan's pages.
func prepare(rig *execute.Virtual, asked plan.Checked) error {
	for _, a := range asked.Every() {
		if lab.IsAppPage(a.Page) {
			continue
		}
		if err := rig.Reach(a.Page, a.Browser); err != nil {
			return err
		}
	}
	return nil
}

// folders names the folders of the outside that the inner half needs.
func (t Task) folders(asked plan.Checked) []string {
	dirs := []string{t.Out}
	if t.Files != "" {
		dirs = append(dirs, t.Files)
	}
	for _, a := range asked.Every() {
		if a.Archive != "" {
			dirs = append(dirs, filepath.Dir(a.Archive))
		}
		dirs = append(dirs, browserDirs(a.Browser)...)
	}
	return dirs
}

// browserDirs names the folders of a browser that may lie where the inner half has none.
func browserDirs(b *lab.Browser) (dirs []string) {
	if b == nil {
		return nil
	}
	if b.Profile != "" {
		dirs = append(dirs, b.Profile)
	}
	dirs = append(dirs, b.Extensions...)
	if words := strings.Fields(b.Command); len(words) > 0 && filepath.IsAbs(words[0]) {
		dirs = append(dirs, filepath.Dir(words[0]))
	}
	return dirs
}

// read reads the plan, and names the folders of the trace files of its links: the outer half has decided which files
// may be named.
func (t Task) read() (asked plan.Checked, dirs []string, err error) {
	open := func(name string) (io.ReadCloser, error) {
		if abs, err := filepath.Abs(name); err == nil {
			dirs = append(dirs, filepath.Dir(abs))
		}
		return link.OpenFile(name)
	}
	asked, err = plan.Check(plan.Request{Plan: t.Plan}, plan.Options{
		Traces: open, From: &plan.Folder{Path: t.Files}, Scope: plan.ScopePerson, Browsers: t.Browsers, Apps: t.Apps,
	})
	return asked, dirs, err
}

// TrustedRoots is the system's pool of certificates with those of a PEM text added;
// nil stands for the system's pool alone.
func TrustedRoots(pem string) (*x509.CertPool, error) {
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
