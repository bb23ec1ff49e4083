package device

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// TestDraw: a browser draws by software unless its plan says otherwise, and WebGL in software is Chromium's flag alone.
func TestDraw(t *testing.T) {
	for draw, want := range map[string]struct{ software, webgl bool }{
		"": {true, false}, lab.DrawSoftware: {true, false}, lab.DrawWebGL: {true, true}, lab.DrawGL: {false, false},
	} {
		args := (&other{what: lab.Browser{Name: lab.Chromium, Draw: draw}}).arguments("/home", Options{})
		software, webgl := slices.Contains(args, softwareFlag), slices.Contains(args, "--enable-unsafe-swiftshader")
		if software != want.software || webgl != want.webgl {
			t.Errorf("Chromium, draw %q: software %v, WebGL in software %v; want %+v", draw, software, webgl, want)
		}
		profile := t.TempDir()
		if err := writePrefs(profile, lab.Browser{Name: lab.Firefox, Draw: draw}); err != nil {
			t.Fatal(err)
		}
		prefs, err := os.ReadFile(filepath.Join(profile, "user.js"))
		if err != nil {
			t.Fatal(err)
		}
		if software := strings.Contains(string(prefs), `user_pref("gfx.webrender.software", true);`); software != want.software {
			t.Errorf("Firefox, draw %q: software %v; want %v", draw, software, want.software)
		}
	}
}
