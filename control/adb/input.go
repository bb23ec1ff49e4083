package adb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"slices"
	"strings"
	"time"

	"eidetic/control"
	"eidetic/control/hid"
	"eidetic/internal/base/adbserver"
	"eidetic/internal/base/scrcpyserver"
	"eidetic/internal/lab"
)

// Options of a controller.
type Options struct {
	Client adbserver.Client
	Serial string // "" is the only phone
	Layout string // of the phone's hardware keyboard, in its settings
	// Server is the file of scrcpy's server, by which text is pasted that no key types; "" is scrcpyserver.Default.
	Server string
	Clock  lab.Clock
}

// Input are a keyboard, a touch screen and a mouse of the phone's kernel. It is a hid.Sink.
type Input struct {
	clock    lab.Clock
	cancel   context.CancelFunc
	reports  *adbserver.Stream // Android's hid, which makes the devices and takes their reports
	events   *adbserver.Stream // getevent
	heard    chan heard
	broken   chan struct{} // closed when events has ended
	brokenBy error
	nodes    map[string]string // device files, by the names of the devices
	clocks   clocks
	rotation int
	state    state
	paste    *clipboard
}

var _ hid.Paster = (*Input)(nil)

// device is an input device to make on the phone.
type device struct {
	id         int
	name       string
	descriptor []byte
}

func devices() []device {
	return []device{
		{1, "Eidetic keyboard", hid.KeyboardDescriptor()},
		{2, "Eidetic touch", hid.TouchDescriptor()},
		{3, "Eidetic mouse", hid.MotionDescriptor()},
	}
}

// Open makes the input devices on a phone, and a controller of them in pixels of the screen
// as it is turned now.
func Open(ctx context.Context, o Options) (*hid.Controller, error) {
	found, err := o.Client.Find(ctx, o.Serial)
	if err != nil {
		return nil, err
	}
	phone := Phone{o.Client, found.Serial}
	size, err := phone.Size(ctx)
	if err != nil {
		return nil, err
	}
	rotation, err := phone.Rotation(ctx)
	if err != nil {
		return nil, err
	}
	if rotation%2 == 1 {
		size = image.Pt(size.Y, size.X)
	}
	in, err := NewInput(ctx, phone, rotation, o.Clock)
	if err != nil {
		return nil, err
	}
	in.paste.file = cmp.Or(o.Server, in.paste.file)
	c, err := hid.New(in, hid.Options{Layout: o.Layout, Screen: size, Clock: o.Clock})
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return c, nil
}

// message is what Android's hid reads: JSON objects, one after another.
type message struct {
	ID         int    `json:"id"`
	Command    string `json:"command"`
	Name       string `json:"name,omitempty"`
	Vendor     int    `json:"vid,omitempty"`
	Product    int    `json:"pid,omitempty"`
	Descriptor []int  `json:"descriptor,omitempty"`
	Report     []int  `json:"report,omitempty"`
}

func ints(b []byte) []int {
	list := make([]int, len(b))
	for i, v := range b {
		list[i] = int(v)
	}
	return list
}

// NewInput makes the input devices and waits until the phone's kernel has them.
func NewInput(ctx context.Context, phone Phone, rotation int, clock lab.Clock) (*Input, error) {
	if clock == nil {
		clock = lab.Monotonic
	}
	held, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the streams outlive Open's context
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	in := &Input{
		clock: clock, cancel: cancel, heard: make(chan heard, 4096), broken: make(chan struct{}),
		nodes: map[string]string{}, rotation: rotation, paste: &clipboard{phone: phone, file: scrcpyserver.Default, clock: clock},
	}
	var err error
	if in.events, err = phone.Client.Hold(held, phone.Serial, "pty", "getevent -t"); err != nil {
		cancel()
		return nil, err
	}
	go in.listen()
	if in.reports, err = phone.Client.Hold(held, phone.Serial, "raw", "hid -"); err == nil {
		err = in.register()
	}
	if err == nil {
		err = in.appear(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("adb: %s: making the input devices: %w", phone.Serial, err), in.Close())
	}
	return in, nil
}

