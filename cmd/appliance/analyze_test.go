package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// shots writes frames of one colour each, named by their time. A box makes them pages, but for
// those in the box's own green and red.
func shots(t *testing.T, colours map[int]color.Color) string {
	t.Helper()
	dir := t.TempDir()
	for ms, c := range colours {
		img := image.NewRGBA(image.Rect(0, 0, 32, 24))
		draw.Draw(img, img.Rect, image.NewUniform(c), image.Point{}, draw.Src)
		if c != (color.RGBA{0, 255, 0, 255}) && c != (color.RGBA{255, 0, 0, 255}) {
			draw.Draw(img, image.Rect(4, 4, 12, 12), image.NewUniform(color.RGBA{90, 0, 160, 255}), image.Point{}, draw.Src)
		}
		if err := writePicture(filepath.Join(dir, fmt.Sprintf("ms_%06d.png", ms)), img); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAnalyzeFrames(t *testing.T) {
	dir := shots(t, map[int]color.Color{0: color.White, 100: color.White, 500: color.Gray{128}, 1000: color.Black})
	heat := filepath.Join(t.TempDir(), "heat.png")
	status, out, errs := invoke(t, "analyze", "--frames", dir, "--json", "--metrics", "all", "--heat", heat)
	if status != exitGood {
		t.Fatalf("status %d: %s", status, errs)
	}
	var got analysed
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, m := range got.Measurements {
		values[m.Name] = m.Value
	}
	for name, want := range map[string]float64{"first_visual_change_ms": 500, "last_visual_change_ms": 1000, "speed_index_ms": 1000, "visual_complete_85_ms": 1000, "unique_frames": 2} {
		if values[name] != want {
			t.Errorf("%s = %v, want %v", name, values[name], want)
		}
	}
	if _, ok := values["perceptual_speed_index_ms"]; !ok || len(got.Warnings) != 1 {
		t.Errorf("measurements %v, warnings %q", values, got.Warnings)
	}
	if _, err := os.Stat(heat); err != nil {
		t.Error(err)
	}

	status, out, _ = invoke(t, "analyze", "--frames", dir, "--metrics", "first_visual_change_ms")
	if status != exitGood || !strings.Contains(out, "500.0 ms") || !strings.Contains(out, "between 100.0 and 500.0") ||
		strings.Contains(out, "speed_index") {
		t.Errorf("status %d: %s", status, out)
	}
	status, out, _ = invoke(t, "analyze", "--frames", dir, "--metrics", "mean_first_change_ms", "--bars")
	if bars := "   1000.0 ms " + strings.Repeat("█", 50) + " 100.0 %\n"; status != exitGood || !strings.HasSuffix(out, bars) || !strings.Contains(out, "      0.0 ms ████···") ||
		!strings.Contains(out, "mean_first_change_ms  500.0 ms") {
		t.Errorf("status %d: %s; want the load as bars", status, out)
	}
	status, out, _ = invoke(t, "analyze", "--frames", dir, "--flavour", "wpt", "--metrics", "speed_index_ms")
	if status != exitGood || !strings.Contains(out, "speed_index_wpt_ms") || strings.Contains(out, "speed_index_ms") {
		t.Errorf("status %d: %s; want WebPageTest's index", status, out)
	}
	status, out, _ = invoke(t, "analyze", "--frames", dir, "--flavour", "wpt")
	if status != exitGood || !strings.Contains(out, "speed_index_wpt_ms") || strings.Contains(out, "speed_index_ms") {
		t.Errorf("status %d: %s", status, out)
	}
}

// What is no page load, or was compressed, is said beside the numbers.
func TestAnalyzeDoubts(t *testing.T) {
	green, box := color.RGBA{0, 255, 0, 255}, color.RGBA{90, 0, 160, 255}
	for _, c := range []struct {
		colours map[int]color.Color
		want    string
	}{
		{map[int]color.Color{0: color.Black, 20: color.Black, 40: color.Black}, "nothing changed on the screen after frame 0"},
		{map[int]color.Color{0: green, 20: color.Black, 40: box}, "the final picture is blank: all but 0 of 768"},
		{map[int]color.Color{0: color.White, 20: color.Black, 40: color.White}, "that of frame 0 again"},
	} {
		status, out, errs := invoke(t, "analyze", "--frames", shots(t, c.colours))
		if status != exitGood || !strings.Contains(errs, "no page load that could be measured: ") || !strings.Contains(errs, c.want) {
			t.Errorf("analyze: status %d: %s%s; want a note with %q", status, out, errs, c.want)
		}
	}
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "ms_0.jpg"))
	if err == nil {
		err = errors.Join(jpeg.Encode(f, image.NewGray(image.Rect(0, 0, 8, 8)), nil), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, _, errs := invoke(t, "analyze", "--frames", dir); !strings.Contains(errs, "the source is lossy (JPEG pictures)") ||
		!strings.Contains(errs, "--tolerance 16") {
		t.Errorf("JPEG pictures: %q, want a note that the source is lossy", errs)
	}
}

// TestAnalyzeGreen: the green page gives start and content area.
func TestAnalyzeGreen(t *testing.T) {
	green := color.RGBA{0, 255, 0, 255}
	dir := shots(t, map[int]color.Color{0: color.Black, 20: green, 40: green, 60: color.White, 80: color.Black})
	status, out, errs := invoke(t, "analyze", "--frames", dir)
	if status != exitGood || !strings.Contains(out, "frames 2 … 4, content 32x24+0+0") || errs != "" {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
}

// TestAnalyzeRed: the red page ends the load, and --end measures it all the same.
func TestAnalyzeRed(t *testing.T) {
	green, red := color.RGBA{0, 255, 0, 255}, color.RGBA{255, 0, 0, 255}
	dir := shots(t, map[int]color.Color{0: green, 20: color.White, 40: color.Black, 60: color.Black, 80: red, 100: red})
	status, out, errs := invoke(t, "analyze", "--frames", dir)
	if status != exitGood || !strings.Contains(out, "frames 0 … 3,") || !strings.Contains(errs, "the red page ends the load with frame 4") {
		t.Errorf("analyze: status %d: %s%s; want frames 0 … 3, and a note about the red page", status, out, errs)
	}
	status, out, errs = invoke(t, "analyze", "--frames", dir, "--end", "6")
	if status != exitGood || !strings.Contains(out, "frames 0 … 5,") || strings.Contains(errs, "the red page ends") {
		t.Errorf("analyze --end 6: status %d: %s%s; want frames 0 … 5", status, out, errs)
	}
}

func TestAnalyzeReel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "screen.reel")
	if status, _, errs := invoke(t, "capture", "--source", "synthetic:load", "--size", "320x200", "--out", file, "--duration", "300ms"); status != exitGood {
		t.Fatalf("capture: status %d: %s", status, errs)
	}
	for _, cut := range []bool{false, true} {
		if st, err := os.Stat(file); err != nil || cut && os.Truncate(file, st.Size()-1) != nil {
			t.Fatal(err)
		}
		if status, out, errs := invoke(t, "analyze", file); status != exitGood || !strings.Contains(out, "last_visual_change_ms") ||
			strings.Contains(errs, "was cut off") != cut {
			t.Errorf("cut %v: status %d: %s%s", cut, status, out, errs)
		}
	}
}

// The times of a trial's reel count from its navigation, as in its report.
func TestAnalyzeCountsFromTheNavigation(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "screen.reel")
	if status, _, errs := invoke(t, "capture", "--source", "synthetic:load", "--size", "320x200", "--out", file, "--duration", "300ms"); status != exitGood {
		t.Fatalf("capture: status %d: %s", status, errs)
	}
	r, err := openReel(file)
	if err != nil {
		t.Fatal(err)
	}
	began := r.Info(0).Time
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	measure := func(args ...string) (value float64, origin string) {
		t.Helper()
		status, out, errs := invoke(t, append([]string{"analyze", file, "--json", "--metrics", "last_visual_change_ms"}, args...)...)
		var got analysed
		if err := json.Unmarshal([]byte(out), &got); status != exitGood || err != nil || len(got.Measurements) != 1 {
			t.Fatalf("%v: status %d (%v): %s%s", args, status, err, out, errs)
		}
		return got.Measurements[0].Value, got.Origin
	}
	log := func(name string, events ...lab.Event) string {
		t.Helper()
		var text []byte
		for _, e := range events {
			line, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			text = append(append(text, line...), '\n')
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	const ms = lab.Time(time.Millisecond)
	alone, origin := measure()
	if origin != "frame 0" {
		t.Errorf("without a log times count from %s", origin)
	}
	beside := log("events.jsonl", lab.Event{Name: "key"}, lab.Event{Name: "navigate", Earliest: began + 9*ms, Latest: began + 11*ms})
	if got, origin := measure(); math.Abs(alone-10-got) > 0.01 || !strings.Contains(origin, beside) {
		t.Errorf("with a log beside it %v from %s, want 10 less than %v", got, origin, alone)
	}
	if got, origin := measure("--start", "0"); got != alone || origin != "frame 0" {
		t.Errorf("from a frame that was asked for: %v from %s", got, origin)
	}
	named := log("named.jsonl", lab.Event{Name: "navigate", Earliest: began + 5*ms, Latest: began + 5*ms})
	if got, _ := measure("--events", named); math.Abs(alone-5-got) > 0.01 {
		t.Errorf("with a log that was named: %v", got)
	}
	log("events.jsonl", lab.Event{Name: "navigate", Earliest: 1, Latest: 2})
	if got, origin := measure(); got != alone || origin != "frame 0" {
		t.Errorf("with the log of another reel: %v from %s", got, origin)
	}
	for file, want := range map[string]string{
		beside: "outside the time of the film", filepath.Join(dir, "none"): "no such file", log("empty"): "no navigation", file: "line 1",
	} {
		if status, _, errs := invoke(t, "analyze", filepath.Join(dir, "screen.reel"), "--events", file); status != exitUsage ||
			!strings.Contains(errs, want) {
			t.Errorf("--events %s: status %d: %s", file, status, errs)
		}
	}
}

func TestAnalyzeRefusals(t *testing.T) {
	dir := shots(t, map[int]color.Color{0: color.White, 16: color.Black})
	empty := t.TempDir()
	nameless := t.TempDir()
	for file, text := range map[string]string{filepath.Join(nameless, "a.png"): "", filepath.Join(dir, "notes.txt"): "no picture"} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "1.png"), []byte("no picture"), 0o644); err != nil {
		t.Fatal(err)
	}
	runFolder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(runFolder, "trials/001"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(runFolder, "trials/001/screen.reel"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	bare := filepath.Join(t.TempDir(), "bare.y4m")
	if err := os.WriteFile(bare, []byte("YUV4MPEG2 W4 H2 F30:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{}, "name a reel"},
		{[]string{bare}, "bare.y4m has no pictures"},
		{[]string{"a.reel", "--frames", dir}, "not both"},
		{[]string{"nowhere.reel"}, "nowhere.reel"},
		{[]string{empty}, "no PNG, JPEG or WebP"},
		{[]string{runFolder}, "a run with 1 recordings: name one, such as " + filepath.Join(runFolder, "trials/001/screen.reel")},
		{[]string{filepath.Join(broken, "1.png")}, "is no reel"},
		{[]string{"--frames", dir, "--metrics", "all,speedy"}, `no measurement "speedy"`},
		{[]string{"--frames", empty}, "no PNG, JPEG or WebP"},
		{[]string{"--frames", nameless}, "no number"},
		{[]string{"--frames", broken}, "1.png"},
		{[]string{"--frames", dir, "--metrics", "speedy"}, `no measurement "speedy"`},
		{[]string{"--frames", dir, "--content", "9x9"}, "WIDTHxHEIGHT"},
		{[]string{"--frames", dir, "--ignore", "40x40+0+0"}, "cover the whole"},
		{[]string{"--frames", dir, "--start", "2"}, "start must be before end"},
		{[]string{"--frames", dir, "--flavour", "vanilla"}, "flavour"},
		{[]string{"--frames", dir, "--rate=-1"}, "outside"},
	} {
		if status, _, errs := invoke(t, append([]string{"analyze"}, tt.args...)...); status != exitUsage ||
			!strings.Contains(errs, tt.want) {
			t.Errorf("%v: status %d: %s", tt.args, status, errs)
		}
	}
}

// TestAnalyzeCutFilm: of a film that ends within a frame, as a recorder that was killed leaves it, the whole frames are
// analysed, and the end is told; one without a whole frame is refused.
func TestAnalyzeCutFilm(t *testing.T) {
	film := "YUV4MPEG2 W16 H16 F10:1 Cmono\n"
	for i := range 8 {
		film += "FRAME\n" + strings.Repeat(string(rune('z'-20*(i/3))), 256)
	}
	file := filepath.Join(t.TempDir(), "film.y4m")
	for name, test := range map[string]struct {
		text   string
		status int
		want   string
	}{
		"in a frame": {film + "FRAME\nzzz", exitGood, "the film was cut off (frame 8: the last frame is cut off: 3 bytes of 256)"},
		"in a head":  {film + "FRA", exitGood, "the film was cut off (frame 8: "}, "behind one": {film + "FRAME\n", exitGood, "the film was cut off (frame 8: "},
		"at once": {film[:40], exitUsage, "frame 0: the last frame is cut off"},
	} {
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		status, out, errs := invoke(t, "analyze", file, "--metrics", "first_visual_change_ms")
		if status != test.status || !strings.Contains(errs, test.want) || status == exitGood && !strings.Contains(out, "300.0 ms") {
			t.Errorf("%s: status %d, %s, %s; want %d with %q, and a change at 300 ms", name, status, out, errs, test.status, test.want)
		}
	}
}
