package execute

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"eidetic/control/hid"
	"eidetic/control/recipe"
	"eidetic/control/x11"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/device"
	"eidetic/internal/run/experiment"
)

// VirtualStates are those in which trials on the virtual device can begin. Every device has a way of its own for plans
// that name no state.
var VirtualStates = []string{lab.StateCold, lab.StateWarm, lab.StateAppCold, lab.StateAppWarm} // constant

// States are those in which trials on the device can begin. Of a phone whose browser may not be cleared, only what the
// browser has is known; on other devices a private window begins without anything stored.
func (c PluggedConfig) States() []string {
	r, err := recipe.Find(c.Recipe)
	switch {
	case len(c.Fresh) > 0 || err != nil || !c.isPhone(r):
		return []string{lab.StateCold}
	case c.Clear:
		return []string{lab.StateCold, lab.StateWarm, lab.StateKept, lab.StateRebooted}
	}
	return []string{lab.StateKept, lab.StateRebooted}
}

// keepsLoads says whether the trials of an arm begin with what its browser has loaded before.
func (x *Execution) keepsLoads(a plan.Arm) bool {
	switch {
	case a.IsWarm() || a.State == lab.StateKept:
		return true
	case a.App != nil || a.State != "" && a.State != lab.StateRebooted:
		return false
	}
	// Without another state a browser that may not be cleared is as the last trial left it.
	return slices.Contains(x.Rig.States, lab.StateKept) && !slices.Contains(x.Rig.States, lab.StateCold)
}

// CheckVirtual returns an error for a plan that the virtual device cannot carry out.
func CheckVirtual(p plan.Checked) error {
	return cmp.Or(checkOwnParts(p), checkTouchScreen(p, device.CheckTouchScreen()), CheckStates(p, VirtualStates), CheckApps(p, VirtualWays))
}

// CheckPlugged returns an error for a plan that a device at a port cannot carry out.
func CheckPlugged(p plan.Checked, c PluggedConfig) error {
	return cmp.Or(checkOwnBrowser(p), checkUnseen(p, c.sees(p)), CheckFingers(p, c.Fingers()), CheckChosen(p, false),
		CheckStates(p, c.States()), CheckApps(p, c.Ways()))
}

// checkOwnBrowser returns an error for a browser that a plan gives a device which has its own, and for what users set in
// one.
func checkOwnBrowser(p plan.Checked) error {
	const own = "this device has a browser of its own; leave %s out, or use the virtual device"
	for _, a := range p.Every() {
		switch {
		case a.User.IsSeeded():
			return &lab.FieldError{Path: "users", Err: fmt.Errorf(own, "cookies and storage")}
		case a.User != nil && a.User.Viewport != "":
			return &lab.FieldError{Path: "users", Err: fmt.Errorf(own, "viewport")}
		case a.App == nil && a.Browser != nil:
			return &lab.FieldError{Path: a.Field("browser"), Err: fmt.Errorf(own, "browser")}
		}
	}
	return nil
}

// checkUnseen returns an error for what is not seen of a device at a port; seen says whether its processes are.
func checkUnseen(p plan.Checked, seen bool) error {
	switch {
	case p.Traces > 0:
		return &lab.FieldError{Path: "traces", Err: experiment.ErrNoTraces}
	case p.TraceAll:
		return &lab.FieldError{Path: "trace_all", Err: experiment.ErrNoTraces}
	case p.Measure.NeedsMachine() && !seen:
		return &lab.FieldError{Path: "measure.machine_hz", Err: errors.New(
			"only processes of the virtual device, and of a phone's browser or package by adb, are seen; leave it out, or use one of these")}
	}
	return nil
}

// checkOwnParts returns an error for parts that a plan gives a device which has its own.
func checkOwnParts(p plan.Checked) error {
	for _, part := range []struct {
		field string
		said  bool
	}{{"screen", p.Screen != nil && !p.Screen.IsVirtual()}, {"controls", p.Controls != nil}, {"recipe", p.Recipe != ""}} {
		if part.said {
			return &lab.FieldError{Path: part.field, Err: errors.New(
				"of a device at a port, as are screen, controls and recipe: the virtual device has its own, and of screen takes nothing but through and rate")}
		}
	}
	return nil
}

