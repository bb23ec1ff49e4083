package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"eidetic/capture"
	"eidetic/capture/source"
	"eidetic/capture/steady"
	"eidetic/control/adb"
	"eidetic/control/connect"
	"eidetic/control/power"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/netlab/port"
	"eidetic/netlab/wifi/radio"
)

// PluggedConfig describes a device at a port of the box: what its screen is seen by, and what
// gives it input. The parts were checked.
type PluggedConfig struct {
	Port     *port.Port
	Start    *StartPage
	Address  netip.Addr // of the device
	Screen   lab.ScreenPart
	Controls lab.ControlsPart
	Password lab.Secret // of its VNC server
	// Fresh makes the device fresh; without it Recipe says how.
	Fresh  Fresh
	Recipe string
	// Clear lets what the browser of an Android device has stored be removed before each trial.
	Clear bool
	// Power switches the device off and on, nil where only a person can; Broadcast is the address of all of its
	// network.
	Power     *lab.PowerPart
	Broadcast netip.Addr
	// Air is the interface of the box's access point that the device has joined; "" for one at a cable.
	Air string
	// Say tells a person what is done to a device that hangs.
	Say func(text string)
}

// Source is what its screen is opened with.
func (c PluggedConfig) Source() source.Options {
	o := plan.SourceOptions(c.Screen, c.Address, c.Password)
	o.ADB = adbClient()
	return o
}

// Connect is what its controls are opened with.
func (c PluggedConfig) Connect() connect.Options {
	o := plan.ConnectOptions(c.Controls, c.Address, c.Password)
	o.ADB, o.Clock = adbClient(), clock
	o.Server = cmp.Or(c.Controls.Server, c.Screen.Server)
	return o
}

// NeedsAddress says whether a part is at the device's own address.
func (c PluggedConfig) NeedsAddress() bool {
	return plan.IsPort(c.Screen.RFB) || plan.IsPort(c.Controls.RFB)
}

// NewPlugged makes a rig of a device that is plugged in. The caller closes the returned keys.
func NewPlugged(ctx context.Context, c PluggedConfig) (Rig, io.Closer, error) {
	fresh, err := refresherOf(c)
	if err != nil {
		return Rig{}, nil, err
	}
	drive, film := c.Connect(), c.Source()
	film.Noise = &steady.Memory{}
	keys := &keys{limit: keyLimit, open: func(ctx context.Context) (screenControl, error) {
		controls, err := connect.Open(ctx, drive)
		if err != nil {
			return nil, err
		}
		return partControls{controls}, nil
	}}
	if err := keys.ready(ctx); err != nil {
		return Rig{}, nil, fmt.Errorf("the device's controls: %w", err)
	}
	network := c.Port.Network()
	screen := &partScreen{name: film.Name, latency: plan.Latency(c.Screen)}
	var plug *power.Switch
	if c.Power != nil {
		plug = power.New(*c.Power, c.Broadcast, power.ThisMachine())
	}
	started := &apps{control: keys, phone: func(ctx context.Context) (adb.Phone, error) {
		found, err := adbClient().Find(ctx, c.serial())
		return adb.Phone{Client: adbClient(), Serial: found.Serial}, err
	}}
	births := pluggedBirths{c.Start, fresh, keys, newRecovery(fresh, keys, plug, c.Say), started}
	rig := Rig{
		Network: network, Control: keys, Texts: keys.texts, Parts: true, States: c.States(), Fingers: c.Fingers(), Ways: c.Ways(),
		Prepare: func(_ context.Context, a plan.Arm) error {
			started.app = a.App
			fresh.begin(a.State)
			return nil
		},
		Link:   &guarded{emulated: emulated{network}, watch: func() func() []string { return c.Port.Watch().Reasons }},
		Device: births,
		Hands:  &Hands{Controller: onFilm{keys, screen.size}, Used: started.used},
		Screen: Screen{Name: film.Name, Noise: film.Noise, Part: screen, Open: func(ctx context.Context) (capture.Source, error) {
			return patiently(ctx, replugLimit, func(ctx context.Context) (capture.Source, error) { return source.Open(ctx, film) })
		}},
		Describe: func(e *lab.Environment) {
			e.Screen = screen.describe()
			e.Controls = drive.Name
			e.Network = network.Environment()
			if s, err := c.Port.Status(); err == nil { // if the port gives no status, the trials fail anyway
				e.Port = describePort(s)
			}
		},
		Finish: func(run *lab.Run) error {
			s, err := c.Port.Status()
			if err != nil {
				return err
			}
			run.Warnings = append(run.Warnings, births.recovery.told()...)
			run.Environment.Isolation = &lab.Isolation{
				StrayPackets: &s.Strays,
				How:          "what the device sends to anybody but the box ends in the box; nothing is forwarded",
			}
			return nil
		},
	}
	if c.Controls.ADB != "" {
		rig.Sample = started.sampler(c.browserPackage())
	}
	if phone, ok := fresh.(*onPhone); ok {
		rig.Conditions, rig.Warm = phone.conditions, phone.warm(births)
		withAir(&rig, c.Air)
		return rig, closers{phone, keys}, nil
	}
	withAir(&rig, c.Air)
	return rig, keys, nil
}

// withAir adds to a device's conditions what the box's radio tells of it; none where it is at a cable.
func withAir(rig *Rig, name string) {
	if name == "" {
		return
	}
	device := rig.Conditions
	rig.Conditions = func(ctx context.Context) (c lab.Conditions, err error) {
		if device != nil {
			if c, err = device(ctx); err != nil {
				return c, err
			}
		}
		if air, err := radio.Now(name); err == nil { // a trial is none the worse without
			c.Air = air
		}
		return c, nil
	}
}

// closers close one after another.
type closers []io.Closer

func (all closers) Close() (err error) {
	for _, c := range all {
		err = errors.Join(err, c.Close())
	}
	return err
}

// describePort converts a port's status to the form that a run keeps.
func describePort(s port.Status) *lab.PortState {
	d := &lab.PortState{
		Interface: s.Interface, Lab: s.Lab, Gateway: s.Gateway.String(), Present: s.Present, Carrier: s.Carrier,
		Problem: s.Problem, Flaps: s.Flaps, Strays: s.Strays, Limits: s.Limits,
	}
	if s.Gateway6.IsValid() {
		d.Gateway6 = s.Gateway6.String()
	}
	for _, l := range s.Leases {
		d.Leases = append(d.Leases, lab.Lease{MAC: l.MAC, Address: l.Addr.String(), Name: l.Name, Until: l.Until})
	}
	return d
}
