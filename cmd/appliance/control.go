package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"eidetic/control"
	"eidetic/control/adb"
	"eidetic/control/connect"
	"eidetic/control/gesture"
	"eidetic/control/recipe"
	"eidetic/internal/base/adbserver"
	"eidetic/internal/base/bounded"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/drive"
	"eidetic/internal/run/journey"
)

// ControlCmd drives a device's input.
type ControlCmd struct {
	Steps        string        `arg:"" optional:"" help:"Steps, separated by semicolons, as in a plan: key Ctrl+L; type \"x\"; click 50%,40%; wait still 1s."`
	Device       string        `required:"" placeholder:"DEVICE" help:"ch9329:/dev/serial/by-id/…, gadget: or gadget:PORT, adb: or adb:SERIAL, x11:DISPLAY (x11::0), rfb:HOST:PORT: appliance devices lists what is plugged in. A name without a colon, with --box, is a device of that box."`
	Layout       string        `default:"us" help:"The device's keyboard layout, for ch9329, gadget and adb: us, de, fr, fr-windows, ja, dvorak."`
	Screen       string        `placeholder:"WxH" help:"The device's screen in pixels, for ch9329 and gadget."`
	Baud         int           `placeholder:"RATE" help:"Set a ch9329 to 9600 or 115200 baud; without it the chip stays as it is."`
	Relative     bool          `help:"A relative mouse in place of an absolute one, for ch9329 and gadget: iPads and Android take no other."`
	Gain         float64       `placeholder:"PIXELS" help:"By how many pixels the device moves its pointer for each count of a relative mouse, as --calibrate measures (1)."`
	Calibrate    bool          `help:"Measure the gain of a relative mouse by the pictures of a source, then go to five points and say by how much they were missed."`
	Touch        bool          `help:"A touch screen too, for gadget."`
	Source       string        `placeholder:"SOURCE" help:"Where to look for pictures and stillness, as of appliance capture film; x11 and rfb devices need none."`
	Recipe       string        `placeholder:"NAME" help:"How the device's browser opens a URL: linux-chrome, windows-chrome, macos-safari, ios-safari, android-chrome … (docs/devices)."`
	File         string        `type:"existingfile" placeholder:"FILE" help:"Read the steps from a file."`
	Echo         int           `placeholder:"N" help:"Press Caps Lock N times after the steps, up to 1000, and say how soon the device switched the keyboard's light on: what input alone takes."`
	Record       string        `placeholder:"FILE" help:"Write the input profile: each event with its planned time and the interval in which the device can have got it."`
	PasswordFile string        `type:"existingfile" placeholder:"FILE" help:"A file whose first line is the VNC server's password."`
	Server       string        `type:"existingfile" placeholder:"FILE" help:"The file of scrcpy's server, by which text that no key types is pasted on an Android phone (/usr/share/scrcpy/scrcpy-server)."`
	ADB          string        `name:"adb" placeholder:"ADDR" help:"Address of the adb server (127.0.0.1:5037)."`
	Limit        time.Duration `default:"1m" help:"How long a wait may take."`
	JSON         bool          `name:"json" help:"Print the events as JSON lines."`
	boxFlags

	ofBox bool // the device is one of a box's configuration
}

// Help is shown by appliance control --help.
func (ControlCmd) Help() string {
	return `Presses keys, types, clicks, drags and waits on a device, in the language of a plan's steps, and
prints each event with the interval in which the device can have got it.

Without steps it says what the device can do. It is typed on the machine to which the controls are connected, or names a device of a
box, by its name in the box's configuration; that needs a token of the scope run, and is refused while a run uses the device.

Example:
  appliance control --device ch9329:/dev/ttyUSB0 --relative --screen 2360x1640 --source v4l2:/dev/video0 --calibrate
  appliance control --device desk --box https://box.local:8080 'click 50%,40%; type "table"'
  appliance control --device x11::0 'key Ctrl+L; type "https://shop.test/"; key Enter; wait still 1s'`
}

// Validate checks what kong cannot.
func (c *ControlCmd) Validate() error {
	c.ofBox = c.named() && !strings.Contains(c.Device, ":")
	return c.check()
}

