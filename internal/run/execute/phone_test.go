package execute

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/control/recipe"
	"eidetic/internal/base/adbserver/adbtest"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/experiment"
)

// TestPhoneStates: a phone's browser is stopped before each trial, cleared where the trial is to begin cold, and the
// phone is started again where the plan asks for that. What it was told is taken back at the end.
func TestPhoneStates(t *testing.T) {
	client, phone := adbtest.NewServer(t), adbtest.NewPhone(t)
	phone.Accept()
	phone.Connect(t, client)
	adbtest.Await(t, client, phone.Serial, "device")
	r, err := recipe.Find("android-firefox")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	p := &onPhone{client: client, recipe: r, clear: true, limit: testlab.Hang}
	do := func(state string) (did []string) {
		t.Helper()
		phone.Change(func(s *adbtest.State) { s.Done = nil })
		p.begin(state)
		if err := p.do(ctx, &fakeKeys{}); err != nil {
			t.Fatalf("do() in the state %q: %v", state, err)
		}
		for _, command := range phone.State().Done {
			words := strings.Fields(command)
			did = append(did, words[0]+" "+words[1])
		}
		return did
	}
	stop, open := []string{"am force-stop"}, []string{"am start"}
	clean := []string{"pm clear", "pm grant", "printf %s"}
	for _, c := range []struct {
		state string
		want  []string
	}{
		{lab.StateCold, slices.Concat(stop, clean, open)},
		{"", slices.Concat(stop, clean, open)},
		{lab.StateKept, slices.Concat(stop, open)},
		{lab.StateWarm, slices.Concat(stop, clean, open)}, // the load that warms it
	} {
		if got := do(c.state); !slices.Equal(got, c.want) {
			t.Errorf("state %q: the phone did %q; want %q", c.state, got, c.want)
		}
	}
	p.warmed = true
	if got, want := do(lab.StateWarm), slices.Concat(stop, open); !slices.Equal(got, want) {
		t.Errorf("a warm trial: the phone did %q; want %q", got, want)
	}
	go func() { // the cable's other end comes back after a start
		for phone.State().Boots == 1 && ctx.Err() == nil {
			_ = lab.Wait(ctx, 1e6)
		}
		adbtest.Reconnect(t, client, phone)
	}()
	if got, want := do(lab.StateRebooted), slices.Concat([]string{"input keyevent"}, stop, clean, open); !slices.Equal(got, want) {
		t.Errorf("rebooted: the phone did %q; want %q", got, want)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if did := phone.State().Done; !strings.Contains(did[len(did)-1], "am clear-debug-app") {
		t.Errorf("at the end the phone did %q; want the settings taken back", did[len(did)-1])
	}
	p.limit = 100 * time.Millisecond
	phone.Change(func(s *adbtest.State) { s.Hangs = "am force-stop" })
	if err := p.do(ctx, &fakeKeys{}); !experiment.IsBroken(err) || !errors.Is(err, errHangs) {
		t.Errorf("do() of a phone that hangs = %v; want an error that ends a trial, after a while", err)
	}
	p.limit = testlab.Hang
	phone.Change(func(s *adbtest.State) { s.Hangs, s.Packages = "", nil })
	if err := p.do(ctx, &fakeKeys{}); err == nil || experiment.IsBroken(err) {
		t.Errorf("do() without the browser = %v; want an error that ends the run", err)
	}
	phone.Leave()
	for _, err := client.Find(ctx, ""); err == nil; _, err = client.Find(ctx, "") {
		_ = lab.Wait(ctx, 1e6)
	}
	if err := p.do(ctx, &fakeKeys{}); !experiment.IsBroken(err) {
		t.Errorf("do() without the phone = %v; want one that ends a trial", err)
	}
}

// TestCheckStates: what a device cannot reach is refused with its field, and with what can be done.
func TestCheckStates(t *testing.T) {
	phone := PluggedConfig{Controls: lab.ControlsPart{ADB: lab.AutoPart}, Recipe: "android-chrome"}
	cleared := phone
	cleared.Clear = true
	desk := PluggedConfig{Controls: lab.ControlsPart{CH9329: "/dev/ttyUSB0"}, Recipe: "windows-chrome"}
	for _, c := range []struct {
		name           string
		states         []string
		control, other string
		want           string // "" is no error
	}{
		{"virtual", VirtualStates, lab.StateWarm, lab.StateCold, ""},
		{"virtual", VirtualStates, lab.StateRebooted, "", "state: rebooted cannot be reached"},
		{"phone", phone.States(), "", "", ""},
		{"phone", phone.States(), lab.StateCold, "", "clear: true"},
		{"phone", phone.States(), lab.StateRebooted, lab.StateKept, ""},
		{"cleared phone", cleared.States(), lab.StateCold, lab.StateRebooted, ""},
		{"cleared phone", cleared.States(), lab.StateWarm, lab.StateWarm, ""},
		{"cleared phone", cleared.States(), lab.StateWarm, lab.StateCold, "cannot take turns"},
		{"cleared phone", cleared.States(), lab.StateCold, lab.StateAppCold, "treatment.state: app-cold"},
		{"desk", desk.States(), lab.StateCold, "", ""},
		{"desk", desk.States(), lab.StateWarm, "", "state: warm cannot be reached on this device, but cold"},
	} {
		arm := func(name, state string) plan.Arm {
			return plan.Arm{NamedArm: lab.NamedArm{Name: name, Arm: lab.Arm{State: state}}}
		}
		p := plan.Checked{Cells: []plan.Cell{{Arms: []plan.Arm{arm(lab.Control, c.control), arm(lab.Treatment, c.other)}}}}
		err := CheckStates(p, c.states)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, %q and %q: CheckStates() = %v; want %q", c.name, c.control, c.other, err, c.want)
		}
	}
}