// CheckStates returns an error for a plan with trials that begin in a state that a device does not reach.
func CheckStates(p plan.Checked, states []string) error {
	plugged := !slices.Contains(states, lab.StateAppCold)
	var used []string
	for _, a := range p.Every() {
		if a.App != nil {
			if plugged && a.State != lab.StateAppCold {
				return &lab.FieldError{Path: a.Field("state"), Err: fmt.Errorf("%s: on a device at a port every start of an app is %s", a.State,
					lab.StateAppCold)}
			}
			continue
		}
		used = append(used, a.State)
		if a.State == "" || slices.Contains(states, a.State) {
			continue
		}
		advice := ""
		switch {
		case !plugged:
			advice = ": kept and rebooted are of a device at a port"
		case a.IsStart():
			advice = ": only the browser of the virtual device can be started by a trial"
		case slices.Contains(states, lab.StateKept):
			advice = ": this phone's browser may not be cleared; its device's configuration can allow that (clear: true)"
		case a.State == lab.StateRebooted || a.State == lab.StateKept:
			advice = ": that takes a phone that adb drives"
		}
		return &lab.FieldError{Path: a.Field("state"), Err: fmt.Errorf("%s cannot be reached on this device, but %s%s", a.State, strings.Join(states, ", "), advice)}
	}
	if plugged && slices.Contains(used, lab.StateWarm) && slices.ContainsFunc(used, func(s string) bool { return s != lab.StateWarm }) {
		return &lab.FieldError{Path: "state", Err: errors.New(
			"warm and another state cannot take turns on a phone: clearing its browser takes away what the warm trials begin with")}
	}
	return nil
}

// VirtualWays are the ways in which the virtual device starts apps.
var VirtualWays = []string{lab.ByCommand} // constant

// Ways are those of the device: a phone's packages are started by adb, programs of other devices by their input.
func (c PluggedConfig) Ways() []string {
	if c.Controls.ADB != "" {
		return []string{lab.ByPackage, lab.ByRecipe}
	}
	return []string{lab.ByRecipe}
}

// CheckApps returns an error for a plan with an app that a device cannot start.
func CheckApps(p plan.Checked, ways []string) error {
	for _, a := range p.Every() {
		if a.App != nil && !slices.Contains(ways, a.App.Way()) {
			return &lab.FieldError{Path: a.Field("app"), Err: fmt.Errorf("this device does not start a program by its %s, but by its %s", a.App.Way(),
				strings.Join(ways, " or its "))}
		}
	}
	return nil
}

// checkTouchScreen returns an error for a plan with gestures of several fingers where the virtual device has no touch
// screen, because programs are missing.
func checkTouchScreen(p plan.Checked, missing error) error {
	if p.Touches() == 0 {
		return nil
	}
	if missing == nil {
		return CheckFingers(p, x11.Fingers)
	}
	return &lab.FieldError{Path: "steps", Err: fmt.Errorf("gestures of several fingers need a touch screen, for which %w", missing)}
}

// CheckFingers returns an error for a plan with gestures that need more fingers than a device's touch screen has.
func CheckFingers(p plan.Checked, fingers int) error {
	for _, cell := range p.Cells {
		for i, s := range cell.Plan.Steps {
			if n := s.Touches(); n > fingers {
				return &lab.FieldError{Path: fmt.Sprintf("steps[%d]", i), Err: fmt.Errorf(
					"it needs a touch screen for %d fingers, which this device's controls do not have: a phone by adb does, a USB gadget with touch: true, and the virtual device", n)}
			}
		}
	}
	return nil
}

// CheckChosen returns an error for a plan that chooses files on a device on which none are put.
func CheckChosen(p plan.Checked, can bool) error {
	for _, cell := range p.Cells {
		for _, name := range lab.Chosen(cell.Plan.Steps) {
			if !can {
				return &lab.FieldError{Path: lab.PlaceOf(cell.Plan.Steps, name) + "." + lab.VerbChoose, Err: errNoFiles}
			}
		}
	}
	return nil
}

// errNoFiles refuses files for a device that is no part of this machine.
var errNoFiles = errors.New("the plan's files are put on the virtual device alone: on a device at a port, put the file " + // constant
	"there yourself, and choose it by click, type and key")

// Fingers is how many fingers the device's controls have.
func (c PluggedConfig) Fingers() int {
	if c.Controls.ADB != "" || c.Controls.Gadget != "" && c.Controls.Touch {
		return hid.MaxContacts
	}
	return 0
}
