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

	"eidetic/control/power/powertest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/rigs/storytest"
)

// testPlugIn tells the story of a laptop on which nothing is installed: its network cable is in the box's port, its HDMI
// cable in a USB grabber, the box is its keyboard and mouse, and its power comes through a plug that the box switches.
// The box's kernel has the drivers that it would have; the grabber is emulated as USB (USB/IP, vhci_hcd) and so is the
// USB port (dummy_hcd), so every byte of a picture and of a key goes through them. The laptop itself is on this machine,
// because a browser on the emulated processor would need minutes for a page. Each trial begins in a fresh browser. The
// laptop hangs once, and then each cable is pulled in the middle of a trial.
func testPlugIn(t *testing.T) {
	storytest.NeedDevice(t)
	b := HealthyBox(t)
	plugPorts(t, b)
	roots, leave := startSite(t, b)
	l := &laptop{program: b.Build(t, "./image/boottest/laptop")}
	l.plug = powertest.At(t, listen(t, b), powertest.Shelly2, func(on bool) { l.power(t, b, on) })
	before := b.Run(t, "cat /etc/appliance/appliance.yaml")
	name := b.Run(t, "grep -l -i "+b.Device.MAC+" /sys/class/net/e*/address | cut -d / -f 5")
	b.Run(t, "cat > /etc/appliance/appliance.yaml <<'END'\n"+before+"\nnetwork:\n  trust: |\n    "+
		strings.ReplaceAll(strings.TrimSpace(roots), "\n", "\n    ")+fmt.Sprintf(`
devices:
  - name: laptop
    port: %s
    screen: {v4l2: %s, format: YUYV, size: 640x480, rate: 10}
    controls: {gadget: auto, screen: 640x480}
    fresh: [key Ctrl+W]
    power: {shelly: "%s", boot_s: 15}
`, name, grabberPath, l.plug.URL)+"END\nsystemctl restart appliance.service")
	b.Healthy(t)

	defer func() { // a cleanup would be too late to ask the box
		if t.Failed() {
			out, _ := b.Try(t, "journalctl --no-pager -u laptop | tail -n 20; journalctl --no-pager -u appliance-usb@dummy_udc.0 | tail; "+
				"dmesg | tail; ls -lR /dev/v4l; cat /proc/loadavg")
			t.Log(out)
		}
	}()
	useLease(t, b)
	l.Device = storytest.Plug(t, b.Device, tapName, 640, 480)
	l.connect(t, b)
	panel := &storytest.Panel{URL: "https://" + Panel, Token: b.Run(t, "cat /etc/appliance/token"), Client: b.Uplink.Client(0)}
	story := storytest.Story{
		Panel: panel, Page: samplesite.Home, Leave: leave, State: lab.StateCold,
		Trials: 1, Still: 6 * time.Second, Limit: 3 * time.Minute, Patience: Patience,
	}
	began := time.Now()
	journey := recordJourney(t, panel)
	recorded, replayed := story.Tell(t)
	t.Logf("the story took %.0f s", time.Since(began).Seconds())
	checkFacts(t, panel.Run(t, replayed))
	replayJourney(t, panel, journey)
	hang(t, l, story, recorded)
	pullCables(t, b, l, panel, recorded)
}

// laptop is the device of the story, with its cables.
type laptop struct {
	*storytest.Device
	end     *laptopEnd
	plug    *powertest.Plug
	program string // of the cables' far ends, on the box
	usb     string // address of its grabber
}

// grabberPath is the file that udev makes for the grabber, whichever number the kernel gives it.
const grabberPath = "/dev/v4l/by-id/usb-Eidetic_Eidetic_emulated_grabber-video-index0"

