package execute

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"eidetic/control/adb"
	"eidetic/internal/base/adbserver/adbtest"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

// TestPhoneIsSampled: of a phone the processes of the arm's app are read, or those of the browser; of one that is gone
// the reason is told.
func TestPhoneIsSampled(t *testing.T) {
	client, phone := adbtest.NewServer(t), adbtest.NewPhone(t)
	phone.Accept()
	phone.Connect(t, client)
	adbtest.Await(t, client, phone.Serial, "device")
	const app, browser = "org.example.notes", "com.android.chrome"
	phone.Change(func(s *adbtest.State) {
		s.Running = []adbtest.Process{{PID: os.Getpid(), Name: app}, {PID: os.Getppid(), Name: browser}}
	})
	a := &apps{phone: func(context.Context) (adb.Phone, error) { return adb.Phone{Client: client, Serial: phone.Serial}, nil }}
	sample := a.sampler(browser)
	for _, tt := range []struct {
		app  *lab.App
		want string
	}{{nil, browser}, {&lab.App{Package: app + "/.Main"}, app}} {
		a.app = tt.app
		end := sample(100, false)
		adbtest.AwaitReadings(t, phone, 4)
		how, list := end()
		names := map[string]bool{}
		for _, s := range list {
			if s.PID != 0 && s.Name != "" {
				names[s.Name] = true
			}
		}
		if how.Lacks != "" || how.Readings < 2 || len(names) != 1 || !names[tt.want] {
			t.Errorf("of %v: %+v, processes %v; want %s alone", tt.app, how, names, tt.want)
		}
	}
	a.phone = func(context.Context) (adb.Phone, error) { return adb.Phone{}, errors.New("the cable is out") }
	if how, list := a.sampler(browser)(10, false)(); how.Lacks != "the cable is out" || len(list) > 0 {
		t.Errorf("of a phone that is gone: %+v, %v", how, list)
	}
}

// TestWhoseProcessesAreSeen: those of a phone's browser and of its packages; a plan that asks for others is refused.
func TestWhoseProcessesAreSeen(t *testing.T) {
	phone := PluggedConfig{Controls: lab.ControlsPart{ADB: "auto"}, Recipe: "android-chrome"}
	page := lab.Plan{Arm: lab.Arm{Page: "https://a.test/"}, Trials: 2, Measure: &lab.Measure{MachineHz: 10}}
	app := lab.Plan{Arm: lab.Arm{App: &lab.App{Package: "org.example.notes"}}, Trials: 2, Measure: &lab.Measure{MachineHz: 10}}
	keys := lab.Plan{Arm: lab.Arm{App: &lab.App{Recipe: "key F1", Close: "key Alt+F4"}}, Trials: 2, Measure: &lab.Measure{MachineHz: 10}}
	for _, tt := range []struct {
		plan lab.Plan
		c    PluggedConfig
		want bool
	}{
		{page, phone, true}, {app, phone, true}, {keys, phone, false}, {page, PluggedConfig{Recipe: "windows-chrome"}, false},
		{page, PluggedConfig{Controls: phone.Controls, Recipe: "windows-chrome"}, false}, {app, PluggedConfig{Controls: phone.Controls}, true},
	} {
		c, err := plan.Check(plan.Request{Plan: tt.plan.WithDefaults()}, plan.Options{Scope: plan.ScopePerson})
		if err != nil {
			t.Fatal(err)
		}
		err = checkUnseen(c, tt.c.sees(c))
		if (err == nil) != tt.want || err != nil && !strings.Contains(err.Error(), "a phone's browser or package by adb") {
			t.Errorf("%+v on %+v: %v; want it seen: %v", tt.plan.Arm, tt.c.Controls, err, tt.want)
		}
	}
}
