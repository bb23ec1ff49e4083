package fleet

import (
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func lab1() Offer {
	return Offer{Labels: map[string]string{"room": "north"}, Devices: []OfferedDevice{
		{Name: "virtual", Kind: "virtual", Ready: true, Browsers: []string{"chromium", "firefox-esr"}},
		{Name: "phone", Kind: "port", Ready: true, Labels: map[string]string{"model": "Pixel 8 Pro"}},
		{Name: "laptop", Kind: "port", Problem: "no cable"},
	}}
}

func TestNeed(t *testing.T) {
	firefox := &lab.Browser{Name: lab.FirefoxESR}
	for _, c := range []struct {
		name string
		plan lab.Plan
		want string // devices of lab-1
	}{
		{"anything", lab.Plan{}, "virtual phone"},
		{"a device", lab.Plan{Device: "phone"}, "phone"},
		{"a device of this box", lab.Plan{Device: "lab-1/virtual"}, "virtual"},
		{"a device of another box", lab.Plan{Device: "lab-2/virtual"}, ""},
		{"not ready", lab.Plan{Device: "laptop"}, ""},
		{"any Pixel", lab.Plan{On: &lab.On{Labels: []string{"model=pixel*"}}}, "phone"},
		{"of a room", lab.Plan{On: &lab.On{Labels: []string{"room=n*r*h"}}}, "virtual phone"},
		{"of another room", lab.Plan{On: &lab.On{Labels: []string{"room=north2*"}}}, ""},
		{"either box", lab.Plan{On: &lab.On{Boxes: []string{"lab-1", "lab-2"}}}, "virtual phone"},
		{"another box", lab.Plan{On: &lab.On{Boxes: []string{"lab-2"}}}, ""},
		{"a browser", lab.Plan{Device: "virtual", Arm: lab.Arm{Browser: firefox}}, "virtual"},
	} {
		n, err := NeedOf(c.plan)
		if err != nil {
			t.Errorf("%s: NeedOf() = %v", c.name, err)
			continue
		}
		if got := strings.Join(n.Fits("lab-1", lab1()), " "); got != c.want {
			t.Errorf("%s: Fits() = %q; want %q", c.name, got, c.want)
		}
	}
	if _, err := NeedOf(lab.Plan{On: &lab.On{Labels: []string{"Pixel"}}}); err == nil || !strings.Contains(err.Error(), "on.labels[0]") {
		t.Errorf("NeedOf(a label without a value) = %v; want an error that names the field", err)
	}
}

func TestSplitKeepsCells(t *testing.T) {
	p := lab.Plan{
		Trials: 2, On: &lab.On{Each: "box"}, Device: "lab-1/virtual",
		Pages: []lab.PlanPage{{Name: "a", Page: "https://a.test/"}, {Name: "b", Page: "https://b.test/"}, {Name: "c", Page: "https://c.test/"}},
		Users: []lab.PlanUser{{Name: "new"}, {Name: "returning"}},
	}
	var whole, parts []string
	for _, c := range p.Cells() {
		whole = append(whole, c.Name)
	}
	for _, part := range Split(p) {
		if part.On != nil || part.Device != "" {
			t.Errorf("a part has on %v and device %q; want neither: they are the head's", part.On, part.Device)
		}
		for _, c := range part.Cells() {
			parts = append(parts, c.Name)
		}
	}
	if a, b := strings.Join(whole, ","), strings.Join(parts, ","); a != b || len(whole) != 6 {
		t.Errorf("cells of the parts = %s; want %s", b, a)
	}
}

func TestCheckFiles(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	if err := CheckFiles([]File{{Path: "run.json", SHA256: digest}, {Path: "trials/001/reel", SHA256: digest, Stays: true}}); err != nil {
		t.Errorf("CheckFiles() = %v; want nil", err)
	}
	for _, bad := range []string{"", "/etc/passwd", "../run.json", "a/../../b", ".lock", "trials/.hidden/x", "trials/001/.x", "a//b", "a\\b", "a\x00"} {
		if err := CheckFiles([]File{{Path: bad, SHA256: digest}}); err == nil {
			t.Errorf("CheckFiles(%q) = nil; want an error", bad)
		}
	}
	for _, both := range [][2]string{{"a", "a/b"}, {"trials/001/reel/x/y", "trials/001/reel"}} {
		err := CheckFiles([]File{{Path: both[0], SHA256: digest}, {Path: both[1], SHA256: digest}})
		if err == nil || !strings.Contains(err.Error(), "which is a file") {
			t.Errorf("CheckFiles(%q) = %v; want an error: no folder has both", both, err)
		}
	}
	if CheckFiles([]File{{Path: "a", SHA256: digest}, {Path: "a", SHA256: digest}}) == nil || CheckFiles([]File{{Path: "a", SHA256: "x"}}) == nil {
		t.Error("CheckFiles() accepts a path twice or a digest that is none")
	}
}

func FuzzMatches(f *testing.F) {
	f.Add("Pixel*", "Pixel 8")
	f.Add("*a*b*", "xaxbx")
	f.Add("a*a", "a")
	f.Fuzz(func(t *testing.T, pattern, value string) {
		defer testlab.Input(t)()
		got := matches(pattern, value)
		if !strings.Contains(pattern, "*") && got && !strings.EqualFold(pattern, value) {
			t.Errorf("matches(%q, %q) = %v", pattern, value, got)
		}
		if !matches("*", value) || !matches(value+"*", value) {
			t.Errorf("%q does not match itself with a star", value)
		}
	})
}