// Run carries out the steps.
func (c *ControlCmd) Run(ctx context.Context, std *streams) error {
	if c.Echo < 0 || c.Echo > maxEchoes {
		return usage(fmt.Errorf("--echo %d: 1 … %d times", c.Echo, maxEchoes))
	}
	text, err := c.text()
	if err != nil {
		return usage(err)
	}
	var steps []lab.Step
	if strings.TrimSpace(text) != "" {
		if steps, err = gesture.Parse(text); err != nil {
			return usage(err)
		}
	}
	if c.ofBox {
		if err := c.checkBox(steps); err != nil {
			return usage(err)
		}
		return c.onDevice(ctx, std, text)
	}
	options, err := c.options()
	if err != nil {
		return usage(err)
	}
	files, err := plan.ReadFiles(plan.Folder{Path: "."}, steps)
	if err != nil {
		return usage(err)
	}
	opening, err := c.opening()
	if err != nil {
		return usage(err)
	}
	if err := c.checkCalibrate(); err != nil {
		return usage(err)
	}
	if c.Calibrate {
		return c.calibrate(ctx, std, options)
	}
	controls, err := openControls(ctx, options)
	if err != nil {
		return err
	}
	if len(steps) == 0 && c.Echo == 0 {
		return errors.Join(c.describe(std.out, controls), controls.Close())
	}
	o := drive.Options{
		Controller: controls.Controller, Size: controls.Screen, Opening: opening, Templates: files.Pictures, Gestures: files.Gestures,
		Clock: lab.Monotonic, Limit: c.Limit,
	}
	if phone, ok := strings.CutPrefix(c.Device, "adb:"); ok && c.Recipe != "" {
		o.Open = c.onPhone(options.ADB, phone)
	}
	if drive.NeedsScreen(steps) {
		screen, err := c.screen(ctx)
		if err != nil {
			return errors.Join(err, controls.Close())
		}
		defer screen.Close()
		o.Screen = screen
	}
	err = c.run(ctx, std, o, controls, steps)
	if err == nil {
		err = c.echo(ctx, std.out, controls)
	}
	if closed := controls.Close(); err == nil {
		err = closed
	}
	return cannot(err)
}

// openTime is how long a device may take until it can be driven.
const openTime = 30 * time.Second

func openControls(ctx context.Context, o connect.Options) (*connect.Controls, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	controls, err := connect.Open(ctx, o)
	var wrong *connect.OptionError
	switch {
	case errors.As(err, &wrong):
		return nil, usage(fmt.Errorf("--device: %w", err))
	case err != nil:
		return nil, cannot(err)
	}
	return controls, nil
}

// text is the steps as they are written.
func (c *ControlCmd) text() (string, error) {
	if c.File == "" {
		return c.Steps, nil
	}
	if c.Steps != "" {
		return "", errors.New("give the steps either as an argument or as a file")
	}
	f, err := os.Open(c.File)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, gesture.MaxLine+1))
	return string(bounded.UTF8(b)), err
}

func (c *ControlCmd) options() (connect.Options, error) {
	o := connect.Options{
		Name: c.Device, Layout: c.Layout, Baud: c.Baud, Relative: c.Relative, Gain: c.Gain, Touch: c.Touch, Server: c.Server,
		ADB: adbserver.Client{Address: c.ADB}, Clock: lab.Monotonic,
	}
	var err error
	if c.Screen != "" {
		if o.Screen, err = parseSize("--screen", c.Screen); err != nil {
			return o, err
		}
	}
	o.Password, err = readPassword(c.PasswordFile)
	return o, err
}

// opening is how the recipe opens a URL; nil without one.
func (c *ControlCmd) opening() (func(string) ([]lab.Step, error), error) {
	if c.Recipe == "" {
		return nil, nil
	}
	r, err := recipe.Find(c.Recipe)
	if err != nil {
		return nil, err
	}
	return r.Opening, nil
}

// onPhone opens URLs in the recipe's package by an intent; nil where the recipe has none.
func (c *ControlCmd) onPhone(client adbserver.Client, serial string) func(context.Context, string) error {
	r, err := recipe.Find(c.Recipe)
	if err != nil || r.Package == "" {
		return nil
	}
	return func(ctx context.Context, url string) error {
		found, err := client.Find(ctx, serial)
		if err != nil {
			return err
		}
		return adb.Phone{Client: client, Serial: found.Serial}.Open(ctx, url, r.Package)
	}
}

// screen opens what shows the device: the source that is named, or the device itself.
func (c *ControlCmd) screen(ctx context.Context) (*drive.Screen, error) {
	name := c.Source
	if kind, _, _ := strings.Cut(c.Device, ":"); name == "" && (kind == "x11" || kind == "rfb") {
		name = c.Device
	}
	if name == "" {
		return nil, usage(errors.New("a step looks at the screen, and this device has none to look at: name one with --source, such as v4l2:/dev/video0"))
	}
	flags := sourceFlags{Source: name, PasswordFile: c.PasswordFile, Server: c.Server}
	src, err := flags.open(ctx)
	if err != nil {
		return nil, err
	}
	return drive.Watch(ctx, src), nil
}