func (in *Input) register() error {
	var text []byte
	for _, d := range devices() {
		m := message{ID: d.id, Command: "register", Name: d.name, Vendor: 0x1d6b, Product: 0x0104 + d.id, Descriptor: ints(d.descriptor)}
		var err error
		if text, err = appendMessage(text, m); err != nil {
			return err
		}
	}
	_, err := in.reports.Write(text)
	return err
}

func appendMessage(b []byte, m message) ([]byte, error) {
	one, err := json.Marshal(m)
	return append(append(b, one...), '\n'), err
}

// listen passes on what getevent prints. What nobody asks for is dropped when the queue is full.
func (in *Input) listen() {
	defer close(in.broken)
	var lines geteventReader
	for {
		b, err := in.events.Next()
		if err != nil {
			in.brokenBy = err
			return
		}
		for _, h := range lines.add(b, in.clock()) {
			select {
			case in.heard <- h:
			default:
			}
		}
	}
}

// note keeps which device file is whose. Devices of an earlier controller may still be there
// under the same names; those that came last are ours.
func (in *Input) note(h heard) heard {
	for _, d := range devices() {
		switch {
		// A touch screen may appear under a longer name: the kernel adds what it is.
		case h.isAdded && strings.HasPrefix(h.name, d.name):
			in.nodes[d.name] = h.device
		case h.isRemoved && in.nodes[d.name] == h.device:
			delete(in.nodes, d.name)
		}
	}
	return h
}

// next returns the next line of getevent.
func (in *Input) next(ctx context.Context) (heard, error) {
	select {
	case h := <-in.heard:
		return in.note(h), nil
	default:
	}
	select {
	case h := <-in.heard:
		return in.note(h), nil
	case <-ctx.Done():
		return heard{}, ctx.Err()
	case <-in.broken:
		if errors.Is(in.brokenBy, io.EOF) {
			return heard{}, errors.New("the phone is gone, or its getevent has ended")
		}
		return heard{}, fmt.Errorf("the connection to the phone has ended: %w", in.brokenBy)
	}
}

// appear waits until the kernel has named all devices.
func (in *Input) appear(ctx context.Context) error {
	for len(in.nodes) < len(devices()) {
		if _, err := in.next(ctx); err != nil {
			return fmt.Errorf("its kernel does not show them all (%d of %d): %w; Android has the command hid from version 6 on",
				len(in.nodes), len(devices()), err)
		}
	}
	return nil
}

// confirmLimit is how long a phone may take to show an event where the caller's context
// ends later.
const confirmLimit = 10 * time.Second

// kernelEnd is the end of a report's events (SYN_REPORT).
func (h heard) kernelEnd(node string) bool {
	return h.isEvent && h.device == node && h.kind == 0 && h.code == 0
}

// Send hands reports to a device in one message, and waits for the end of each one's events. A report that changes
// nothing is left out: the kernel tells nothing of it.
func (in *Input) Send(ctx context.Context, reports ...hid.Report) ([]hid.Interval, error) {
	ctx, cancel := context.WithTimeout(ctx, confirmLimit)
	defer cancel()
	for len(in.heard) > 0 { // of other devices, and of before
		in.note(<-in.heard)
	}
	var (
		text    []byte
		which   int
		changes []bool
		err     error
		earlier = in.state
	)
	for _, r := range reports {
		var changed bool
		if which, r, changed, err = in.change(r); err != nil {
			in.state = earlier
			return nil, err
		}
		if changes = append(changes, changed); changed {
			text, err = appendMessage(text, message{ID: devices()[which].id, Command: "report", Report: ints(r.Append(nil))})
		}
		if err != nil {
			in.state = earlier
			return nil, err
		}
	}
	began := in.clock()
	if len(text) > 0 {
		_, err = in.reports.Write(text)
	}
	if err != nil {
		in.state = earlier
		return nil, fmt.Errorf("adb: %s: %w", devices()[which].name, err)
	}
	all := make([]hid.Interval, 0, len(reports))
	for _, changed := range changes {
		at := hid.Interval{Earliest: began, Latest: began + 1}
		if changed {
			at, err = in.arrived(ctx, began, in.nodes[devices()[which].name])
		}
		if err != nil { // the phone may have it nevertheless: a release has to be sent
			return all, fmt.Errorf("adb: %s: %w", devices()[which].name, err)
		}
		all = append(all, at)
	}
	return all, nil
}

