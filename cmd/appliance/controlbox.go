package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/lab"
	"eidetic/internal/run/drive"
	"eidetic/internal/tell/terminal"
	"eidetic/internal/web/panel"
)

// checkBox checks what goes with a device of a box, where the configuration says how it is driven.
func (c *ControlCmd) checkBox(steps []lab.Step) error {
	switch {
	case len(steps) == 0:
		return errors.New("say what the device is to do; its page on the panel tells what it can")
	case drive.NeedsScreen(steps):
		return errors.New("a box looks for no picture here: leave out waits for one and for stillness, or make it a plan for appliance run")
	case c.Layout != "us" || c.Screen != "" || c.Baud != 0 || c.Relative || c.Gain != 0 || c.Calibrate || c.Touch || c.Source != "" ||
		c.Recipe != "" || c.Echo != 0 || c.Record != "" || c.PasswordFile != "" || c.Server != "" || c.ADB != "":
		return errors.New("a device of a box is driven as the box's configuration says: only --box and its like, --file and --json go with it")
	}
	return nil
}

// onDevice has a box carry the steps out, as its only driver meanwhile.
func (c *ControlCmd) onDevice(ctx context.Context, std *streams, text string) error {
	return c.onBox(std, func(box *client.Client) (err error) {
		window := rand.Text()
		device := "/api/v1/devices/" + url.PathEscape(c.Device)
		turn := device + "/driver?window=" + window
		if _, err := box.Exchange(ctx, http.MethodPut, turn, nil); err != nil {
			return err
		}
		defer func() {
			_, released := box.Exchange(context.WithoutCancel(ctx), http.MethodDelete, turn, nil)
			err = errors.Join(err, released)
		}()
		answer, err := box.Exchange(ctx, http.MethodPost, device+"/input", panel.Input{Steps: text, Window: window})
		if err != nil {
			return err
		}
		var given struct{ Events []lab.Event }
		if err := json.Unmarshal(answer, &given); err != nil {
			return cannot(errors.New("the box's answer is no list of events"))
		}
		for _, e := range given.Events {
			if c.JSON {
				err = errors.Join(err, json.NewEncoder(std.out).Encode(e))
				continue
			}
			fmt.Fprintln(std.out, terminal.Plain(eventText(given.Events[0].Earliest, e)))
		}
		return err
	})
}
