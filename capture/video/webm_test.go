package video_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"eidetic/capture/reel"
	"eidetic/capture/video"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// changes returns a reel of 64 frames a second, some late, whose picture changes
// in the given frames only: each time the whole becomes lighter.
func changes(t *testing.T, f lab.Format, frames int, at ...int) *reel.Reader {
	t.Helper()
	var file bytes.Buffer
	w, err := reel.NewWriter(&file, reel.Header{Format: f})
	if err != nil {
		t.Fatal(err)
	}
	pix := make([]byte, f.FrameSize())
	for i := range frames {
		info := lab.FrameInfo{Seq: uint64(i), Time: lab.Time(i) * lab.Time(time.Second) / 64, Flags: lab.FrameRepeat}
		if i%3 == 1 {
			info.Time += lab.Time(5 * time.Millisecond)
		}
		if i == 0 {
			info.Flags, info.Changed = 0, []image.Rectangle{f.Bounds()}
		}
		for n, c := range at {
			if c == i {
				info.Flags, info.Changed = 0, []image.Rectangle{f.Bounds()}
				for k := range pix {
					pix[k] = byte(40 + 20*n)
				}
			}
		}
		if err := w.WriteFrame(lab.Frame{FrameInfo: info, Pix: pix}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := reel.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// probed is what ffprobe says of a film.
type probed struct {
	Packets []struct {
		Time     float64 `json:"pts_time,string"`
		Duration float64 `json:"duration_time,string"`
		Flags    string  `json:"flags"`
	} `json:"packets"`
	Format struct {
		Duration float64 `json:"duration,string"`
	} `json:"format"`
}

func probe(t *testing.T, path string) (p probed) {
	t.Helper()
	out, err := exec.Command("ffprobe", "-v", "error", "-of", "json", "-show_entries",
		"format=duration:packet=pts_time,duration_time,flags", path).Output()
	if err != nil {
		t.Fatalf("ffprobe: %v", err)
	}
	if err := json.Unmarshal(out, &p); err != nil {
		t.Fatalf("ffprobe's answer: %v", err)
	}
	return p
}

// TestWebMHoldsChangedFramesAtTheirTimes: what another program reads from the
// film are the frames that changed and the last one, when and for how long they stood.
func TestWebMHoldsChangedFramesAtTheirTimes(t *testing.T) {
	testlab.NeedProgram(t, "vpxenc")
	testlab.NeedProgram(t, "ffprobe")
	f := lab.Format{Pixels: lab.BGRX, Width: 320, Height: 200, Rate: 64}
	at := []int{0, 7, 8, 40, 200, 2500} // the last but one stands for more than a cluster's time
	const frames = 2600
	r := changes(t, f, frames, at...)
	path := filepath.Join(t.TempDir(), "film.webm")
	if err := video.WebM(context.Background(), r, path, video.Options{}); err != nil {
		t.Fatal(err)
	}
	got := probe(t, path)
	want := append(at, frames-1)
	if len(got.Packets) != len(want) {
		t.Fatalf("the film has %d pictures, want %d: %+v", len(got.Packets), len(want), got.Packets)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 0.0015 }
	seconds := func(i int) float64 { return r.Info(i).Time.Sub(0).Seconds() }
	end := seconds(frames-1) + 1.0/64
	for n, i := range want {
		until := end
		if n+1 < len(want) {
			until = seconds(want[n+1])
		}
		p := got.Packets[n]
		if !near(p.Time, seconds(i)) || !near(p.Duration, until-seconds(i)) {
			t.Errorf("picture %d stands at %.3f s for %.3f s, want %.3f and %.3f", n, p.Time, p.Duration, seconds(i), until-seconds(i))
		}
	}
	if !near(got.Format.Duration, end) {
		t.Errorf("the film lasts %.3f s, want %.3f", got.Format.Duration, end)
	}
	if key := got.Packets[0].Flags; key[0] != 'K' {
		t.Errorf("the first picture has the flags %q, want a key frame", key)
	}
}

// TestWebMPicturesAreTheFrames decodes a film and compares it with what was drawn.
func TestWebMPicturesAreTheFrames(t *testing.T) {
	testlab.NeedProgram(t, "vpxenc")
	testlab.NeedProgram(t, "ffmpeg")
	f := lab.Format{Pixels: lab.BGRX, Width: 64, Height: 48, Rate: 64}
	at := []int{0, 3, 30, 31}
	path := filepath.Join(t.TempDir(), "film.webm")
	if err := video.WebM(context.Background(), changes(t, f, 50, at...), path, video.Options{}); err != nil {
		t.Fatal(err)
	}
	// From a key frame on, every seek must lead to the right picture.
	for n, i := range at {
		seconds := float64(i)/64 + 0.007
		out, err := exec.Command("ffmpeg", "-v", "error", "-i", path, "-vf", "fps=1000", "-ss", formatted(seconds), "-frames:v", "1",
			"-f", "rawvideo", "-pix_fmt", "rgb24", "-").Output()
		if err != nil || len(out) != 64*48*3 {
			t.Fatalf("ffmpeg at %.3f s: %d bytes, %v", seconds, len(out), err)
		}
		if want := 40 + 20*n; math.Abs(float64(out[0])-float64(want)) > 3 {
			t.Errorf("at %.3f s the picture has grey %d, want %d", seconds, out[0], want)
		}
	}
}

func formatted(seconds float64) string {
	b, _ := json.Marshal(seconds) // a number always has JSON
	return string(b)
}

// TestWebMTellsOfTheEncoder: the end of the encoder is told, with what it took.
func TestWebMTellsOfTheEncoder(t *testing.T) {
	testlab.NeedProgram(t, "vpxenc")
	f := lab.Format{Pixels: lab.BGRX, Width: 320, Height: 200, Rate: 64}
	var ended *os.ProcessState
	path := filepath.Join(t.TempDir(), "film.webm")
	err := video.WebM(context.Background(), changes(t, f, 20, 0, 5), path, video.Options{Ended: func(p *os.ProcessState) { ended = p }})
	if err != nil || ended == nil || !ended.Success() {
		t.Errorf("WebM: %v, its encoder ended as %v", err, ended)
	}
}
