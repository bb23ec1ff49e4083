package main

import (
	"context"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"eidetic/capture/scrcpy/scrcpytest"
	"eidetic/capture/x11"
	"eidetic/control/hid"
	"eidetic/control/hid/hidtest"
	"eidetic/internal/base/adbserver"
	"eidetic/internal/base/adbserver/adbtest"
	"eidetic/internal/base/scrcpyserver/servertest"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/rigs/storytest"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/nstest"
)

// notes is a package of the phone that is no browser.
const notes = "org.example.notes"

// simulate makes a phone of a device: commands that adb brings stop, clear and start its browser, and reports of its
// command hid are keys of its screen.
func simulate(t *testing.T, device *storytest.Phone) *adbtest.Phone {
	t.Helper()
	client, phone := adbtest.NewServerAt(t, adbserver.Address), adbtest.NewPhone(t)
	host := hidtest.NewHost(t, device.Display(), "")
	phone.OnReport(func(name string, _, report []byte) {
		if k := (hid.Keyboard{}); name == "Eidetic keyboard" && len(report) == hid.KeyboardBytes {
			k.Modifiers = report[0]
			for i := range k.Keys {
				k.Keys[i] = hid.Usage(report[2+i])
			}
			_, _ = host.Send(context.Background(), k)
		}
	})
	phone.OnDone(func(command string) {
		switch {
		case command == "am force-stop "+notes:
			device.Launch("")
		case strings.HasPrefix(command, "am start -n"):
			device.Launch("exec xedit -geometry 400x600+20+40")
		case strings.HasPrefix(command, "am force-stop"):
			device.Stop()
		case strings.HasPrefix(command, "pm clear"):
			device.Clear()
		case strings.HasPrefix(command, "am start"):
			_, rest, _ := strings.Cut(command, "-d '")
			url, _, _ := strings.Cut(rest, "'")
			device.Open(url)
		}
	})
	phone.Accept()
	phone.Connect(t, client)
	adbtest.Await(t, client, phone.Serial, "device")
	return phone
}