// listen opens a port of the test's own address in the box's uplink network.
func listen(t *testing.T, b *Box) (l net.Listener) {
	t.Helper()
	err := b.Uplink.Do(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(Router.Addr().String(), "0"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// connect leads the laptop's screen into the grabber, the grabber into the box, and the box's input to the laptop.
func (l *laptop) connect(t *testing.T, b *Box) {
	t.Helper()
	input, usb := listen(t, b), listen(t, b)
	l.end, l.usb = attach(t.Context(), t, l.Display(), input, usb), usb.Addr().String()
	// The laptop has processors of its own.
	b.Run(t, "systemd-run --unit laptop --property Nice=-20 "+l.program+" -input "+input.Addr().String())
	b.Until(t, "journalctl --no-pager -u laptop | grep ready")
	l.plugGrabber(t, b)
}

func (l *laptop) plugGrabber(t *testing.T, b *Box) {
	t.Helper()
	b.Run(t, l.program+" -grabber "+l.usb)
	b.Until(t, "test -e "+grabberPath)
}

// power is what the plug does to the laptop: without power there is no picture and no network, and with it the laptop
// starts.
func (l *laptop) power(t *testing.T, b *Box, on bool) {
	l.end.dark.Store(!on)
	setLink(t, b, on)
	if on {
		l.SwitchOn()
	} else {
		l.SwitchOff()
	}
}

// setLink plugs the laptop's network cable in, or pulls it.
func setLink(t *testing.T, b *Box, up bool) {
	if _, err := b.QMP.Do(t.Context(), "set_link", map[string]any{"name": "nic1", "up": up}); err != nil {
		t.Error(err)
	}
}

// hang has the laptop hang before the second trial of a run: the box must bring it back by its power, and the run must
// go on.
func hang(t *testing.T, l *laptop, story storytest.Story, recorded string) {
	t.Helper()
	panel, began := story.Panel, time.Now()
	plan := story.Plan(map[string]any{"name": "hang", "device": "laptop", "archive": recorded, "trials": 2})
	id, hung := panel.Start(t, plan), false
	panel.Follow(t, id, Patience, func(p storytest.Progress) bool {
		if p.Trial == 2 && !hung {
			l.Hang()
			hung = true
		}
		return false
	})
	run := panel.Run(t, id)
	t.Logf("the run with a hang took %.0f s; its plug was switched %q; it warns of %q", time.Since(began).Seconds(), l.plug.Switched(), run.Warnings)
	if got, want := l.plug.Switched(), []string{"off", "on"}; !slices.Equal(got, want) {
		t.Errorf("the plug was switched %q, want %q: once, after the laptop hung", got, want)
	}
	if !slices.ContainsFunc(run.Warnings, func(w string) bool {
		return strings.Contains(w, "its power was switched off and on, and it was back after")
	}) {
		t.Errorf("the run warns of %q; want that the power brought the laptop back", run.Warnings)
	}
	if run.State != "done" {
		t.Errorf("the run is %s, want done: %s", run.State, run.Error)
	}
	story.Check(t, run, 2)
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
	for _, trial := range unheld(t, run) {
		if last := unheld(t, recorded)[0]; trial.FinalFrame == "" || trial.FinalFrame != last.FinalFrame {
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
	}
	for _, trial := range unheld(t, run) {
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

// unheld are the trials of a run without those in which the box's emulated processor stalled between a key's press and its
// release. The box does not type the rest of such a text and repeats the trial, which has gone another way.
func unheld(t *testing.T, run *lab.Run) (trials []*lab.Trial) {
	t.Helper()
	for _, trial := range run.Trials {
		if !slices.ContainsFunc(trial.Invalid, func(reason string) bool { return strings.Contains(reason, "stayed down for up to") }) {
			trials = append(trials, trial)
		}
	}
	if len(trials) == 0 {
		t.Fatalf("the run %s has %d trials, and a key was held for too long in each of them", run.ID, len(run.Trials))
	}
	return trials
}

// plugPorts loads the drivers of the box's USB ports, and of what is plugged in there.
func plugPorts(t *testing.T, b *Box) {
	t.Helper()
	b.Run(t, "dmesg -n 1; modprobe -a vhci-hcd uvcvideo dummy_hcd") // the ports of software complain on the console
	b.Until(t, "grep configured /sys/class/udc/dummy_udc.0/state")
}

// checkFacts checks what a trial keeps of the grabber.
func checkFacts(t *testing.T, run *lab.Run) {
	t.Helper()
	for _, trial := range run.Trials {
		if trial.Capture == nil || trial.Capture.Source == nil {
			t.Fatalf("trial %d keeps nothing of the grabber", trial.Number)
		}
		s := trial.Capture.Source
		if s.Pixels != lab.YUYV || s.Width != 640 || s.Height != 480 || s.Chroma != "4:2:2" || s.Rate != 10 ||
			!strings.Contains(s.Notes["colour"], "limited range") {
			t.Errorf("trial %d: the grabber is kept as %+v; want YUYV 640×480 at 10 Hz, 4:2:2, limited range", trial.Number, *s)
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
func pullCables(t *testing.T, b *Box, l *laptop, panel *storytest.Panel, recorded string) {
	t.Helper()
	const udc = "/sys/kernel/config/usb_gadget/eidetic-dummy_udc.0/UDC"
	unplug := func() {
		if err := l.end.pullUSB(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []cable{
		{"HDMI", func() { l.end.dark.Store(true) }, func() { l.end.dark.Store(false) }, "signal"},
		{"the grabber", unplug, func() { l.plugGrabber(t, b) }, "unplugged"},
		{"USB", func() { b.Run(t, "echo > "+udc) }, func() { b.Run(t, "echo dummy_udc.0 > "+udc) }, "USB"},
		{"network", func() { setLink(t, b, false) }, func() { setLink(t, b, true) }, "cable"},
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
