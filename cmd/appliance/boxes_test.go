package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/web/panel"
)

// headBoxes are a fleet of one box, whose texts are hostile.
type headBoxes struct {
	box       panel.Box
	gone      bool
	reference *panel.Reference
	rollout   *panel.Rollout
	did       []string
}

func newHeadBoxes() *headBoxes {
	return &headBoxes{box: panel.Box{
		Name: "lab-1", State: "idle", Health: "drifting", Reason: "slower\x1b[2Jnow", Seen: time.Unix(1.8e9, 0), Joined: time.Unix(1.7e9, 0), Cores: 4, Memory: 8 << 30,
		Devices: []panel.BoxDevice{{Name: "virtual", Kind: "virtual", Ready: true, Browsers: []string{"chromium"}, Health: "drifting"}},
	}}
}

func (h *headBoxes) List(context.Context) ([]panel.Box, error) {
	if h.gone {
		return nil, nil
	}
	return []panel.Box{h.box}, nil
}

func (h *headBoxes) NewCode(context.Context, string) (panel.JoinCode, error) {
	return panel.JoinCode{Link: "eidetic-head://head.example:8443/K7QM3VTD9XW2?pin=3b1c", Expires: time.Unix(1.8e9, 0)}, nil
}

func (h *headBoxes) Change(_ context.Context, _ string, c panel.BoxChange) (panel.Box, error) {
	switch {
	case c.Maintenance != nil && *c.Maintenance:
		h.box.Health = "maintenance"
	case c.Bad != nil && *c.Bad:
		h.box.Health = "bad"
	case c.Maintenance != nil || c.Bad != nil:
		h.box.Health = "good"
	}
	if c.Reason != nil {
		h.box.Reason = *c.Reason
	}
	if c.Labels != nil {
		h.box.Labels = *c.Labels
	}
	return h.box, nil
}

func (h *headBoxes) Remove(context.Context, string) error { h.gone = true; return nil }

func (h *headBoxes) Readings(_ context.Context, name, device string) (panel.BoxReadings, error) {
	at := time.Unix(1.8e9, 0)
	return panel.BoxReadings{Box: name, Device: device, Health: "drifting", Why: "time_to_stable_ms rose by 5 %", Since: &at, Changed: []string{"browser: 140 became 141"},
		Baselines: []panel.BoxBaseline{{Metric: "time_to_stable_ms", Unit: "ms", Median: 1000, Low: 985, High: 1015}},
		Readings:  []panel.BoxReading{{Run: "r", At: at, Levels: []lab.CalibrationLevel{{Metric: "time_to_stable_ms", Unit: "ms", Median: 1050}}}}}, nil
}

func (h *headBoxes) Reference(context.Context) (*panel.Reference, error) { return h.reference, nil }

func (h *headBoxes) SetReference(_ context.Context, r panel.Reference) error {
	if r.Plan.Trials == 7 {
		return &panel.Refusal{Status: http.StatusUnprocessableEntity, Err: errors.New("plan.trials: 7 is unlucky")}
	}
	r.ID = "r1"
	h.reference = &r
	return nil
}

func (h *headBoxes) RemoveReference(context.Context) error { h.reference = nil; return nil }

func (h *headBoxes) Measure(_ context.Context, name, device string) (string, error) {
	h.did = append(h.did, "measure "+name+"/"+device)
	return "20261124-090000-reference", nil
}

func (h *headBoxes) Rebase(_ context.Context, name, device string) error {
	h.did = append(h.did, "accept "+name+"/"+device)
	return nil
}

func (h *headBoxes) Rollout(context.Context) (*panel.Rollout, error) { return h.rollout, nil }

func (h *headBoxes) Update(_ context.Context, u panel.BoxUpdate) (panel.Rollout, error) {
	text, err := io.ReadAll(u.Bundle)
	if err != nil {
		return panel.Rollout{}, err
	}
	if string(text) != "signed" {
		return panel.Rollout{}, &panel.Refusal{Status: http.StatusUnprocessableEntity, Err: errors.New("update: damaged: not an update bundle")}
	}
	h.did = append(h.did, "update "+strings.Join(u.Boxes, ",")+" "+strings.Join(u.Labels, ","))
	at := time.Unix(1.8e9, 0)
	h.rollout = &panel.Rollout{Version: "1.4", State: "running", Doing: "0 of 1 boxes updated; lab-1 measures\x1b[2J the reference",
		Boxes: []panel.RolloutBox{{Name: "lab-1", State: "measuring", Since: &at}}}
	return *h.rollout, nil
}

func (h *headBoxes) StopUpdate(_ context.Context, by string) (panel.Rollout, error) {
	if h.rollout == nil {
		return panel.Rollout{}, &panel.Refusal{Status: http.StatusConflict, Err: errors.New("no update goes on")}
	}
	h.rollout.State, h.rollout.Why, h.rollout.Doing = "stopped", "stopped by "+by, "0 of 1 boxes updated; stopped by "+by
	return *h.rollout, nil
}

