//go:build plugin

package boottest

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/rigs/storytest"
)

// TestPlugIn tells the story of a laptop on which nothing is installed: its network cable is in
// the box's port, its HDMI cable in a grabber, and the box is its keyboard and mouse. The grabber
// and the USB port are the kernel's own of software (vivid, dummy_hcd), so every byte of a picture
// and of a key goes through the box's drivers; the laptop itself is on this machine, because a
// browser on the emulated processor would need minutes for a page. Then each cable is pulled in
// the middle of a trial.
func TestPlugIn(t *testing.T) {
	storytest.NeedDevice(t)
	b := HealthyBox(t)
	plugCables(t, b)
	roots, leave := startSite(t, b)
	configure := func(text string) {
		b.Run(t, "cat > /etc/appliance/appliance.yaml <<'END'\n"+text+"\nEND\nsystemctl restart appliance.service")
		b.Healthy(t)
	}
	before := b.Run(t, "cat /etc/appliance/appliance.yaml")
	name := b.Run(t, "grep -l -i "+b.Device.MAC+" /sys/class/net/e*/address | cut -d / -f 5")
	configure(before + "\nnetwork:\n  trust: |\n    " + strings.ReplaceAll(strings.TrimSpace(roots), "\n", "\n    ") +
		fmt.Sprintf("\ndevices:\n  - name: laptop\n    port: %s\n    screen: {v4l2: %s, format: YUYV, set: {OSD Text Mode: 2}}\n"+
			"    controls: {gadget: auto, screen: 640x480}\n    fresh: [key Ctrl+W]\n", name, grabber(t, b)))

	defer func() { // a cleanup would be too late to ask the box
		if t.Failed() {
			out, _ := b.Try(t, "journalctl --no-pager -u laptop | tail -n 20; journalctl --no-pager -u appliance-usb@dummy_udc.0 | tail; cat /proc/loadavg")
			t.Log(out)
		}
	}()
	useLease(t, b)
	d := storytest.Plug(t, b.Device, tapName, 640, 480)
	plugScreen(t, b, d)
	panel := &storytest.Panel{URL: "https://" + Panel, Token: b.Run(t, "cat /etc/appliance/token"), Client: b.Uplink.Client(0)}
	story := storytest.Story{
		Panel: panel, Page: samplesite.Home, Leave: leave, Trials: 1, Still: 6 * time.Second, Limit: 3 * time.Minute, Patience: Patience,
	}
	began := time.Now()
	journey := recordJourney(t, panel)
	recorded, replayed := story.Tell(t)
	t.Logf("the story took %.0f s", time.Since(began).Seconds())
	checkFacts(t, panel.Run(t, replayed))
	replayJourney(t, panel, journey)
	pullCables(t, b, panel, recorded)
}

// recordJourney goes through the shop once while it is there, with the box's keyboard and mouse, and returns the run.
func recordJourney(t *testing.T, panel *storytest.Panel) *lab.Run {
	t.Helper()
	panel.AwaitDevice(t)
	id := panel.Start(t, shopJourney("record the journey", nil))
	panel.Follow(t, id, Patience, nil)
	run := panel.Run(t, id)
	checkJourney(t, run)
	return run
}

// replayJourney goes through it once more, over a shaped link and without the shop.
func replayJourney(t *testing.T, panel *storytest.Panel, recorded *lab.Run) {
	t.Helper()
	id := panel.Start(t, shopJourney("replay the journey", map[string]any{"archive": recorded.ID, "link": "rtt=100ms,down=4mbit,up=1mbit"}))
	panel.Follow(t, id, Patience, nil)
	run := panel.Run(t, id)
	checkJourney(t, run)
	for _, trial := range run.Trials {
		if last := recorded.Trials[0]; trial.FinalFrame == "" || trial.FinalFrame != last.FinalFrame {
			t.Errorf("trial %d ends with the picture %.12s, want that of the recording, %.12s", trial.Number, trial.FinalFrame, last.FinalFrame)
		}
	}
	page := string(panel.Get(t, "/runs/"+id+"/report.html"))
	for _, name := range journeySteps() {
		if !strings.Contains(page, ">"+name+"<") {
			t.Errorf("the report has no step %q", name)
		}
	}
}

