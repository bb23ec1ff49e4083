package v4l2

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// TestEDID: every mode, with every wish, is an EDID that a reader of the field finds without fault, and that offers
// that mode.
func TestEDID(t *testing.T) {
	decoder := testlab.NeedProgram(t, "edid-decode")
	for i, m := range modes() {
		wishes := []string{"", "+ycbcr+audio"}
		if i == 0 {
			wishes = append(wishes, "+audio", "+ycbcr")
		}
		for _, wish := range wishes {
			e, err := NewEDID(m.name + wish)
			if err != nil || len(e) != 2*blockSize {
				t.Fatalf("NewEDID(%q) has %d bytes, %v", m.name+wish, len(e), err)
			}
			cmd := exec.CommandContext(t.Context(), decoder, "--check")
			cmd.Stdin = bytes.NewReader(e)
			out, err := cmd.CombinedOutput()
			text := string(out)
			if err != nil || !strings.Contains(text, "EDID conformity: PASS") || strings.Contains(text, "Warnings:") {
				t.Errorf("%s%s: %v\n%s", m.name, wish, err, text)
			}
			mode, rate, _ := strings.Cut(m.name, "p")
			offered := regexp.MustCompile(fmt.Sprintf(`DTD 1: +\d+x%s +%s\.000000 Hz`, mode, rate))
			if !offered.MatchString(text) || !strings.Contains(text, fmt.Sprintf("VIC %3d:", m.vic)) {
				t.Errorf("%s%s does not offer that mode, as number %d:\n%s", m.name, wish, m.vic, text)
			}
			for what, wanted := range map[string]bool{
				"Vendor-Specific Data Block (HDMI), OUI 00-0C-03": true,
				"Basic audio support":                             strings.Contains(wish, "audio"), "Linear PCM": strings.Contains(wish, "audio"),
				"Supports YCbCr 4:4:4": strings.Contains(wish, "ycbcr"),
			} {
				if strings.Contains(text, what) != wanted {
					t.Errorf("%s%s: %q is there: %v\n%s", m.name, wish, what, !wanted, text)
				}
			}
		}
	}
	for name, want := range map[string]string{"4k": "1080p60", "1080p60+sound": "+audio", "": "1080p60"} {
		if _, err := NewEDID(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewEDID(%q) = %v; want %q", name, err, want)
		}
	}
}

// TestEDIDTheCardCanTake: a mode beyond the receiver is refused before it is given, one within it is given, and both
// blocks of it.
func TestEDIDTheCardCanTake(t *testing.T) {
	for name, want := range map[string]string{"1080p60": "", "1080p120": "297.0 MHz", "2160p30": "at most 1920 × 1080 and 165.0 MHz"} {
		e, err := NewEDID(name)
		if err != nil {
			t.Fatal(err)
		}
		dev := newFake(4, 4, "BGR3", 12)
		dev.most = &limits{1920, 1080, 165_000_000}
		err = setEDID(dev, e)
		if want == "" && (err != nil || dev.edidBlocks != 2) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want) || dev.edidBlocks != 0) {
			t.Errorf("%s: setEDID() = %v, %d blocks were given; want %q", name, err, dev.edidBlocks, want)
		}
	}
}

// TestControls: controls are set by name, through the library and by our ioctls.
func TestControls(t *testing.T) {
	for name, open := range map[string]func(*fake) settings{
		"library": func(f *fake) settings { return fakeLibrary{f} },
		"ioctls":  func(f *fake) settings { return direct{dev: f, kind: typeCapture} },
	} {
		for _, c := range []struct {
			values map[string]int
			want   string
		}{
			{map[string]int{"gain": 7}, ""},
			{map[string]int{"Gain": 11}, `control "Gain": 11 is outside 0 … 10`},
			{map[string]int{"Temperature": 1}, `control "Temperature" can only be read`},
			{map[string]int{"Zoom": 1}, `the device has no control "Zoom"; it has: Gain, Temperature`},
		} {
			dev := newFake(4, 4, "BGR3", 12)
			dev.controls = []Control{{Name: "Gain", Max: 10, Default: 3, Value: 3, id: 5},
				{Name: "Temperature", Max: 100, Value: 40, ReadOnly: true, id: 9}}
			err := setControls(dev, open(dev), c.values)
			if c.want == "" && (err != nil || dev.controls[0].Value != 7) || c.want != "" && (err == nil || err.Error() != c.want) {
				t.Errorf("%s: setControls(%v) = %v, want %q; the device has %+v", name, c.values, err, c.want, dev.controls)
			}
			if list, err := controls(dev, open(dev)); err != nil || !slices.Equal(list, dev.controls) {
				t.Errorf("%s: controls() = %+v, %v; want %+v", name, list, err, dev.controls)
			}
		}
	}
}
