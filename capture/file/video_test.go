package file

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/capture"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// encode has ffmpeg make a video of the raw BGRX frames in data.
func encode(t *testing.T, f lab.Format, data []byte, name string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	all := []string{"-v", "error", "-f", "rawvideo", "-pix_fmt", "bgr0", "-s", "16x8", "-r", "25", "-i", "-"}
	cmd := exec.Command("ffmpeg", append(append(all, args...), path)...)
	cmd.Stdin = bytes.NewReader(data)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ffmpeg: %v: %s", err, out)
	}
	return path
}

func TestVideosThroughFFmpeg(t *testing.T) {
	testlab.NeedProgram(t, "ffmpeg")
	testlab.NeedProgram(t, "ffprobe")
	f := lab.Format{Pixels: lab.BGRX, Width: 16, Height: 8, Rate: 25}
	const frames = 5
	data := make([]byte, frames*f.FrameSize())
	for i := range data {
		if i%4 < 3 {
			data[i] = byte(i * i / 3)
		}
	}
	read := func(path string) (*Source, []lab.Frame) {
		t.Helper()
		s, err := Open(context.Background(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var all []lab.Frame
		for {
			fr, err := s.Next(context.Background())
			if errors.Is(err, io.EOF) {
				return s, all
			}
			if err != nil {
				t.Fatal(err)
			}
			fr.Pix = slices.Clone(fr.Pix)
			all = append(all, fr)
		}
	}

	// A lossless codec gives every byte back, and the container its times.
	s, all := read(encode(t, f, data, "film.mkv", "-c:v", "ffv1", "-pix_fmt", "bgr0"))
	if s.Format() != f || s.NotLossless() != "" || len(all) != frames {
		t.Fatalf("FFV1 film: format %+v, not lossless because of %q, %d frames; want %+v, lossless, %d", s.Format(), s.NotLossless(),
			len(all), f, frames)
	}
	for i, fr := range all {
		if !bytes.Equal(fr.Pix, data[i*f.FrameSize():][:f.FrameSize()]) || fr.Time != lab.Time(i)*40e6 {
			t.Errorf("frame %d of %v differs", i, fr.Time)
		}
	}

	// Frames that a telephone's recorder left out keep their times.
	s, all = read(encode(t, f, data, "film.mp4", "-vf", "select='not(eq(n,2))'", "-fps_mode", "vfr", "-c:v", "libx264", "-bf", "2",
		"-pix_fmt", "yuv420p"))
	if s.Format().Pixels != lab.NV12 || s.NotLossless() != "a video compressed with h264" || len(all) != frames-1 {
		t.Fatalf("H.264 film: format %+v, not lossless because of %q, %d frames; want NV12, because of h264, %d", s.Format(),
			s.NotLossless(), len(all), frames-1)
	}
	for i, want := range []lab.Time{0, 40e6, 120e6, 160e6} {
		if all[i].Time != want {
			t.Errorf("frame %d is of %v, want %v", i, all[i].Time, want)
		}
	}

	// What an edit list leaves out, such as what a cut without a key frame needs
	// only to decode, has no part in the times.
	ten := slices.Concat(data, data)
	whole := encode(t, f, ten, "whole.mp4", "-vf", "select='not(eq(n,4))'", "-fps_mode", "vfr", "-c:v", "libx264", "-g", "100",
		"-pix_fmt", "yuv420p")
	cutAt := filepath.Join(t.TempDir(), "cut.mp4")
	if out, err := exec.Command("ffmpeg", "-v", "error", "-ss", "0.12", "-i", whole, "-c", "copy", cutAt).CombinedOutput(); err != nil {
		t.Fatalf("ffmpeg: %v: %s", err, out)
	}
	_, all = read(cutAt)
	var times []lab.Time
	for _, fr := range all {
		times = append(times, fr.Time/1e6)
	}
	if want := []lab.Time{0, 80, 120, 160, 200, 240}; !slices.Equal(times, want) {
		t.Errorf("a video that was cut has frames at %v, want %v ms", times, want)
	}
	text := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(text, []byte("no video"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), text, Options{}); err == nil || !strings.Contains(err.Error(), "no video") {
		t.Errorf("a text: %v", err)
	}
	// A film that is not read to its end leaves no process behind.
	s, err := Open(context.Background(), encode(t, f, data, "film.mkv", "-c:v", "ffv1"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A decoder that waits, as for a disk that does not answer, holds nobody up.
func TestNextIsCancelled(t *testing.T) {
	program := filepath.Join(t.TempDir(), "decoder")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := film{format: lab.Format{Pixels: lab.Grey, Width: 4, Height: 4, Rate: 25}, layout: "gray"}
	s, err := f.decode(context.Background(), program, "file:film.mkv")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Next: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A decoder that complains much is not stopped by that.
func TestComplaints(t *testing.T) {
	c := &complaint{}
	cmd := exec.Command("sh", "-c", "echo first >&2; head -c 100000 /dev/zero >&2; echo done")
	cmd.Stderr = c
	if out, err := cmd.Output(); err != nil || string(out) != "done\n" {
		t.Errorf("%q, %v", out, err)
	}
	if len(c.String()) != maxComplaint || !strings.HasPrefix(c.String(), "first\n") {
		t.Errorf("%d bytes, %.20q", len(c.String()), c.String())
	}
	cmd = exec.Command("sh", "-c", "head -c 100000 /dev/zero")
	cmd.Stdout = &limited{left: 1000}
	if err := cmd.Run(); err == nil {
		t.Error("an answer without end was taken")
	}
}

func FuzzProbe(f *testing.F) {
	f.Add(
		[]byte(
			`{"streams":[{"codec_name":"ffv1","width":16,"height":8,"pix_fmt":"bgr0","r_frame_rate":"25/1","avg_frame_rate":"0/0"}]}`,
		),
	)
	f.Add([]byte(`{"streams":[]}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		defer testlab.Input(t)()
		p, err := parseProbe(answer)
		if err != nil {
			return
		}
		if err := p.format.Validate(); err != nil {
			t.Error(err)
		}
	})
}

// TestTurnedVideo: a film that a phone stored lying or mirrored is read as players show it.
func TestTurnedVideo(t *testing.T) {
	testlab.NeedProgram(t, "ffmpeg")
	testlab.NeedProgram(t, "ffprobe")
	f := lab.Format{Pixels: lab.BGRX, Width: 16, Height: 8, Rate: 25}
	data := make([]byte, 2*f.FrameSize())
	for i := range 4 * f.Width / 2 { // the upper left quarter is light
		for y := range f.Height / 2 {
			data[4*f.Width*y+i], data[f.FrameSize()+4*f.Width*y+i] = 255, 255
		}
	}
	flat := encode(t, f, data, "flat.mp4", "-c:v", "libx264rgb", "-qp", "0", "-pix_fmt", "bgr24")
	for _, c := range []struct {
		name       string
		a, b, c, d int32 // of the matrix: x' = ax + cy, y' = bx + dy
		isUpright  bool
		light      [2]int // which quarter is light: 1 for the right, the lower
	}{
		{"as stored", 1, 0, 0, 1, false, [2]int{0, 0}}, {"mirrored", -1, 0, 0, 1, false, [2]int{1, 0}}, {"upside down", 1, 0, 0, -1, false, [2]int{0, 1}},
		{"180°", -1, 0, 0, -1, false, [2]int{1, 1}}, {"90°", 0, 1, -1, 0, true, [2]int{1, 0}}, {"270°", 0, -1, 1, 0, true, [2]int{0, 1}},
		{"90°, mirrored", 0, 1, 1, 0, true, [2]int{0, 0}}, {"270°, mirrored", 0, -1, -1, 0, true, [2]int{1, 1}},
	} {
		film, err := os.ReadFile(flat)
		if err != nil {
			t.Fatal(err)
		}
		const toMatrix = 4 + 4 + 5*4 + 2*4 + 4*2 // from the name of the track's header, in its version 0 (ISO/IEC 14496-12, 8.3.2)
		matrix := film[bytes.Index(film, []byte("tkhd"))+toMatrix:]
		for i, v := range []int32{c.a, c.b, 0, c.c, c.d} {
			binary.BigEndian.PutUint32(matrix[4*i:], uint32(v<<16))
		}
		path := filepath.Join(filepath.Dir(flat), "turned.mp4")
		if err := os.WriteFile(path, film, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(context.Background(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := s.Format()
		fr, err := s.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		light := [2]int{-1, -1}
		for n := range 4 {
			if x, y := n%2*(got.Width-1), n/2*(got.Height-1); fr.Pix[4*(y*got.Width+x)] > 128 {
				light = [2]int{n % 2, n / 2}
			}
		}
		if isUpright := got.Height > got.Width; isUpright != c.isUpright || light != c.light {
			t.Errorf("%s: read as %dx%d with the light quarter %v, want upright %v and %v", c.name, got.Width, got.Height, light, c.isUpright, c.light)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestVideosOfTheWorld: films of phones, screen recorders and players, whose files say more than the pictures, or less.
func TestVideosOfTheWorld(t *testing.T) {
	testlab.NeedProgram(t, "ffmpeg")
	testlab.NeedProgram(t, "ffprobe")
	f := lab.Format{Pixels: lab.BGRX, Width: 16, Height: 8, Rate: 25}
	white := bytes.Repeat([]byte{255, 255, 255, 0}, 3*f.FrameSize()/4)
	tagged := func(name, matrix, values string) string {
		return encode(t, f, white, name, "-vf", "scale=out_color_matrix="+matrix+":out_range="+values, "-c:v", "libx264", "-qp", "0",
			"-pix_fmt", "yuv420p", "-colorspace", matrix, "-color_range", values)
	}
	for _, c := range []struct {
		path string
		want lab.Format
		last byte // of the first frame, in brightness or blue
	}{
		{tagged("phone.mp4", "smpte170m", "tv"), lab.Format{Pixels: lab.NV12, Matrix: lab.BT601, Range: lab.LimitedRange}, 235},
		{tagged("hd.mp4", "bt709", "tv"), lab.Format{Pixels: lab.NV12, Matrix: lab.BT709, Range: lab.LimitedRange}, 235},
		{tagged("full.mp4", "smpte170m", "pc"), lab.Format{Pixels: lab.BGRX}, 255},
		{encode(t, f, white, "full.mkv", "-vf", "scale=out_range=pc", "-c:v", "ffv1", "-pix_fmt", "yuv420p", "-color_range", "pc"),
			lab.Format{Pixels: lab.BGRX}, 255},
	} {
		c.want.Width, c.want.Height, c.want.Rate = 16, 8, 25
		s, err := Open(t.Context(), c.path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		fr, err := s.Next(t.Context())
		if s.Format() != c.want || err != nil || fr.Pix[0] != c.last {
			t.Errorf("%s: %+v, white is %v, %v; want %+v and %d", filepath.Base(c.path), s.Format(), fr.Pix[:1], err, c.want, c.last)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}

	// A stream alone has no times: they are those of the rate that is given.
	bare := encode(t, f, white, "film.h264", "-c:v", "libx264", "-pix_fmt", "yuv420p")
	if _, err := Open(t.Context(), bare, Options{}); err == nil || !strings.Contains(err.Error(), "--rate") {
		t.Errorf("a stream without a container: %v; want an error that asks for its rate", err)
	}
	if _, err := Open(t.Context(), bare, Options{Format: lab.Format{Rate: -1}}); err == nil {
		t.Error("a rate of -1 is taken")
	}
	if got, err := timesOf(t, bare, 50); err != nil || !slices.Equal(got, []int64{0, 20, 40}) {
		t.Errorf("a stream without a container has frames at %v, %v; want 0, 20, 40 ms", got, err)
	}

	// The picture of its cover is not the film, even where it comes first.
	dir := t.TempDir()
	film, cover := encode(t, f, white, "film.mp4", "-c:v", "libx264", "-pix_fmt", "yuv420p"), filepath.Join(dir, "cover.png")
	covered := filepath.Join(dir, "covered.mp4")
	for _, args := range [][]string{
		{"-f", "lavfi", "-i", "color=red:size=64x64", "-frames:v", "1", cover},
		{"-i", cover, "-i", film, "-map", "0", "-map", "1", "-c", "copy", "-disposition:v:0", "attached_pic", covered},
	} {
		if out, err := exec.Command("ffmpeg", append([]string{"-v", "error"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("ffmpeg: %v: %s", err, out)
		}
	}
	data, err := os.ReadFile(covered)
	if err != nil {
		t.Fatal(err)
	}
	track, notes := bytes.Index(data, []byte("trak"))-4, bytes.LastIndex(data, []byte("udta"))-4 // at the end of the file
	if err := os.WriteFile(covered, slices.Concat(data[:track], data[notes:], data[track:notes]), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := framesOf(t, covered); err != nil || !slices.Equal(got, []int64{0, 40, 80}) {
		t.Errorf("a film with a cover has frames at %v, %v; want 0, 40, 80 ms", got, err)
	}

	// Behind a turn of the phone the frames have another size.
	var joined []byte
	for _, size := range []string{"16x8", "8x16"} {
		part, err := os.ReadFile(encode(t, f, white, "part.ts", "-vf", "scale="+size, "-c:v", "libx264", "-pix_fmt", "yuv420p"))
		if err != nil {
			t.Fatal(err)
		}
		joined = append(joined, part...)
	}
	turned := filepath.Join(t.TempDir(), "turned.ts")
	if err := os.WriteFile(turned, joined, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := framesOf(t, turned); !slices.Equal(got, []int64{0, 40, 80}) || err == nil || !strings.Contains(err.Error(), "8×16") {
		t.Errorf("a film that was turned has frames at %v, %v; want 0, 40, 80 ms, and an error that says their size", got, err)
	}
}

// blotches are so many pictures of 16×8 pixels that all differ, for ffmpeg.
func blotches(t *testing.T, frames int) []byte {
	testlab.NeedProgram(t, "ffmpeg")
	testlab.NeedProgram(t, "ffprobe")
	data := make([]byte, frames*(lab.Format{Pixels: lab.BGRX, Width: 16, Height: 8}).FrameSize())
	for i := range data {
		data[i] = byte(i * i / 7)
	}
	return data
}

// TestCutVideos: ffmpeg decodes what there is of a film that was cut off, and succeeds; that it was cut off is told all
// the same. One without its index, and an empty one, say what is the matter.
func TestCutVideos(t *testing.T) {
	const frames = 50
	data := blotches(t, frames)
	for name, args := range map[string][]string{
		"film.mkv": {"-c:v", "ffv1"}, "film.mp4": {"-c:v", "mpeg4", "-g", "5", "-movflags", "frag_keyframe+empty_moov+default_base_moof"},
	} {
		path := encode(t, lab.Format{}, data, name, args...)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{len(whole), len(whole) * 3 / 5} {
			if err := os.Truncate(path, int64(size)); err != nil {
				t.Fatal(err)
			}
			s, err := Open(context.Background(), path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for err == nil {
				if _, err = s.Next(context.Background()); err == nil {
					n++
				}
			}
			s.Close()
			if isCut := size < len(whole); n == 0 || (n == frames) == isCut || errors.Is(err, ErrCut) != isCut || errors.Is(err, io.EOF) == isCut {
				t.Errorf("%s, %d bytes of %d: %d frames, %v; want it cut off: %v", name, size, len(whole), n, err, isCut)
			}
		}
	}
	path := encode(t, lab.Format{}, data, "film.mp4", "-c:v", "mpeg4")
	for size, want := range map[int64]string{1000: "the index (moov) is missing", 0: "the file is empty"} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(context.Background(), path, Options{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), " @ 0x") {
			t.Errorf("%d bytes: %v; want %q, without addresses in memory", size, err, want)
		}
	}
}

// TestDamagedVideo: of a video whose bytes were altered, all frames come, and then, once, that some were made up.
func TestDamagedVideo(t *testing.T) {
	const frames = 50
	path := encode(t, lab.Format{}, blotches(t, frames), "film.mkv", "-vf", "scale=320:240:flags=neighbor", "-c:v", "mpeg4", "-q:v", "2")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hurt := slices.Clone(whole)
	for i := range 200 {
		hurt[len(hurt)/2+i] ^= 0x5a
	}
	for name, content := range map[string][]byte{"whole": whole, "hurt": hurt} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		n, told := 0, 0
		for !errors.Is(err, io.EOF) {
			var event *capture.Interruption
			switch _, err = s.Next(t.Context()); {
			case err == nil && told == 0:
				n++
			case errors.As(err, &event) && event.Event.Kind == lab.SourceDamaged && event.Ends == nil:
				told++
			case !errors.Is(err, io.EOF):
				t.Fatalf("%s: after %d frames and %d events: %v", name, n, told, err)
			}
		}
		s.Close()
		if n != frames || (told == 1) != (name == "hurt") {
			t.Errorf("%s: %d frames, and damage was told %d times", name, n, told)
		}
	}
}
