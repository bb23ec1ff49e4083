package file

import (
	"context"
	"errors"
	"image"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"eidetic/capture"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// TestTold: times are exact far from the beginning, and what is no line of the filter's counts for nothing.
func TestTold(t *testing.T) {
	const head = "[Parsed_showinfo_0 @ 0x55d0c] [info] "
	said := newTold()
	for _, line := range []string{
		head + "config in time_base: 1/90000, frame_rate: 60/1\n",
		"    title           : [Parsed_showinfo_0 @ 0x1] n: 0 pts: 5 x\n",
		head + "n:   0 pts: 900000 pts_time:10      pos:1\n",
		"[h264 @ 0x55] [error] no picture\n",
		head + "n:   1 pts: 324901500 pts_time:3610.02 pos:2\n",
		head + "n:   2 pts: 324901499 pts_time:3610.02 pos:3\n",
		head + strings.Repeat("x", 3*maxTold) + "\n",
	} {
		for i := range line { // however it comes
			_, _ = said.Write([]byte(line[i : i+1]))
		}
	}
	for n, want := range []lab.Time{0, 3600_016_666_667} {
		if got, err := said.time(n, 77); got != want || err != nil {
			t.Errorf("frame %d is of %d, %v; want %d", n, got, err, want)
		}
	}
	if _, err := said.time(2, 77); err == nil || !strings.Contains(err.Error(), "back, from 3600.017 s to 3600.017 s") {
		t.Errorf("a frame that is before the last one: %v; want an error that says so", err)
	}
	if got := said.words.String(); got != "no picture\n" {
		t.Errorf("the decoder's error is %q; want %q", got, "no picture\n")
	}
	turned := newTold()
	turned.size = image.Pt(1080, 2400)
	for _, size := range []string{"1080x2400", "2400x1080", "1080x2400"} {
		_, _ = turned.Write([]byte(head + "n:   0 pts: 3 pts_time:3 pos:1 fmt:yuv420p sar:0/1 s:" + size + " i:P iskey:1\n"))
	}
	for n, want := range []string{"", "its size is 2400×1080, that of the frames before 1080×2400"} {
		if _, err := turned.time(n, 77); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("frame %d of a phone that is turned: %v; want %q", n, err, want)
		}
	}
	for name, c := range map[string]struct{ before, after, want string }{
		"concealed":    {"", "[h264 @ 0x5] [info] concealing 133 DC, 133 AC, 133 MV errors in I frame\n", "concealing 133 DC"},
		"marked":       {"[warning] file:a.mkv: corrupt decoded frame in stream 0\n", "", "corrupt decoded frame"},
		"packet":       {"", "[warning] file:a.ts: corrupt input packet in stream 0\n", "corrupt input packet"},
		"decoder":      {"", "[libdav1d @ 0x5] [error] Error parsing OBU data\n", "Error parsing OBU data"},
		"first pieces": {"[av1 @ 0x5] [error] no key frame\n", "[mp4 @ 0x5] [error] odd box\n[av1 @ 0x5] [info] hello\n", ""},
	} {
		hurt := newTold()
		hurt.codec = "av1"
		_, _ = hurt.Write([]byte(c.before + head + "n:   0 pts: 3 pts_time:3 pos:1\n" + c.after))
		err := hurt.damaged()
		var event *capture.Interruption
		if errors.As(err, &event) != (c.want != "") || event != nil && (event.Event.Kind != lab.SourceDamaged || !strings.Contains(event.Event.Detail, c.want)) {
			t.Errorf("%s: %v; want the event of %q", name, err, c.want)
		}
		if again := hurt.damaged(); again != nil {
			t.Errorf("%s is told twice: %v", name, again)
		}
	}
	none := newTold()
	_, _ = none.Write([]byte(head + "n:   0 pts: NOPTS pts_time:NOPTS pos:1\n"))
	if got, err := none.time(0, 77); got != 77 || err != nil {
		t.Errorf("a frame without a time is of %d, %v; want that by the rate, 77", got, err)
	}
}

// framesOf reads the times of a film, in ms.
func framesOf(t *testing.T, path string) (times []int64, err error) {
	t.Helper()
	return timesOf(t, path, 0)
}

// timesOf is framesOf for a film of this rate.
func timesOf(t *testing.T, path string, rate float64) (times []int64, err error) {
	t.Helper()
	s, err := Open(context.Background(), path, Options{Format: lab.Format{Rate: rate}})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for {
		f, err := s.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return times, nil
		}
		if err != nil {
			return times, err
		}
		times = append(times, f.Time.Sub(0).Round(time.Millisecond).Milliseconds())
	}
}