// profileHead is the first line of an input profile.
type profileHead struct {
	Profile int                  `json:"profile"` // version: 1
	Device  string               `json:"device"`
	Width   int                  `json:"width"` // of the device's screen
	Height  int                  `json:"height"`
	Can     control.Capabilities `json:"capabilities"`
	Steps   []lab.Step           `json:"steps"`
}

// profileEvent is another line of it.
type profileEvent struct {
	Step int     `json:"step"` // from 1
	Late float64 `json:"late_ms"`
	gesture.Sent
}

func (c *ControlCmd) run(ctx context.Context, std *streams, o drive.Options, controls *connect.Controls, steps []lab.Step) error {
	var profile *json.Encoder
	if c.Record != "" {
		f, err := os.Create(c.Record)
		if err != nil {
			return err
		}
		defer f.Close()
		profile = json.NewEncoder(f)
		if err := profile.Encode(profileHead{1, c.Device, controls.Screen.X, controls.Screen.Y, controls.Can, steps}); err != nil {
			return err
		}
	}
	printed := json.NewEncoder(std.out)
	began := o.Clock()
	var failed error
	err := drive.Run(ctx, o, steps, func(step int, e gesture.Sent) {
		line := profileEvent{step + 1, float64(e.Late().Microseconds()) / 1e3, e}
		if profile != nil {
			failed = errors.Join(failed, profile.Encode(line))
		}
		if c.JSON {
			failed = errors.Join(failed, printed.Encode(line))
			return
		}
		late := ""
		if line.Late >= 1 {
			late = fmt.Sprintf(", %.1f ms late", line.Late)
		}
		fmt.Fprintln(std.out, eventText(began, e.Event)+late)
	})
	return errors.Join(err, failed)
}

// eventText is an event with its interval since the beginning.
func eventText(began lab.Time, e lab.Event) string {
	return fmt.Sprintf("%9.1f … %.1f ms  %s %s", ms(e.Earliest.Sub(began)), ms(e.Latest.Sub(began)), e.Name, short(e.Detail))
}

// maxEchoes bounds --echo.
const maxEchoes = 1000

// echo measures how soon the device answers Caps Lock by the keyboard's light.
func (c *ControlCmd) echo(ctx context.Context, out io.Writer, controls *connect.Controls) error {
	if c.Echo == 0 {
		return nil
	}
	e, ok := controls.Controller.(control.Echoer)
	if !ok {
		return fmt.Errorf("--echo: %s does not report the keyboard's lights; ch9329, gadget and x11 do", c.Device)
	}
	var times []lab.AnswerTime
	for n := range c.Echo {
		one, err := e.Echo(ctx)
		if err != nil {
			return fmt.Errorf("--echo: press %d of %d: %w", n+1, c.Echo, err)
		}
		t := journey.EchoTime(one)
		times = append(times, t)
		if c.JSON {
			if err := json.NewEncoder(out).Encode(t); err != nil {
				return err
			}
		}
	}
	if c.JSON {
		return nil
	}
	all := journey.EchoMeasurements(times)
	fmt.Fprintf(out, "Caps Lock: the light came on after %.1f ms (median of %d; between %.1f and %.1f ms by the intervals), 90 %% within %.1f ms\n",
		all[0].Value, len(times), *all[0].Low, *all[0].High, all[1].Value)
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// short is the beginning of a text, on one line.
func short(text string) string {
	text = strings.ReplaceAll(text, "\n", `\n`)
	if runes := []rune(text); len(runes) > 60 {
		return string(runes[:60]) + "…"
	}
	return text
}

// describe says what the device can be made to do.
func (c *ControlCmd) describe(out io.Writer, controls *connect.Controls) error {
	if c.JSON {
		return printJSON(out, profileHead{1, c.Device, controls.Screen.X, controls.Screen.Y, controls.Can, nil})
	}
	fmt.Fprintf(out, "%s: %s; screen %d×%d\n", c.Device, controls.Can, controls.Screen.X, controls.Screen.Y)
	if controls.Can.Layout != "" {
		fmt.Fprintf(out, "The device's keyboard layout must be %s.\n", controls.Can.Layout)
	}
	if controls.Can.Timing != "" {
		fmt.Fprintf(out, "The end of an event's interval is %s.\n", controls.Can.Timing)
	}
	for _, l := range controls.Can.Limits {
		fmt.Fprintln(out, l)
	}
	return nil
}
