package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/analysis/filmtest"
	"eidetic/capture/reel"
	"eidetic/internal/lab"
)

// scrolled writes pictures of a page that is scrolled by step a frame, with a stall of four.
func scrolled(t *testing.T, step int) string {
	t.Helper()
	const w, h = 160, 120
	dir := t.TempDir()
	page := filmtest.NewPage(w, 800, 5)
	pix := make([]byte, 4*w*h)
	n := 0
	for i := range 30 {
		if i < 12 || i >= 16 {
			n++
		}
		page.Show(pix, w, h, 0, n*step)
		img := image.NewRGBA(image.Rect(0, 0, w, h))
		for k := 0; k < len(pix); k += 4 {
			img.SetRGBA(k/4%w, k/4/w, color.RGBA{pix[k+2], pix[k+1], pix[k], 255})
		}
		if err := writePicture(filepath.Join(dir, fmt.Sprintf("frame_%03d.png", i)), img); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestAnalyzeGroups: a folder that is named like a reel, the groups, a table and charts.
func TestAnalyzeGroups(t *testing.T) {
	dir, out := scrolled(t, 7), t.TempDir()
	events := filepath.Join(out, "events.jsonl")
	line, err := json.Marshal(lab.Event{Name: "wheel", Earliest: 5e6, Latest: 7e6})
	if err != nil {
		t.Fatal(err)
	}
	nav, err := json.Marshal(lab.Event{Name: "navigate", Earliest: 1e6, Latest: 2e6})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(events, append(append(nav, '\n'), append(line, '\n')...), 0o600); err != nil {
		t.Fatal(err)
	}
	table, charts := filepath.Join(out, "f.csv"), filepath.Join(out, "charts")
	status, text, errs := invoke(t, "analyze", dir, "--rate", "60", "--metrics", "rate,motion,blank,tearing,response", "--json", "--events", events,
		"--regions", "top=160x30+0+0", "--csv", table, "--charts", charts)
	if status != exitGood {
		t.Fatalf("status %d: %s", status, errs)
	}
	var got analysed
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, n := range got.More.Numbers {
		if n.Region == "" {
			values[n.Name] = n.Value
		} else if n.Region != "top" {
			t.Errorf("a number of region %q", n.Region)
		}
		if n.Method == "" {
			t.Errorf("%s says no method", n.Name)
		}
	}
	for name, want := range map[string]float64{"unique_frames": 25, "missed_refreshes": 4, "stalls": 1, "movement_y_px": -7 * 25, "torn_frames": 0,
		"movement_overshoot_px": 0, "jank_count": 1} {
		if v, ok := values[name]; !ok || v != want {
			t.Errorf("%s = %v, want %v", name, v, want)
		}
	}
	for _, name := range []string{"input_to_movement_ms", "input_to_change_ms"} {
		if v := values[name]; v < 10 || v > 11 {
			t.Errorf("%s = %v, want the frame after the input, 10.7", name, v)
		}
	}
	if len(got.More.Stalls) != 1 || got.More.Settings["tolerance"] != "0,0,0" {
		t.Errorf("stalls %+v, settings %v", got.More.Stalls, got.More.Settings)
	}
	rows, err := os.ReadFile(table)
	if lines := strings.Split(strings.TrimSpace(string(rows)), "\n"); err != nil || len(lines) != 31 || !strings.Contains(lines[0], "dy_pixels") {
		t.Errorf("%v, %d lines, the first %q", err, len(lines), lines[0])
	}
	for _, name := range []string{"load.svg", "displacement.png", "blank.svg", "heat.png"} {
		if st, err := os.Stat(filepath.Join(charts, name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnalyzePair: two recordings side by side.
func TestAnalyzePair(t *testing.T) {
	a, b := scrolled(t, 7), scrolled(t, 9)
	status, text, errs := invoke(t, "analyze", a, b, "--rate", "60", "--metrics", "movement_y_px,unique_frames")
	if status != exitGood || !strings.Contains(text, "-175.00 pixels") || !strings.Contains(text, "-225.00 pixels") || !strings.Contains(text, "-50.00") {
		t.Errorf("status %d: %s%s", status, text, errs)
	}
	status, text, _ = invoke(t, "analyze", a, b, "--rate", "60", "--metrics", "tearing", "--json")
	var got pair
	if err := json.Unmarshal([]byte(text), &got); status != exitGood || err != nil || got.A.More == nil || got.B.More == nil {
		t.Errorf("status %d, %v: %s", status, err, text)
	}
}

// TestAnalyzeFilm: a film that is no reel is imported on the way.
func TestAnalyzeFilm(t *testing.T) {
	const w, h = 32, 16
	var film strings.Builder
	fmt.Fprintf(&film, "YUV4MPEG2 W%d H%d F60:1 Ip A1:1 Cmono\n", w, h)
	for i := range 6 {
		film.WriteString("FRAME\n")
		film.Write(bytesOf(byte(30+20*(i/2)), w*h))
	}
	file := filepath.Join(t.TempDir(), "film.y4m")
	if err := os.WriteFile(file, []byte(film.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	status, text, errs := invoke(t, "analyze", file, "--metrics", "unique_frames,rate")
	if status != exitGood || !strings.Contains(text, "unique_frames") || !strings.Contains(text, "30.00 frames/s") {
		t.Errorf("status %d: %s%s", status, text, errs)
	}
}

// TestAnalyzeTroubles: what happened to the source is told beside the measurements.
func TestAnalyzeTroubles(t *testing.T) {
	format := lab.Format{Pixels: lab.Grey, Width: 16, Height: 16, Rate: 60}
	path := filepath.Join(t.TempDir(), "film.reel")
	w, err := reel.Create(path, reel.Header{Format: format})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		f := lab.Frame{Pix: bytesOf(byte(50*i), 256), FrameInfo: lab.FrameInfo{Seq: uint64(i), Time: lab.Time(i * 16_666_667),
			Changed: []image.Rectangle{format.Bounds()}}}
		if i == 2 {
			f.Flags = lab.FrameCorrupt
		}
		if err := w.WriteFrame(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.WriteEvent(lab.SourceEvent{Kind: lab.SourceDamaged, Detail: "odd bytes"}), w.Close()); err != nil {
		t.Fatal(err)
	}
	status, _, errs := invoke(t, "analyze", path)
	for _, want := range []string{"damaged video, odd bytes: pictures may not be", "1 pictures are marked as damaged"} {
		if status != exitGood || !strings.Contains(errs, want) {
			t.Errorf("status %d: %s; want %q", status, errs, want)
		}
	}
}

func bytesOf(v byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = v
	}
	return b
}

// TestAnalyzeDeepRefusals: absurd thresholds are refused with what to write instead.
func TestAnalyzeDeepRefusals(t *testing.T) {
	dir := scrolled(t, 3)
	for _, tt := range []struct{ flag, value, want string }{
		{"--tolerance", "300", "from 0 to 255"},
		{"--tolerance", "1,2", "from 0 to 255"},
		{"--tolerance", "auto", "say a number instead"},
		{"--regions", "menu", "NAME=WIDTHxHEIGHT"},
		{"--regions", "menu=999x9+0+0", "not inside the frame"},
		{"--refresh", "5000", "1 … 1000"},
		{"--blank", "pink", "#ff00ff"},
		{"--unique-pixels", "0", "start at 1"},
	} {
		if status, _, errs := invoke(t, "analyze", dir, "--rate", "60", "--metrics", "rate,blank", tt.flag, tt.value); status != exitUsage ||
			!strings.Contains(errs, tt.want) {
			t.Errorf("%s %s: status %d: %s; want %q", tt.flag, tt.value, status, errs, tt.want)
		}
	}
}