// TestPacketsThatAreNoFrames: of a stream that was cut out of another, what comes before the first key frame is not
// decoded. Streams that were joined byte by byte are read where that can be understood, or refused.
func TestPacketsThatAreNoFrames(t *testing.T) {
	testlab.NeedProgram(t, "ffmpeg")
	testlab.NeedProgram(t, "ffprobe")
	f := lab.Format{Pixels: lab.BGRX, Width: 16, Height: 8, Rate: 25}
	const frames, group, packet = 60, 20, 188 // bytes of a transport stream's packet
	data := make([]byte, frames*f.FrameSize())
	for i := range data {
		data[i] = byte(i * 31 / f.FrameSize() * i % 251)
	}
	whole := encode(t, f, data, "one.ts", "-c:v", "libx264", "-g", strconv.Itoa(group), "-keyint_min", strconv.Itoa(group), "-bf", "2", "-pix_fmt", "yuv420p")
	stream, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	other := func(name string, b []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// Its tables come first; the first third of the frames begins with a key frame, which is cut out with some more.
	const tables, away = 3 * packet, 6 * packet
	got, err := framesOf(t, other("cut.ts", slices.Concat(stream[:tables], stream[tables+away:])))
	if err != nil || len(got) == 0 || len(got) >= frames || !slices.IsSorted(got) {
		t.Errorf("a stream that was cut: %d frames at %v, %v; want those that can be decoded", len(got), got, err)
	}
	for i := range got {
		if i > 0 && got[i]-got[i-1] != 40 {
			t.Errorf("frame %d is %d ms behind the one before; want 40", i, got[i]-got[i-1])
		}
	}
	got, err = framesOf(t, other("twice.ts", slices.Concat(stream, stream)))
	if err == nil && (len(got) != 2*frames || !slices.IsSorted(got)) || err != nil && !strings.Contains(err.Error(), "goes back") {
		t.Errorf("a stream that is there twice: %d frames at %v, %v; want %d in their order, or what is wrong", len(got), got, err, 2*frames)
	}
}

// TestOtherY4M: films with colours that the box does not keep as they are come by way of ffmpeg, which is named where it
// is missing.
func TestOtherY4M(t *testing.T) {
	testlab.NeedProgram(t, "ffmpeg")
	testlab.NeedProgram(t, "ffprobe")
	f := lab.Format{Pixels: lab.BGRX, Width: 16, Height: 8, Rate: 25}
	film := encode(t, f, make([]byte, 3*f.FrameSize()), "full.y4m", "-pix_fmt", "yuv444p", "-strict", "-1")
	if got, err := framesOf(t, film); err != nil || !slices.Equal(got, []int64{0, 40, 80}) {
		t.Errorf("a film in 4:4:4 has frames at %v, %v; want 0, 40, 80 ms", got, err)
	}
	t.Setenv("PATH", "")
	if _, err := framesOf(t, film); err == nil || !strings.Contains(err.Error(), "apt-get install ffmpeg") {
		t.Errorf("without ffmpeg: %v; want what to install", err)
	}
}

func FuzzTold(f *testing.F) {
	const head = "[Parsed_showinfo_0 @ 0x1] [info] "
	f.Add([]byte(head + "config in time_base: 1/90000, frame_rate: 60/1\n" + head + "n: 0 pts: 3 pts_time:0 \n[a @ 0x2] [error] no\n"))
	f.Add([]byte(head + "n: 0 pts: 1 pts_time:0 s:16x8 i:P\n"))
	f.Add([]byte(head + "n: 0 pts: 9223372036854775807 p\n" + head + "n: 1 pts: NOPTS p\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer testlab.Input(t)()
		said := newTold()
		if n, err := said.Write(text); n != len(text) || err != nil {
			t.Errorf("Write() = %d, %v; want all %d bytes", n, err, len(text))
		}
		last := lab.Time(0)
		for n := range said.times {
			at, err := said.time(n, last)
			if err != nil {
				break
			}
			if at < last {
				t.Errorf("frame %d is of %d, before the last one, %d", n, at, last)
			}
			last = at
		}
		if len(said.line) > maxTold || len(said.words.String()) > maxComplaint {
			t.Errorf("%d and %d bytes are kept; want at most %d and %d", len(said.line), len(said.words.String()), maxTold, maxComplaint)
		}
	})
}