// TestPhoneStory: a phone at a port is recorded, the site goes, and its recording is replayed on a browser that adb
// clears, starts and drives, filmed by its cable.
func TestPhoneStory(t *testing.T) {
	needLab(t)
	storytest.NeedDevice(t)
	testlab.NeedProgram(t, "adb")
	testlab.NeedProgram(t, "ffmpeg")
	if !nstest.Inside(t) {
		return
	}
	v := newVillageOf(t, "{name: phone, port: dev0, controls: {adb: auto}, recipe: android-chrome, clear: true}")
	device := storytest.PlugPhone(t, v.device, "eth0", 540, 960)
	phone := simulate(t, device)
	phone.Change(func(s *adbtest.State) { s.Size = "Physical size: 540x960\n" })
	if name := v.panel.AwaitDevice(t); name != "phone" {
		t.Fatalf("the device is called %q; want phone", name)
	}
	refused := map[string]any{
		"page": samplesite.Home, "device": "phone", "state": "warm", "treatment": map[string]any{"state": "rebooted"},
	}
	if status, body, err := v.panel.Do(t.Context(), "POST", "/api/v1/runs", refused); err != nil || status < 400 || status >= 500 ||
		!strings.Contains(string(body), "cannot take turns on a phone") {
		t.Errorf("a plan whose states exclude each other is answered %d %s (%v); want a refusal", status, body, err)
	}
	request := map[string]any{
		"page": samplesite.Home, "device": "phone", "trials": 1, "tolerance_ms": 10000, "still_s": 1.5, "limit_s": time.Minute.Seconds(),
		"conditions": map[string]any{"battery_max_c": 35, "thermal": "none"},
	}
	recorded := v.panel.Start(t, request)
	v.panel.Follow(t, recorded, 3*testlab.Hang, nil)
	first := v.panel.Run(t, recorded)
	if len(first.Trials) == 0 || first.Trials[0].Misses != 0 {
		t.Fatalf("the run that records is %s with %d trials: %s", first.State, len(first.Trials), first.Error)
	}
	v.leave(t)
	// The recording was filmed by VNC. Now the phone's own encoder films.
	const version = "3.3.4"
	scrcpytest.Serve(phone, version, 540, 960, func(ctx context.Context, s *scrcpytest.Stream) {
		screen, err := x11.Open(x11.Options{Display: device.Display(), Rate: 60})
		if err != nil {
			t.Error(err)
			return
		}
		scrcpytest.Film(ctx, t, s, screen)
	})
	request["screen"] = map[string]any{"scrcpy": "auto", "server": servertest.Jar(t, version)}
	request["archive"], request["trials"] = recorded, testlab.Repeat(2, 4)
	replayed := v.panel.Start(t, request)
	v.panel.Follow(t, replayed, 3*testlab.Hang, nil)
	run := v.panel.Run(t, replayed)
	if len(run.Trials) == 0 {
		t.Fatalf("the run that replays is %s with no trial: %s", run.State, run.Error)
	}
	for _, trial := range run.Trials {
		if s := trial.Capture.Source; s == nil || s.Name != "scrcpy:" || !strings.Contains(s.Notes["signal"], version) ||
			!slices.Equal(s.Latency, []float64{5, 15}) {
			t.Errorf("trial %d was filmed by %+v; want scrcpy %s", trial.Number, s, version)
		}
		if trial.Misses != 0 || trial.Conditions == nil || !strings.HasPrefix(trial.Conditions.String(), "battery 84 %, battery 32.6 °C") {
			t.Errorf("trial %d has %d misses, conditions %v", trial.Number, trial.Misses, trial.Conditions)
		}
		for _, reason := range trial.Invalid {
			if !storytest.OfSlowMachines(reason) {
				t.Errorf("trial %d is invalid: %s", trial.Number, reason)
			}
		}
	}
	cleared, started := 0, 0
	for _, command := range phone.State().Done {
		if strings.HasPrefix(command, "pm clear") {
			cleared++
		}
		if strings.HasPrefix(command, "am start") {
			started++
		}
	}
	if least := len(first.Trials) + len(run.Trials) + 1; cleared < least || cleared != started {
		t.Errorf("the browser was cleared %d times and started %d times; want each before a recording and %d trials", cleared, started, least-1)
	}
	if phone.Files() != 0 || phone.Programs() != 0 {
		t.Errorf("%d files and %d programs are left on the phone", phone.Files(), phone.Programs())
	}
	if got := run.Environment.Controls; !strings.HasPrefix(got, "adb:") {
		t.Errorf("the run names the controls %q; want adb", got)
	}
	if last := phone.State().Done[len(phone.State().Done)-1]; !strings.Contains(last, "am clear-debug-app") {
		t.Errorf("at the end the phone did %q; want its browser's settings taken back", last)
	}
}