// journeySteps are the names of the steps that have an end.
func journeySteps() []string { return []string{"open", "search", "scroll", "product", "basket", "pay"} }

// shopJourney is docs/plans/shop-journey.yaml for a screen of 640 × 480, and for a box of which another machine
// emulates the processor.
func shopJourney(name string, more map[string]any) map[string]any {
	caret := []string{"190,10,340,52"}
	plan := map[string]any{
		"name": name, "device": "laptop", "trials": 1, "still_s": 2, "limit_s": 120,
		"steps": []map[string]any{
			{"name": "open", "open": samplesite.Store},
			{"name": "search", "mask": caret, "steps": []map[string]any{{"click": "300,36"}, {"wait": "300ms"}, {"type": "table"}}},
			{"name": "scroll", "scroll": "4", "over_ms": 200, "late_ms": 500, "mask": caret},
			{"name": "product", "click": "300,240"},
			{"name": "basket", "click": "590,344"},
			{"name": "pay", "click": "400,240", "end": "done pay and still 2s"},
		},
	}
	maps.Copy(plan, more)
	return plan
}

// checkJourney checks what must hold on any machine: each step was done, no request was missed, and an invalid
// trial has only reasons that a slow machine causes.
func checkJourney(t *testing.T, run *lab.Run) {
	t.Helper()
	if len(run.Trials) == 0 {
		t.Fatalf("the run %s is %s: %s", run.ID, run.State, run.Error)
	}
	for _, trial := range run.Trials {
		for _, s := range trial.Steps {
			t.Logf("%s, trial %d: %s ended by %s", run.ID, trial.Number, s.Name, s.End)
		}
		t.Logf("%s, trial %d: %d requests, %d frames, %d lost, invalid because %q",
			run.ID, trial.Number, trial.Requests, trial.Frames, trial.FramesLost, trial.Invalid)
		for _, reason := range trial.Invalid {
			if !storytest.OfSlowMachines(reason) {
				t.Errorf("trial %d is invalid: %s", trial.Number, reason)
			}
		}
		if trial.Misses != 0 {
			t.Errorf("trial %d: %d requests were not in the recording", trial.Number, trial.Misses)
		}
		for _, name := range journeySteps() {
			if !slices.ContainsFunc(trial.Steps, func(s *lab.TrialStep) bool { return s.Name == name && s.End != "failed" && s.End != "limit" }) {
				t.Errorf("trial %d did not end step %q", trial.Number, name)
			}
		}
	}
}

// plugCables makes grabber and USB port, which end with the box.
func plugCables(t *testing.T, b *Box) {
	t.Helper()
	// An emulated machine is often late for vivid, whose kernel thread then fills the console with stack traces.
	b.Run(t, "dmesg -n 1; modprobe vivid n_devs=1 num_inputs=1 input_types=3 num_outputs=1 output_types=1 node_types=0x101 && modprobe dummy_hcd")
	b.Until(t, "grep configured /sys/class/udc/dummy_udc.0/state")
}

// grabber returns vivid's device file.
func grabber(t *testing.T, b *Box) string {
	t.Helper()
	return b.Run(t, "grep -l vid-cap /sys/class/video4linux/*/name | cut -d / -f 5 | sed s,^,/dev/,")
}

