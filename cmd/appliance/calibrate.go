package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"eidetic/control"
	"eidetic/control/connect"
	"eidetic/internal/run/drive"
)

// checkCalibrate checks what goes with --calibrate.
func (c *ControlCmd) checkCalibrate() error {
	switch {
	case !c.Calibrate:
		return nil
	case !c.Relative:
		return errors.New("--calibrate is for a relative mouse: say --relative, too")
	case c.Steps != "" || c.File != "" || c.Echo != 0 || c.Gain != 0 || c.Record != "":
		return errors.New("--calibrate stands alone: without steps, --echo, --gain and --record")
	case c.Source == "":
		return errors.New("--calibrate looks at the screen: name what films it with --source, such as v4l2:/dev/video0")
	}
	return nil
}

// calibrate measures the gain of the device's relative mouse, and says how well it works.
func (c *ControlCmd) calibrate(ctx context.Context, std *streams, o connect.Options) (err error) {
	screen, err := c.screen(ctx)
	if err != nil {
		return err
	}
	defer screen.Close()
	var result struct {
		drive.Calibration
		Misses []drive.Miss `json:"misses"`
	}
	err = with(ctx, o, func(m control.Controller) (err error) {
		result.Calibration, err = drive.Calibrate(ctx, m, o.Screen, screen)
		return err
	})
	if err == nil {
		result.Gain = math.Round(1000*result.Gain) / 1000
		o.Gain = result.Gain
		err = with(ctx, o, func(m control.Controller) (err error) {
			result.Misses, err = drive.Misses(ctx, m, o.Screen, screen, result.Calibration)
			return err
		})
	}
	switch {
	case err != nil:
		return cannot(fmt.Errorf("--calibrate: %w", err))
	case c.JSON:
		return printJSON(std.out, result)
	}
	farthest := 0.0
	for _, m := range result.Misses {
		farthest = max(farthest, m.Pixel)
	}
	fmt.Fprintf(std.out, "The device moves its pointer by %g pixels for each count. With --gain %[1]g, %d points were missed by at most %.0f pixels.\n"+
		"In the configuration of a box: controls: {relative: true, gain: %[1]g}\n", result.Gain, len(result.Misses), farthest)
	return nil
}

// with opens the controls for one use.
func with(ctx context.Context, o connect.Options, use func(control.Controller) error) error {
	controls, err := openControls(ctx, o)
	if err != nil {
		return err
	}
	err = use(controls.Controller)
	return errors.Join(err, controls.Close())
}
