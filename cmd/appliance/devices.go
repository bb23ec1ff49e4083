package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"eidetic/capture/v4l2"
	"eidetic/internal/base/adbserver"
	"eidetic/internal/run/device"
	"eidetic/internal/tell/terminal"
)

// DevicesCmd lists what is plugged in.
type DevicesCmd struct {
	JSON    bool   `name:"json" help:"Print JSON instead of tables."`
	Pattern string `default:"/dev/video*" help:"Where to look for grabbers (${default})."`
	ADB     string `name:"adb" placeholder:"ADDR" help:"Address of the adb server that knows the phones (127.0.0.1:5037, which is started if adb is installed); none asks nobody."`
}

// Help is shown by appliance devices --help.
func (DevicesCmd) Help() string {
	return "Lists grabbers with their formats, and the serial ports, USB device ports and phones\nthrough which appliance control can drive a device.\n\n" +
		"Example:\n  appliance devices --json"
}

// listLimit is how long the phones are waited for: an adb server may have to start.
const listLimit = 15 * time.Second

// Run lists the grabbers and what a device can be driven with.
func (c *DevicesCmd) Run(ctx context.Context, std *streams) error {
	list, err := v4l2.List(c.Pattern)
	if err != nil {
		return usage(err)
	}
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	address := c.ADB
	if address == "none" {
		address = ""
	}
	parts, problems := device.Found(ctx, device.Look{Root: os.DirFS("/"), Phones: c.ADB != "none", ADB: adbserver.Client{Address: address}})
	if c.JSON {
		out := map[string]any{"grabbers": list, "controls": append([]device.Part{}, parts...)}
		var texts []string
		for _, p := range problems {
			texts = append(texts, p.Error())
		}
		if texts != nil {
			out["problems"] = texts
		}
		return printJSON(std.out, out)
	}
	if err := c.printGrabbers(std.out, list); err != nil {
		return err
	}
	fmt.Fprintln(std.out)
	return printControls(std.out, parts, problems)
}

func (c *DevicesCmd) printGrabbers(out io.Writer, list []v4l2.Grabber) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "No grabber is plugged in (no file matches "+c.Pattern+").")
		return err
	}
	rows := [][]string{{"device", "card", "format", "size", "rates", "usable"}}
	for _, g := range list {
		if g.Problem != "" {
			rows = append(rows, []string{g.Path, g.Problem})
			continue
		}
		if g.Signal != "" {
			rows = append(rows, []string{g.Path, g.Card, "signal: " + g.Signal})
		}
		if g.NeedsEDID {
			rows = append(rows, []string{g.Path, g.Card,
				"it has no EDID: a source sends nothing until it is given one (appliance capture --edid 1080p60)"})
		}
		for _, m := range g.Modes {
			rows = append(rows, []string{g.Path, g.Card, m.Format, m.Size, strings.Join(m.Rates, " "),
				strconv.FormatBool(m.Supported)})
		}
	}
	return terminal.Rows(out, rows)
}

// printControls prints the parts by which a device can be driven, and how to mend them.
func printControls(out io.Writer, parts []device.Part, problems []error) error {
	if len(parts) == 0 {
		fmt.Fprintln(out, "Nothing to drive a device with is plugged in: no serial port, no USB device port, no phone.")
	} else {
		rows := [][]string{{"controls", "what", "name", "state"}}
		for _, p := range parts {
			rows = append(rows, []string{p.Use, p.Kind, p.Name, cmp.Or(p.Problem, p.State)})
		}
		if err := terminal.Rows(out, rows); err != nil {
			return err
		}
	}
	for _, p := range problems {
		fmt.Fprintln(out, terminal.Plain(p.Error()))
	}
	return nil
}
