package execute

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"eidetic/control/adb"
	"eidetic/internal/base/adbserver/adbtest"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/experiment"
)

// TestAppOnAPhone: each trial stops the package, starts what its icon starts, and stops it again; what the package uses
// is read from the phone.
func TestAppOnAPhone(t *testing.T) {
	client, phone := adbtest.NewServer(t), adbtest.NewPhone(t)
	phone.Accept()
	phone.Connect(t, client)
	adbtest.Await(t, client, phone.Serial, "device")
	const name = "org.example.notes"
	phone.Change(func(s *adbtest.State) {
		s.Packages = append(s.Packages, name)
		s.Running = []adbtest.Process{{PID: 4000, Name: name, Ticks: 50}}
	})
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	a := &apps{app: &lab.App{Package: name}, phone: func(ctx context.Context) (adb.Phone, error) {
		found, err := client.Find(ctx, "")
		return adb.Phone{Client: client, Serial: found.Serial}, err
	}}
	life, err := a.of(ctx, plugged{NewStartPage(http.NotFoundHandler())})
	if err != nil {
		t.Fatal(err)
	}
	begun := clock()
	event, err := life.(experiment.Starter).Start(ctx, "app:x")
	if err != nil || event.Earliest < begun || event.Latest < event.Earliest || event.Latest > clock() {
		t.Errorf("Start() = %+v, %v; want the interval of the command", event, err)
	}
	use, err := a.used(ctx, true)
	if err != nil || use.Processes != 1 || use.Ran != 5e8 || use.Memory == 0 || use.At < begun {
		t.Errorf("used() = %+v, %v; want one process, half a second and its memory", use, err)
	}
	if err := life.Stop(); err != nil {
		t.Error(err)
	}
	want := []string{"am force-stop " + name, "am start -n '" + name + "/.Main'", "am force-stop " + name}
	if did := phone.State().Done; !slices.Equal(did, want) {
		t.Errorf("the phone did %q; want %q", did, want)
	}
	a.app = &lab.App{Package: "com.none.such"}
	if _, err := a.of(ctx, plugged{}); err == nil || experiment.IsBroken(err) {
		t.Errorf("a package that is not there: %v; want an error that ends the run", err)
	}
}

// TestSyncOfAnApp: the green page that an app comes in front of is one that the box serves.
func TestSyncOfAnApp(t *testing.T) {
	if got, want := SyncURL(lab.Arm{Page: "app:editor"}), "http://box.test/sync"; got != want {
		t.Errorf("SyncURL() = %q; want %q, which leads nowhere", got, want)
	}
}

// TestAppByKeys: times count from the last key, the program is closed after the trial, and nothing is known of what it
// uses.
func TestAppByKeys(t *testing.T) {
	keys := &fakeKeys{}
	a := &apps{control: keys, app: &lab.App{Recipe: `key Meta+R; type "notepad"; key Enter; wait 1ms`, Close: "key Alt+F4"}}
	unstarted, err := a.of(t.Context(), plugged{NewStartPage(http.NotFoundHandler())})
	if err != nil {
		t.Fatal(err)
	}
	if err := unstarted.Stop(); err != nil || len(keys.did) > 0 {
		t.Errorf("Stop() of what was never started = %v, and the device did %q; want nothing", err, keys.did)
	}
	life, err := a.of(t.Context(), plugged{NewStartPage(http.NotFoundHandler())})
	if err != nil {
		t.Fatal(err)
	}
	event, err := life.(experiment.Starter).Start(t.Context(), "app:x")
	if err != nil || event.Name != "launch" {
		t.Errorf("Start() = %+v, %v", event, err)
	}
	if use, err := a.used(t.Context(), true); use.Processes != 0 || err != nil {
		t.Errorf("used() = %+v, %v; want nothing", use, err)
	}
	if err := life.Stop(); err != nil {
		t.Error(err)
	}
	if want := []string{"key Meta+R", "text notepad", "key Enter", "key Alt+F4"}; !slices.Equal(keys.did, want) {
		t.Errorf("the device did %q; want %q", keys.did, want)
	}
}

// TestCheckApps: a device refuses an app that it cannot start, and states that an app cannot begin in there.
func TestCheckApps(t *testing.T) {
	phone, other := PluggedConfig{Controls: lab.ControlsPart{ADB: "auto"}}, PluggedConfig{Controls: lab.ControlsPart{Gadget: "auto"}}
	command, pack := &lab.App{Command: "x"}, &lab.App{Package: "a.b"}
	keys := &lab.App{Recipe: "key a", Close: "key b"}
	for _, c := range []struct {
		app   *lab.App
		ways  []string
		state string
		want  string
	}{
		{command, VirtualWays, "", ""}, {pack, phone.Ways(), "", ""}, {keys, phone.Ways(), "", ""}, {keys, other.Ways(), "", ""},
		{pack, VirtualWays, "", "app: this device does not start a program by its package, but by its command"},
		{command, other.Ways(), "", "but by its recipe"}, {pack, other.Ways(), "", "by its package"},
		{keys, other.Ways(), lab.StateAppWarm, "state: app-warm: on a device at a port"},
	} {
		p, err := plan.Check(plan.Request{Plan: lab.Plan{Trials: 1, Arm: lab.Arm{App: c.app, State: c.state}}}, plan.Options{Scope: plan.ScopePerson})
		if err != nil {
			t.Fatal(err)
		}
		states := VirtualStates
		if c.ways[len(c.ways)-1] == lab.ByRecipe {
			states = other.States()
		}
		if err = CheckStates(p, states); err == nil {
			err = CheckApps(p, c.ways)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s on a device that starts programs by %q: %v; want %q", c.app, c.ways, err, c.want)
		}
	}
}