// TestKeepsLoads: a trial in which the browser has what it loaded before is not expected to ask for it again.
func TestKeepsLoads(t *testing.T) {
	phone := PluggedConfig{Controls: lab.ControlsPart{ADB: "auto"}, Recipe: "android-chrome"}
	cleared, desk := phone, PluggedConfig{Controls: lab.ControlsPart{CH9329: "/dev/ttyUSB0"}, Recipe: "windows-chrome"}
	cleared.Clear = true
	for _, c := range []struct {
		name   string
		states []string
		keeps  []string // of all states
	}{
		{"virtual", VirtualStates, []string{lab.StateWarm, lab.StateKept, lab.StateAppWarm}},
		{"phone", phone.States(), []string{"", lab.StateWarm, lab.StateKept, lab.StateRebooted, lab.StateAppWarm}},
		{"cleared phone", cleared.States(), []string{lab.StateWarm, lab.StateKept, lab.StateAppWarm}},
		{"desk", desk.States(), []string{lab.StateWarm, lab.StateKept, lab.StateAppWarm}},
	} {
		x := &Execution{Rig: Rig{States: c.states}}
		var got []string
		for _, state := range []string{"", lab.StateCold, lab.StateWarm, lab.StateKept, lab.StateRebooted, lab.StateAppCold, lab.StateAppWarm} {
			if x.keepsLoads(plan.Arm{NamedArm: lab.NamedArm{Arm: lab.Arm{State: state}}}) {
				got = append(got, state)
			}
		}
		if !slices.Equal(got, c.keeps) {
			t.Errorf("%s: loads are kept in the states %q; want %q", c.name, got, c.keeps)
		}
	}
}

// TestCheckFingers: gestures of several fingers are refused where the controls have no touch screen, by the step.
func TestCheckFingers(t *testing.T) {
	pinch := plan.Checked{Cells: []plan.Cell{{Cell: lab.Cell{Plan: lab.Plan{Steps: []lab.Step{{Open: "https://a.test/"}, {Steps: []lab.Step{{Pinch: "50%,50% by 2"}}}}}}}}}
	for want, c := range map[int]PluggedConfig{
		5: {Controls: lab.ControlsPart{ADB: lab.AutoPart}},
		4: {Controls: lab.ControlsPart{Gadget: lab.AutoPart, Touch: true}},
		1: {Controls: lab.ControlsPart{Gadget: lab.AutoPart}},
		0: {Controls: lab.ControlsPart{CH9329: "/dev/ttyUSB0"}},
	} {
		err := CheckFingers(pinch, c.Fingers())
		if can := want > 1; can != (err == nil) || err != nil && !strings.Contains(err.Error(), "steps[1]: it needs a touch screen for 2 fingers") {
			t.Errorf("%+v: CheckFingers() = %v; want nil only of a touch screen", c.Controls, err)
		}
	}
}

// TestCheckTouchScreen: the virtual device has a touch screen where its programs are installed; else a plan that needs
// one is refused with what to install.
func TestCheckTouchScreen(t *testing.T) {
	steps := func(s lab.Step) plan.Checked {
		return plan.Checked{Cells: []plan.Cell{{Cell: lab.Cell{Plan: lab.Plan{Steps: []lab.Step{s}}}}}}
	}
	pinch, click := steps(lab.Step{Pinch: "50%,50% by 2"}), steps(lab.Step{Click: "1,1"})
	missing := errors.New("this machine lacks Xorg")
	if err := errors.Join(checkTouchScreen(pinch, nil), checkTouchScreen(click, missing)); err != nil {
		t.Errorf("checkTouchScreen() = %v; want nil where nothing is missing, or no finger is needed", err)
	}
	if err := checkTouchScreen(pinch, missing); !errors.Is(err, missing) {
		t.Errorf("checkTouchScreen() = %v; want what is missing", err)
	}
}

// lifeless is a device that is born.
type lifeless struct{ experiment.Life }

// TestRecovery: a device that hangs is brought back by the gentlest way that works, in words; what nothing brings back
// ends the run.
func TestRecovery(t *testing.T) {
	hung := experiment.Broken(errors.New("it did not open the page"))
	for works := range 3 {
		var did, said []string
		r := &recovery{say: func(text string) { said = append(said, text) }}
		for i, name := range []string{"it was restarted by adb", "its power was switched off and on"} {
			r.ways = append(r.ways, way{name, testlab.Hang, func(context.Context) error {
				did = append(did, name)
				if i == 0 && works == 2 {
					return errors.New("adb has no phone")
				}
				return nil
			}})
		}
		tries := 0
		life, err := r.bring(t.Context(), hung, func() (experiment.Life, error) {
			if tries++; works < 2 && tries > works {
				return lifeless{}, nil
			}
			return nil, hung
		})
		if works < 2 {
			if err != nil || life == nil || len(did) != works+1 || len(r.told()) != 1 || !strings.Contains(r.told()[0], did[works]) {
				t.Errorf("way %d: bring() = %v after %q, told %q; want a life and the way that worked", works, err, did, r.told())
			}
			continue
		}
		var final *HungError
		if !errors.As(err, &final) {
			t.Errorf("bring() of what stays hung = %v; want a HungError", err)
		}
		for _, word := range []string{"it did not open the page", "adb has no phone", "switched off and on"} {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("the error is %v; want %q in it", err, word)
			}
		}
	}
	if got := (*recovery)(nil).told(); got != nil {
		t.Errorf("told() without a way back = %q; want none", got)
	}
}