// arrived waits for the next end of events of a device: those of a report that was sent at began.
func (in *Input) arrived(ctx context.Context, began lab.Time, node string) (hid.Interval, error) {
	for {
		h, err := in.next(ctx)
		if err != nil {
			return hid.Interval{}, err
		}
		if h.kernelEnd(node) {
			between := [2]lab.Time{began, h.at}
			in.clocks.narrow(h.stamp, between)
			var at hid.Interval
			at.Earliest, at.Latest = in.clocks.interval(h.stamp, between)
			return at, nil
		}
	}
}

// state is what the phone's input devices were told last.
type state struct {
	keys    hid.Keyboard
	buttons byte
	fingers []hid.Contact
}

// change notes a report, and returns the device that it is for, as the phone expects it, and whether it changes
// anything. The points of a touch are those of the screen as it is turned; the phone expects them as if it were not.
func (in *Input) change(report hid.Report) (which int, r hid.Report, changed bool, err error) {
	switch r := report.(type) {
	case hid.Keyboard:
		changed = r != in.state.keys
		in.state.keys = r
		return 0, r, changed, nil
	case hid.Motion:
		changed = r != hid.Motion{Buttons: in.state.buttons}
		in.state.buttons = r.Buttons
		return 2, r, changed, nil
	case hid.Touch:
		var down []hid.Contact
		contacts := make([]hid.Contact, 0, len(r.Contacts))
		for _, c := range r.Contacts {
			c.X, c.Y = turnBack(c.X, c.Y, in.rotation)
			contacts = append(contacts, c)
			if c.Down {
				down = append(down, c)
			}
		}
		changed = !slices.Equal(contacts, in.state.fingers)
		in.state.fingers = down
		return 1, hid.Touch{Contacts: contacts, Scan: r.Scan}, changed, nil
	}
	return 0, nil, false, errors.New("adb: Android takes no absolute mouse: touch instead")
}

// turnBack returns where a point of the turned screen is on the touch screen itself
// (Android's TouchInputMapper, the other way round).
func turnBack(x, y uint16, quarters int) (uint16, uint16) {
	switch quarters {
	case 1:
		return hid.Full - y, x
	case 2:
		return hid.Full - x, hid.Full - y
	case 3:
		return y, hid.Full - x
	}
	return x, y
}

// CapsLock is not known: hid does not tell what the phone sets the lights to.
func (in *Input) CapsLock(context.Context) (on, known bool) { return false, false }

// Capabilities are keyboard, touch screen and a relative mouse with a wheel.
func (in *Input) Capabilities() control.Capabilities {
	return control.Capabilities{
		Keyboard: true, Touch: hid.MaxContacts,
		Timing: "the phone's kernel's own stamp, with the bounds of the two clocks' difference",
		Limits: []string{"Text needs the layout that the phone's settings have for its hardware keyboard.", in.paste.says()},
	}
}

// PreparePaste implements [hid.Paster].
func (in *Input) PreparePaste(ctx context.Context) error { return in.paste.prepare(ctx) }

// Paste implements [hid.Paster].
func (in *Input) Paste(ctx context.Context, text string) (hid.Interval, error) {
	return in.paste.paste(ctx, text)
}

// Close takes the input devices away: the phone's kernel releases what they held.
func (in *Input) Close() error {
	in.paste.close()
	if in.reports != nil {
		_ = in.reports.Close()
	}
	_ = in.events.Close()
	in.cancel()
	<-in.broken
	return nil
}