// The boxes of a fleet are listed, let join, changed, measured and removed by commands.
func TestBoxesCommand(t *testing.T) {
	head := newHeadBoxes()
	b := newTestBoxOf(t, alone, head)
	plan := filepath.Join(t.TempDir(), "reference.yaml")
	write := func(text string) {
		if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("page: https://www.shop.example/\narchive: shop.wacz\n")
	bundle := filepath.Join(t.TempDir(), "appliance.update")
	if err := os.WriteFile(bundle, []byte("signed"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(tokenVariable, b.token)
	command := func(args string) (int, string) {
		var out bytes.Buffer
		status := run(t.Context(), append(append([]string{"boxes"}, strings.Split(args, " ")...), "--box", b.url()), &streams{strings.NewReader(""), &out, &out})
		return status, out.String()
	}
	for _, c := range []struct {
		args   string
		status int
		want   []string
	}{
		{"ls", exitGood, []string{"BOX", "lab-1", "drifting", "virtual", "slower"}},
		{"--json", exitGood, []string{`"name": "lab-1"`}},
		{"code", exitGood, []string{"appliance join", "eidetic-head://head.example:8443/K7QM3VTD9XW2?pin=3b1c\n"}},
		{"show lab-1", exitGood, []string{"4 cores, 8 GB", "time_to_stable_ms rose by 5 %", "browser: 140 became 141", "1050 ms, band 985 to 1015"}},
		{"show lab-9", exitUsage, []string{"no box"}},
		{"set lab-1", exitUsage, []string{"nothing is to change"}},
		{"set lab-1 --bad --good", exitUsage, []string{"can't be used together"}},
		{"set lab-1 --label room", exitUsage, []string{"KEY=VALUE"}},
		{"set lab-1 --maintenance --reason disk", exitGood, []string{"is maintenance: disk"}},
		{"set lab-1 --no-maintenance", exitGood, []string{"is good"}},
		{"set lab-1 --bad", exitGood, []string{"is bad"}},
		{"set lab-1 --good --label room=2.14 --label row=2=3", exitGood, []string{"room=2.14 row=2=3"}},
		{"set lab-1 --no-labels", exitGood, []string{"labels: none"}},
		{"measure lab-1 virtual", exitGood, []string{"Run 20261124-090000-reference"}},
		{"accept lab-1 virtual", exitGood, []string{"is its baseline"}},
		{"reference", exitUsage, []string{"no reference"}},
		{"reference --plan " + plan, exitUsage, []string{"go together"}},
		{"reference --plan " + plan + " --every 5bananas", exitUsage, []string{"every:"}},
		{"reference --plan " + plan + " --every 6h", exitGood, []string{"every 6h", "shop.wacz", "r1"}},
		{"reference", exitGood, []string{"https://www.shop.example/"}},
		{"reference --remove", exitGood, []string{"no reference"}},
		{"update", exitGood, []string{"never updated"}},
		{"update --stop", exitUsage, []string{"no update goes on"}},
		{"update --box-name lab-1", exitUsage, []string{"name the file"}},
		{"update --stop " + bundle, exitUsage, []string{"without a file"}},
		{"update " + plan, exitUsage, []string{"not an update bundle"}},
		{"update " + bundle + " --box-name lab-1 --label room=2.*", exitGood, []string{"Update to 1.4: running; 0 of 1 boxes updated", "lab-1  measuring"}},
		{"ls", exitGood, []string{"BOX", "Update to 1.4: running"}},
		{"update --stop", exitGood, []string{"Update to 1.4: stopped", "stopped by"}},
		{"update --json", exitGood, []string{`"state": "stopped"`}},
		{"remove lab-1", exitGood, []string{"is removed"}},
		{"ls", exitGood, []string{"appliance boxes code"}},
	} {
		status, out := command(c.args)
		if status != c.status || strings.Contains(out, "\x1b") {
			t.Errorf("boxes %s: status %d, %q; want %d without escapes", c.args, status, out, c.status)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("boxes %s printed %q; want %q", c.args, out, want)
			}
		}
	}
	if got := strings.Join(head.did, "; "); got != "measure lab-1/virtual; accept lab-1/virtual; update lab-1 room=2.*" {
		t.Errorf("the head did %q", got)
	}
	write("page: https://www.shop.example/\narchive: shop.wacz\ntrials: 7\n")
	if status, out := command("reference --plan " + plan + " --every 6h"); status != exitUsage || !strings.Contains(out, "7 is unlucky") {
		t.Errorf("a refused plan: status %d, %q", status, out)
	}
}

// A panel that is no head's is named as that.
func TestBoxesOfABox(t *testing.T) {
	b := newTestBox(t, alone)
	t.Setenv(tokenVariable, b.token)
	for _, args := range []string{"ls", "code"} {
		var out bytes.Buffer
		status := run(t.Context(), []string{"boxes", args, "--box", b.url()}, &streams{strings.NewReader(""), &out, &out})
		if status != exitUsage || !strings.Contains(out.String(), "not of a fleet's head") {
			t.Errorf("boxes %s: status %d, %q; want %d and that it is no head", args, status, out.String(), exitUsage)
		}
	}
}
