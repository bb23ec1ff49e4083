package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"eidetic/capture/v4l2"
)

// DevicesCmd lists what is plugged in.
type DevicesCmd struct {
	JSON    bool   `name:"json" help:"Print JSON instead of a table."`
	Pattern string `default:"/dev/video*" help:"Where to look for grabbers (${default})."`
}

// Help is shown by appliance devices --help.
func (DevicesCmd) Help() string {
	return "Example:\n  appliance devices --json"
}

// Run lists the grabbers.
func (c *DevicesCmd) Run(std *streams) error {
	list, err := v4l2.List(c.Pattern)
	if err != nil {
		return usage(err)
	}
	if c.JSON {
		encoder := json.NewEncoder(std.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{"grabbers": list})
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(std.out, "No grabber is plugged in (no file matches "+c.Pattern+").")
		return err
	}
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "device\tcard\tformat\tsize\trates\tusable")
	for _, g := range list {
		if g.Problem != "" {
			fmt.Fprintf(w, "%s\t%s\n", g.Path, g.Problem)
			continue
		}
		if g.Signal != "" {
			fmt.Fprintf(w, "%s\t%s\tsignal: %s\n", g.Path, g.Card, g.Signal)
		}
		if g.NeedsEDID {
			fmt.Fprintf(w, "%s\t%s\tit has no EDID: a source sends nothing until it is given one (appliance capture --edid 1080p60)\n",
				g.Path, g.Card)
		}
		for _, m := range g.Modes {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%t\n", g.Path, g.Card, m.Format, m.Size, strings.Join(m.Rates, " "), m.Supported)
		}
	}
	return w.Flush()
}
