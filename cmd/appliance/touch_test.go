package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/device"
)

// colours is a script that a page shows by a colour what fingers did to it: blue for two that have moved to twice their
// distance, brown for two that have turned by 90°, grey for three.
const colours = `addEventListener('DOMContentLoaded', () => {
	document.documentElement.style.touchAction = 'none'
	const box = document.createElement('div')
	box.style = 'position: fixed; left: 0; bottom: 0; width: 40px; height: 40px; background: #fff; z-index: 9'
	document.body.append(box)
	let most = 0, first = 0, began = 0, ratio = 0, turned = 0
	const x = e => e.touches[0].clientX - e.touches[1].clientX, y = e => e.touches[0].clientY - e.touches[1].clientY
	const gap = e => Math.hypot(x(e), y(e)), angle = e => Math.atan2(y(e), x(e))
	const on = (kind, f) => addEventListener(kind, e => { e.preventDefault(); f(e) }, {passive: false})
	on('touchstart', e => { most = Math.max(most, e.touches.length); if (e.touches.length == 2) [first, began] = [gap(e), angle(e)] })
	on('touchmove', e => { if (e.touches.length == 2) [ratio, turned] = [gap(e) / first, (angle(e) - began + 2 * Math.PI) % (2 * Math.PI)] })
	on('touchend', e => {
		if (e.touches.length > 0) return
		box.style.background = most == 3 ? '#336699' : Math.abs(ratio - 2) < 0.1 ? '#123456' : Math.abs(turned - Math.PI / 2) < 0.05 ? '#654321' : '#f00'
		most = ratio = turned = 0
	})
})
`

// TestTouchSteps: on the virtual device, a page sees fingers that move apart, turn, and pan side by side.
func TestTouchSteps(t *testing.T) {
	testlab.Long(t, "another X server in the role of the virtual device's screen; package internal/run/device touches it")
	needLab(t)
	missing := device.CheckTouchScreen()
	testlab.Need(t, missing == nil, fmt.Sprint("a touch screen: ", missing))
	out := t.TempDir()
	plan := filepath.Join(out, "plan.yaml")
	const text = `still_s: 0.5
limit_s: 60
trials: 1
inject: colours.js
steps:
  - {name: open, open: "https://www.shop.test/tricks/consent"}
  - {name: pinch, pinch: "640,400 by 2", end: "changed and colour #123456 in 2,700,8,8 and still 300ms"}
  - {name: rotate, rotate: "640,400 by 90", end: "changed and colour #654321 in 2,700,8,8 and still 300ms"}
  - {name: three, pan: "640,500 to 640,300", fingers: 3, end: "changed and colour #336699 in 2,700,8,8 and still 300ms"}
`
	for file, content := range map[string]string{plan: text, filepath.Join(out, "colours.js"): colours} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := finishCmd(t, appliance(t, "run", "--plan", plan, "--out", out))
	content, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err != nil {
		t.Fatalf("status %d: %s%s: %v", got.status, got.out, got.err, err)
	}
	var report store.Report
	if err := json.Unmarshal(content, &report); err != nil || len(report.Trials) == 0 {
		t.Fatalf("%d trials, %v", len(report.Trials), err)
	}
	for _, trial := range report.Trials {
		for _, s := range trial.Steps {
			if want := "changed+colour+still"; s.Name != "open" && s.End != want {
				t.Errorf("trial %d: step %s ended by %q, want %q", trial.Number, s.Name, s.End, want)
			}
		}
		if trial.Ended != lab.EndSteps || len(trial.Steps) != 4 {
			t.Errorf("trial %d ended by %q after %d steps: %q; want all steps", trial.Number, trial.Ended, len(trial.Steps), trial.Invalid)
		}
	}
}
