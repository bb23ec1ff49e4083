package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/tell/terminal"
	"eidetic/internal/web/panel"
)

// ErrandCmd asks a device of a box for something between runs.
type ErrandCmd struct {
	Do       string        `arg:"" enum:"film,record,qualify,noise,show,trigger,keep,cancel" help:"film, record, qualify or noise begins one; show prints its state; trigger begins a film that waits; keep ends it and keeps what there is, cancel keeps nothing."`
	Device   string        `arg:"" help:"Name of the device."`
	Duration time.Duration `placeholder:"TIME" help:"How long a film or a qualification is, and how long a recording is at most (10s, 30s, 10m)."`
	PreRoll  time.Duration `placeholder:"TIME" help:"Of a film: it waits for its trigger, and begins so much before."`
	Name     string        `placeholder:"TEXT" help:"What to call the result."`
	Wait     bool          `help:"Wait until it is over."`
	JSON     bool          `name:"json" help:"Print the answer of the box as JSON."`
	boxFlags
}

// Help is shown by appliance errand --help.
func (ErrandCmd) Help() string {
	return `An errand is what a box does with a device between runs, without a plan: it films its screen, records what it requests, qualifies its
grabber, or measures the noise of its screen. A run that comes meanwhile waits. Beginning and ending one needs a token of the scope run.

Example:
  appliance errand film desk --duration 20s --pre-roll 5s --box https://box.local:8080
  appliance errand trigger desk --wait --box https://box.local:8080
  appliance errand record desk
  appliance errand keep desk --wait

Exit status 1 when it failed.`
}

// Validate checks what kong cannot.
func (c *ErrandCmd) Validate() error {
	begins := c.body() != nil
	if !begins && (c.Duration != 0 || c.PreRoll != 0 || c.Name != "") {
		return errors.New("--duration, --pre-roll and --name go with film, record, qualify and noise")
	}
	return c.check()
}

// body is the request that begins it; nil for the other ones.
func (c *ErrandCmd) body() any {
	switch c.Do {
	case "film", "record", "qualify", "noise":
		return panel.ErrandRequest{Do: c.Do, Seconds: c.Duration.Seconds(), PreRoll: c.PreRoll.Seconds(), Name: c.Name}
	}
	return nil
}

// Run implements the command.
func (c *ErrandCmd) Run(ctx context.Context, std *streams) error {
	var e panel.Errand
	err := show(&c.boxFlags, std, c.JSON, func(box *client.Client) (_ panel.Errand, err error) {
		e, err = c.ask(ctx, std, box)
		return e, err
	}, func(e panel.Errand) error {
		_, err := fmt.Fprintln(std.out, terminal.Plain(errandText(c.Device, e)))
		return err
	})
	if err == nil && e.State == "failed" {
		err = failed(fmt.Errorf("%s of %s failed: %s", e.Do, c.Device, e.Error))
	}
	return err
}

// ask begins or changes the errand, or asks how it goes; with --wait until it is over.
func (c *ErrandCmd) ask(ctx context.Context, std *streams, box *client.Client) (panel.Errand, error) {
	ask := func(method, more string, body any) (e panel.Errand, err error) {
		text, err := box.Exchange(ctx, method, "/api/v1/devices/"+url.PathEscape(c.Device)+"/errand"+more, body)
		if err != nil {
			return e, err
		}
		return decode[panel.Errand](text)
	}
	how, ok := map[string][2]string{"show": {"GET", ""}, "trigger": {"POST", "/trigger"}, "keep": {"DELETE", "?keep=true"}, "cancel": {"DELETE", ""}}[c.Do]
	if !ok {
		how[0] = "POST"
	}
	e, err := ask(how[0], how[1], c.body())
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	said := ""
	for err == nil && c.Wait && e.Ended == nil && e.State != "none" {
		select {
		case <-ctx.Done():
			return e, cannot(ctx.Err())
		case <-tick.C:
		}
		e, err = ask("GET", "", nil)
		if e.State == "waiting" && e.Doing != said { // for somebody
			said = e.Doing
			std.note("appliance: note: %s", terminal.Plain(said))
		}
	}
	return e, err
}

// errandText is how an errand goes, in words.
func errandText(device string, e panel.Errand) string {
	if e.State == "none" {
		return "Nothing was asked of " + device + " since the appliance started"
	}
	parts := []string{fmt.Sprintf("%s of %s: %s", e.Do, device, e.State), e.Doing, e.Note}
	if e.Ends != nil {
		parts = append(parts, "ends by itself at "+terminal.Clock(*e.Ends))
	}
	if n := e.Noise; n != nil {
		parts = append(parts, n.Floor, "seen for certain is a change "+n.Sees)
	}
	for _, one := range [][2]string{{"run ", e.Run}, {"recording ", e.Recording}} {
		if one[1] != "" {
			parts = append(parts, one[0]+one[1])
		}
	}
	var said []string
	for _, p := range parts {
		if p != "" {
			said = append(said, p)
		}
	}
	return strings.Join(said, "; ")
}
