package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"eidetic/control/gesture"
)

// GestureCmd holds the commands of recorded gestures.
type GestureCmd struct {
	Record GestureRecordCmd `cmd:"" help:"Record a gesture of a person at a touch screen or mouse of this machine."`
	Show   GestureShowCmd   `cmd:"" help:"Say what a recorded gesture is."`
}

// GestureRecordCmd records a gesture.
type GestureRecordCmd struct {
	Input  string `arg:"" placeholder:"/dev/input/eventN" help:"The touch screen or mouse; /proc/bus/input/devices lists what there is."`
	Out    string `required:"" type:"path" placeholder:"FILE" help:"Where the gesture goes, as JSON lines for a plan's replay."`
	Screen string `default:"1280x720" placeholder:"WxH" help:"The screen that a mouse moves on (${default}); a touch screen has a size of its own."`
}

// Help is shown by appliance gesture record --help.
func (GestureRecordCmd) Help() string {
	return `Waits until somebody touches, moves and lifts a finger, or holds the left button of a mouse, moves and releases it, and
writes the way with its times. A plan's step repeats it: replay: fling.jsonl. Of an Android phone, the text of
adb shell getevent -lt is such a file, too (docs/scenarios.md).

Example:
  appliance gesture record /dev/input/event5 --out fling.jsonl`
}

// Run records.
func (c *GestureRecordCmd) Run(ctx context.Context, std *streams) error {
	size, err := parseSize("--screen", c.Screen)
	if err != nil {
		return usage(err)
	}
	device, name, axes, err := gesture.OpenEvdev(c.Input)
	if errors.Is(err, os.ErrPermission) {
		return cannot(fmt.Errorf("%w: run it as root, or as a member of the group input", err))
	}
	if err != nil {
		return usage(err)
	}
	defer device.Close()
	defer context.AfterFunc(ctx, func() { _ = device.Close() })() // ends the read
	fmt.Fprintf(std.err, "Make the gesture on %s; Ctrl-C ends without one.\n", name)
	g, err := gesture.RecordEvdev(device, axes, size.X, size.Y)
	if ctx.Err() != nil {
		return cannot(errors.New("interrupted; nothing was written"))
	}
	if err != nil {
		return cannot(err)
	}
	if err := writeNamed(c.Out, g.Write); err != nil {
		return cannot(err)
	}
	fmt.Fprintf(std.out, "%s: %s\n", c.Out, g.Describe())
	return nil
}

// GestureShowCmd describes a gesture.
type GestureShowCmd struct {
	File string `arg:"" type:"existingfile" help:"The gesture's file, or the text of Android's getevent -lt."`
}

// Help is shown by appliance gesture show --help.
func (GestureShowCmd) Help() string {
	return `Reads a recorded gesture as a plan's step would, and says how many samples it has, how long it takes, and for which screen it is.

Example:
  appliance gesture show fling.jsonl`
}

// Run describes.
func (c *GestureShowCmd) Run(std *streams) error {
	f, err := os.Open(c.File)
	if err != nil {
		return usage(err)
	}
	defer f.Close()
	g, err := gesture.ParseRecording(f)
	if err != nil {
		return usage(fmt.Errorf("%s: %w", c.File, err))
	}
	fmt.Fprintf(std.out, "%s: %s\n", c.File, g.Describe())
	return nil
}