// plugScreen leads the laptop's screen into the grabber, and the gadget's input to the laptop.
func plugScreen(t *testing.T, b *Box, d *storytest.Device) {
	t.Helper()
	var l net.Listener
	err := b.Uplink.Do(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(Router.Addr().String(), "0"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	attach(t.Context(), t, d.Display(), l)
	laptop := b.Build(t, "./image/boottest/laptop")
	b.Run(t, "systemd-run --unit laptop "+laptop+" -connect "+l.Addr().String())
	b.Until(t, "journalctl --no-pager -u laptop | grep ready")
}

// checkFacts checks what a trial keeps of the grabber.
func checkFacts(t *testing.T, run *lab.Run) {
	t.Helper()
	for _, trial := range run.Trials {
		if trial.Capture == nil || trial.Capture.Source == nil {
			t.Fatalf("trial %d keeps nothing of the grabber", trial.Number)
		}
		s := trial.Capture.Source
		if s.Pixels != lab.YUYV || s.Width != 640 || s.Height != 480 || s.Chroma != "4:2:2" || s.Rate < 59.9 || s.Rate > 59.96 ||
			!strings.Contains(s.Notes["colour"], "limited range") || s.Notes["signal"] == "" {
			t.Errorf("trial %d: the grabber is kept as %+v; want YUYV 640×480 at 59.94 Hz, 4:2:2, limited range, with its signal", trial.Number, *s)
		}
		t.Logf("trial %d: %+v; measured %.3f Hz", trial.Number, *s, trial.Capture.Rate)
	}
	if e := run.Environment; !strings.Contains(e.Screen, "v4l2:") || e.Controls != "gadget:" {
		t.Errorf("the run names screen %q and controls %q", e.Screen, e.Controls)
	}
}

// cable is one that is pulled in the middle of a trial.
type cable struct {
	name       string
	pull, plug func()
	says       string // a word of the trial's reason
}

// pullCables pulls each cable in the first trial of a run, and plugs it in again.
func pullCables(t *testing.T, b *Box, panel *storytest.Panel, recorded string) {
	t.Helper()
	const udc = "/sys/kernel/config/usb_gadget/eidetic-dummy_udc.0/UDC"
	link := func(up bool) func() {
		return func() {
			if _, err := b.QMP.Do(t.Context(), "set_link", map[string]any{"name": "nic1", "up": up}); err != nil {
				t.Error(err)
			}
		}
	}
	signal := func(value string) func() { return func() { b.Run(t, "/run/guest/laptop -signal "+value) } }
	for _, c := range []cable{
		{"screen", signal("lost"), signal("back"), "signal"},
		{"USB", func() { b.Run(t, "echo > "+udc) }, func() { b.Run(t, "echo dummy_udc.0 > "+udc) }, "USB"},
		{"network", link(false), link(true), "cable"},
	} {
		t.Run("pull "+c.name, func(t *testing.T) { pullCable(t, b, panel, recorded, c) })
	}
}

func pullCable(t *testing.T, b *Box, panel *storytest.Panel, recorded string, c cable) {
	steps := []map[string]any{{"name": "open", "open": samplesite.Home}, {"wait": "1s"}, {"key": "Down"}}
	id := panel.Start(t, map[string]any{
		"name": "pull " + c.name, "device": "laptop", "page": samplesite.Home, "archive": recorded, "trials": 1, "still_s": 1, "limit_s": 60,
		"steps": steps,
	})
	pulled, plug := false, sync.OnceFunc(c.plug)
	panel.Follow(t, id, Patience, func(p storytest.Progress) bool {
		switch {
		case !pulled && p.Trial == 1 && strings.HasPrefix(p.Doing, "step"):
			c.pull()
			pulled = true
		case pulled && p.Trial > 1:
			plug()
			return true
		}
		return false
	})
	plug() // of a run that ended without a second trial
	panel.Follow(t, id, Patience, nil)
	run := panel.Run(t, id)
	if len(run.Trials) < 2 {
		t.Fatalf("the run is %s with %d trials: %s", run.State, len(run.Trials), run.Error)
	}
	first, last := run.Trials[0], run.Trials[len(run.Trials)-1]
	if first.Valid || !strings.Contains(strings.Join(first.Invalid, "; "), c.says) {
		t.Errorf("the trial whose cable was pulled is invalid because %q; want a reason with %q", first.Invalid, c.says)
	}
	for _, reason := range last.Invalid {
		if !storytest.OfSlowMachines(reason) {
			t.Errorf("after the cable was plugged in again: %s", reason)
		}
	}
	t.Logf("%s: %d trials; the first is invalid because %q, the last %q", c.name, len(run.Trials), first.Invalid, last.Invalid)
	if held := b.Run(t, "cat /sys/class/input/event*/device/name | grep -c Eidetic"); held == "0" {
		t.Error("the box's keyboard is not plugged in any more")
	}
}