// phoneTrials is how many trials of each state TestPhoneFreshStory compares: as many as EIDETIC_TRIALS says, which is two where
// it says nothing.
func phoneTrials(t *testing.T) int {
	text := os.Getenv("EIDETIC_TRIALS")
	if text == "" {
		return 2
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 {
		t.Fatalf("EIDETIC_TRIALS: %q is no number of trials, of which two or more have a spread", text)
	}
	return n
}

// TestPhoneFreshStory prints how much the first change of a page varies where each trial begins in a cleared browser of the
// simulated phone, and where it begins with what the trial before it has left; the two states take turns in one run. On a
// busy machine the figures say nothing.
func TestPhoneFreshStory(t *testing.T) {
	testlab.Long(t, "a third story of a phone: TestPhoneStory begins its trials fresh, and TestPhoneStates has the commands")
	needLab(t)
	storytest.NeedDevice(t)
	testlab.NeedProgram(t, "adb")
	if !nstest.Inside(t) {
		return
	}
	trials := phoneTrials(t)
	v := newVillageOf(t, "{name: phone, port: dev0, controls: {adb: auto}, recipe: android-chrome, clear: true}")
	phone := simulate(t, storytest.PlugPhone(t, v.device, "eth0", 540, 960))
	phone.Change(func(s *adbtest.State) { s.Size = "Physical size: 540x960\n" })
	if name := v.panel.AwaitDevice(t); name != "phone" {
		t.Fatalf("the device is called %q; want phone", name)
	}
	request := map[string]any{"page": samplesite.Home, "device": "phone", "trials": 1, "tolerance_ms": 10000, "still_s": 1.5, "limit_s": time.Minute.Seconds()}
	recorded := v.panel.Start(t, request)
	v.panel.Follow(t, recorded, 3*testlab.Hang, nil)
	v.leave(t)
	maps.Copy(request, map[string]any{
		"archive": recorded, "trials": trials, "state": lab.StateKept, "treatment": map[string]any{"state": lab.StateCold},
	})
	cleared := func() (n int) {
		for _, command := range phone.State().Done {
			if strings.HasPrefix(command, "pm clear") {
				n++
			}
		}
		return n
	}
	before := cleared()
	compared := v.panel.Start(t, request)
	v.panel.Follow(t, compared, time.Duration(3+trials)*testlab.Hang, nil)
	run := v.panel.Run(t, compared)
	times, all := map[string][]float64{}, 0
	for _, trial := range run.Trials {
		for _, reason := range trial.Invalid {
			if !storytest.OfSlowMachines(reason) {
				t.Errorf("trial %d is invalid: %s", trial.Number, reason)
			}
		}
		if trial.Arm == lab.Treatment {
			all++
		}
		if ms, ok := trial.Value(metric.FirstChange.String()); ok && trial.Valid {
			times[trial.Arm] = append(times[trial.Arm], ms)
		}
	}
	if n := cleared() - before; all < trials || len(run.Trials)-all < trials || n < all || n >= len(run.Trials) {
		t.Errorf("the browser was cleared %d times for %d trials, %d of them fresh (%s: %s); want once for each of those",
			n, len(run.Trials), all, run.State, run.Error)
	}
	for _, arm := range []struct{ name, state string }{{lab.Treatment, lab.StateCold}, {lab.Control, lab.StateKept}} {
		mean, deviation := spread(times[arm.name])
		t.Logf("%s: first change of %d valid trials %.1f ms in the mean, standard deviation %.1f ms",
			arm.state, len(times[arm.name]), mean, deviation)
	}
}

// spread is the mean and the standard deviation of a sample.
func spread(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(deviation / float64(max(1, len(values)-1)))
}

// TestPhoneApp: a package that is no browser is started before the green page of the phone's browser, filmed from the
// command on, and stopped.
func TestPhoneApp(t *testing.T) {
	testlab.Long(t, "a second story of a phone; TestAppOnAPhone has the commands")
	needLab(t)
	storytest.NeedDevice(t)
	testlab.NeedProgram(t, "adb")
	testlab.NeedProgram(t, "xedit")
	if !nstest.Inside(t) {
		return
	}
	v := newVillageOf(t, "{name: phone, port: dev0, controls: {adb: auto}, recipe: android-chrome, clear: true}")
	device := storytest.PlugPhone(t, v.device, "eth0", 540, 960)
	phone := simulate(t, device)
	phone.Change(func(s *adbtest.State) {
		s.Size, s.Packages = "Physical size: 540x960\n", append(s.Packages, notes)
		s.Running = []adbtest.Process{{PID: 4000, Name: notes, Ticks: 50}}
	})
	if name := v.panel.AwaitDevice(t); name != "phone" {
		t.Fatalf("the device is called %q; want phone", name)
	}
	started := v.panel.Start(t, map[string]any{
		"app": map[string]any{"package": notes}, "device": "phone", "trials": 2, "still_s": 1, "limit_s": time.Minute.Seconds(),
		"steps": []map[string]any{{"name": "start", "launch": "app", "window": true}, {"name": "rest", "idle": "1s"}},
	})
	v.panel.Follow(t, started, 3*testlab.Hang, nil)
	run := v.panel.Run(t, started)
	if len(run.Trials) == 0 {
		t.Fatalf("the run is %s with no trial: %s", run.State, run.Error)
	}
	for _, trial := range run.Trials {
		for _, reason := range trial.Invalid {
			if !storytest.OfSlowMachines(reason) {
				t.Errorf("trial %d is invalid: %s", trial.Number, reason)
			}
		}
		m := map[string]float64{}
		for _, one := range trial.Measurements {
			m[one.Name] = one.Value
		}
		if m["start/first_window_ms"] <= 0 || m["start/window_pixels"] < 100*100 || m["rest/program_memory_mb"] <= 0 {
			t.Errorf("trial %d measured %v; want a window and the package's memory", trial.Number, m)
		}
	}
	if last := phone.State().Done; !strings.Contains(strings.Join(last, "\n"), "am start -n '"+notes+"/.Main'") {
		t.Errorf("the phone did %q; want the app started", last)
	}
}
