package source_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"eidetic/capture/source"
	"eidetic/internal/lab"
)

// A name that means nothing is told apart from a screen that is not there.
func TestOpenErrors(t *testing.T) {
	junk := filepath.Join(t.TempDir(), "junk.y4m")
	if err := os.WriteFile(junk, []byte("junk"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, asked := range map[string]bool{
		"warp:1": true, "": true, "synthetic:warp": true, "file:" + junk: true, "file:" + junk + ".none": true,
		"v4l2:/dev/none": false, "x11::98765": false, "rfb:unix:/none": false, "scrcpy:": false,
	} {
		src, err := source.Open(t.Context(), source.Options{Name: name, Server: "/none"})
		var wrong *source.OptionError
		if err == nil || src != nil || errors.As(err, &wrong) != asked {
			t.Errorf("Open(%q) = %v, %v; want nil and an error, an OptionError: %v", name, src, err, asked)
		}
	}
	var wrong *source.OptionError
	if _, err := source.Open(t.Context(), source.Options{Name: "v4l2:/dev/none", EDID: "8k"}); !errors.As(err, &wrong) {
		t.Errorf("Open() with an unknown EDID = %v; want an OptionError", err)
	}
}

func TestSyntheticDefaults(t *testing.T) {
	src, err := source.Open(t.Context(), source.Options{Name: "synthetic:static"})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	want := lab.Format{Pixels: lab.BGRX, Width: 1280, Height: 720, Rate: 60}
	if got := src.Format(); got != want {
		t.Errorf("Format() = %+v; want %+v", got, want)
	}
	h := source.Header(src, "synthetic:static", time.Unix(1, 0))
	if h.Source != "synthetic:static" || h.Format != want || !h.Wall.Equal(time.Unix(1, 0)) {
		t.Errorf("Header() = %+v; want the source's name, format and time", h)
	}
}
