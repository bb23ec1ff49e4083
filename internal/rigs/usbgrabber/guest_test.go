//go:build guest

package usbgrabber

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/analysis/tearing"
	"eidetic/capture"
	"eidetic/capture/qualify"
	"eidetic/capture/reel"
	"eidetic/capture/source"
	"eidetic/capture/steady"
	"eidetic/capture/synthetic"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/experiment"
)

// The tests in this file run on the box in its virtual machine: its kernel has the driver of USB grabbers (uvcvideo) and
// a USB port behind which the stick can be (vhci_hcd). The emulated processor is slow, so most films have few and small
// pictures.

// The mode of these tests: 200 ms from picture to picture are long to a stalled machine.
func small(pixels lab.PixelFormat, rate float64) lab.Format {
	return lab.Format{Pixels: pixels, Width: 320, Height: 240, Rate: rate}
}

// load loads the drivers, with a parameter of uvcvideo.
func load(t *testing.T, parameter string) {
	t.Helper()
	for _, args := range [][]string{{"vhci-hcd"}, {"uvcvideo"}} {
		if out, err := exec.Command("modprobe", args...).CombinedOutput(); err != nil {
			t.Fatalf("modprobe %v: %v: %s", args, err, out)
		}
	}
	for _, name := range []string{"nodrop", "hwtimestamps"} {
		value := "0"
		if name == parameter {
			value = "1"
		}
		if err := os.WriteFile("/sys/module/uvcvideo/parameters/"+name, []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(2 * testlab.Hang); !holds(); {
		if time.Now().After(limit) {
			t.Fatalf("waited in vain for %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// device is the file of the plugged stick, "" if there is none. The second of its two delivers metadata.
func device() string {
	names, _ := filepath.Glob("/sys/class/video4linux/*/name")
	for _, file := range names {
		name, _ := os.ReadFile(file)
		index, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "index"))
		path := "/dev/" + filepath.Base(filepath.Dir(file))
		if _, err := os.Stat(path); err == nil && strings.HasPrefix(string(name), Name) && strings.TrimSpace(string(index)) == "0" {
			return path
		}
	}
	return ""
}

// plugged plugs a stick in.
func plugged(t *testing.T, g *Grabber) *Cable {
	t.Helper()
	c, err := g.Plug(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the stick's device file", func() bool { return device() != "" })
	t.Cleanup(func() {
		c.Pull()
		await(t, "the device file's end", func() bool { return device() == "" })
	})
	return c
}

// filming begins to film the stick as a trial does.
func filming(t *testing.T, f lab.Format) (film experiment.Film, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "screen.reel")
	memory := &steady.Memory{}
	screen := execute.Screen{Name: "v4l2:", Noise: memory, Open: func(ctx context.Context) (capture.Source, error) {
		return source.Open(ctx, source.Options{Name: "v4l2:" + device(), Format: f, Noise: memory})
	}}
	film, err := screen.Film(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return film, path
}

// filmed films until the stick has sent a number of pictures.
func filmed(t *testing.T, g *Grabber, f lab.Format, pictures int) (experiment.FilmStatus, *reel.Reader) {
	t.Helper()
	film, path := filming(t, f)
	await(t, fmt.Sprintf("%d pictures", pictures), func() bool { _, sent := g.Sent(); return len(sent) >= pictures || film.Status().Trouble != "" })
	status, err := film.Stop()
	if err != nil {
		t.Fatal(err)
	}
	r, err := reel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	c := status.Capture
	t.Logf("%v: %d frames, %d lost because of %v, %d irregular, blue %v; %.2f/s; noise %+v", r.Format(), status.Frames, status.Lost,
		c.LostBecause, c.Irregular, c.Blue, c.Rate, c.Noise)
	for _, n := range r.Notes() {
		t.Log(n)
	}
	return status, r
}

// arrived are the pictures that the stick has sent, by the number that the driver gives them.
func arrived(g *Grabber) (all []Sent) {
	_, sent := g.Sent()
	for _, s := range sent {
		if s.Fault != Lost {
			all = append(all, s)
		}
	}
	return all
}

// account compares a reel with what was sent: each frame is what its number stands for, and each missing one is in a
// gap. It returns the reel's index of each picture that was sent, −1 for one that is missing.
func account(t *testing.T, g *Grabber, r *reel.Reader) []int {
	t.Helper()
	sent := arrived(g)
	at, lost := make([]int, 0, len(sent)), 0
	for i := range r.Len() {
		seq := int(r.Info(i).Seq)
		if seq >= len(sent) || seq < len(at) {
			t.Fatalf("frame %d has number %d; %d came before it, and %d were sent", i, seq, len(at), len(sent))
		}
		for len(at) < seq {
			at = append(at, -1)
			lost++
		}
		at = append(at, i)
		pix, err := r.Pixels(i)
		if err != nil {
			t.Fatal(err)
		}
		s, want := sent[seq], -1
		if s.Fault != Blue {
			want = s.Number
		}
		if n, ok := synthetic.ReadCounter(r.Format(), pix); ok != (want >= 0) || ok && int(n) != want {
			t.Errorf("frame %d shows number %d (%v), want %d: %+v", i, n, ok, want, s)
		}
	}
	if first := int(r.Info(0).Seq); lost-first != r.Lost() {
		t.Errorf("%d frames are missing between the first and the last, and the reel says %d", lost-first, r.Lost())
	}
	return at
}

// TestFaultsAreNamed: the real driver and our capture behind it name and count each fault of a stick, and leave the
// other pictures as they are.
func TestFaultsAreNamed(t *testing.T) {
	load(t, "")
	const tries = 5 // a machine that stalls stamps pictures late
	for n := 1; n <= tries; n++ {
		stalled := false
		t.Run(fmt.Sprint("film ", n), func(t *testing.T) { stalled = nameFaults(t, n < tries) })
		if !stalled {
			return
		}
	}
}

// nameFaults is a try of TestFaultsAreNamed. If the machine stalled just before the lost picture, so that the next one
// follows in its usual time, and there may be another try, it returns true.
func nameFaults(t *testing.T, isAnother bool) (stalled bool) {
	g := New(Options{Film: Scroll, Faults: map[int]Fault{6: Twice, 10: Lost, 14: Torn, 18: Jump, 22: ErrorBit, 26: Short}})
	plugged(t, g)
	status, r := filmed(t, g, small(lab.YUYV, 5), 34)
	at := account(t, g, r)
	if isAnother && told(r, lab.SourceIrregular, at[10]-1) {
		return true
	}
	place := map[Fault]int{} // in the reel
	for seq, s := range arrived(g)[:len(at)] {
		place[s.Fault] = at[seq]
	}
	for _, fault := range []Fault{ErrorBit, Short} { // the driver leaves them out, and its count says so
		if place[fault] != -1 {
			t.Errorf("fault %d is frame %d of the reel", fault, place[fault])
		}
	}
	if status.Lost != status.Capture.LostBecause[lab.GapSource] || status.Lost < 2 {
		t.Errorf("%d frames lost because of %v; want two or more, all missed by the source", status.Lost, status.Capture.LostBecause)
	}
	if i := place[Twice]; len(r.Info(i).Changed) != 0 {
		t.Errorf("frame %d repeats the one before and changes %v", i, r.Info(i).Changed)
	}
	// A picture that is never sent leaves no gap in the driver's count; the time of the next one says it.
	if status.Capture.Irregular < 1 || !told(r, lab.SourceIrregular, at[10]) {
		t.Errorf("%d irregular, none of them frame %d: %v", status.Capture.Irregular, at[10], r.Events())
	}
	torn, err := tearing.Find(r, tearing.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(torn.Tears) != 1 || torn.Tears[0].Frame != place[Torn] {
		t.Errorf("torn frames %+v, want frame %d", torn.Tears, place[Torn])
	}
	whole := make([]byte, r.Format().FrameSize())
	for seq, s := range arrived(g)[:len(at)] {
		if at[seq] < 0 || s.Fault != 0 && s.Fault != Jump {
			continue
		}
		Scroll(r.Format(), whole, s.Number)
		if pix, err := r.Pixels(at[seq]); err != nil || !bytes.Equal(pix, whole) {
			t.Errorf("frame %d is not the picture that was sent: %v", at[seq], err)
		}
	}
	return false
}

// missing counts the pictures that are not in the reel.
func missing(at []int) (n int) {
	for _, i := range at {
		if i < 0 {
			n++
		}
	}
	return n
}

// told says whether an event of a kind stands before a frame.
func told(r *reel.Reader, kind string, frame int) bool {
	for _, e := range r.Events() {
		if e.Kind == kind && e.Before == frame {
			return true
		}
	}
	return false
}

// TestDamagedCountsAsLost: where the driver is told to deliver damaged pictures, as newer kernels do by themselves.
func TestDamagedCountsAsLost(t *testing.T) {
	load(t, "nodrop")
	for _, pixels := range formats() {
		g := New(Options{Film: Scroll, Faults: map[int]Fault{4: ErrorBit, 8: Short}})
		c := plugged(t, g)
		status, r := filmed(t, g, small(pixels, 5), 14)
		at := account(t, g, r)
		if at[4] != -1 || at[8] != -1 || status.Capture.LostBecause[lab.GapCorrupt] != 2 {
			t.Errorf("%s: frames %d and %d; lost because of %v, want two damaged", pixels, at[4], at[8], status.Capture.LostBecause)
		}
		c.Pull()
		await(t, "the device file's end", func() bool { return device() == "" })
	}
}

// TestOwnClockJumps: the stick's own time stamps are not what frames are timed by, also where the driver may use them.
func TestOwnClockJumps(t *testing.T) {
	for _, parameter := range []string{"", "hwtimestamps"} {
		load(t, parameter)
		g := New(Options{Film: Scroll, Faults: map[int]Fault{8: Jump, 12: Jump}})
		c := plugged(t, g)
		status, r := filmed(t, g, small(lab.YUYV, 5), 18)
		account(t, g, r)
		if span := r.Info(r.Len() - 1).Time.Sub(r.Info(0).Time).Seconds(); status.Capture.Irregular == 0 && span > 1+0.2*float64(r.Len()) {
			t.Errorf("%q: %d frames in %.1f s, and nothing is said of it", parameter, r.Len(), span)
		}
		c.Pull()
		await(t, "the device file's end", func() bool { return device() == "" })
	}
}

// TestCablePulled: a stick that is pulled out ends the film with its name, and can be filmed when it is back.
func TestCablePulled(t *testing.T) {
	load(t, "")
	g := New(Options{Film: Scroll})
	for n := range 2 {
		c := plugged(t, g)
		film, path := filming(t, small(lab.MJPEG, 5))
		await(t, "frames", func() bool { return film.Status().Frames > 4 })
		c.Pull()
		<-film.Done()
		status, err := film.Stop()
		var ends *capture.Interruption
		if !errors.As(err, &ends) || ends.Event.Kind != lab.SourceUnplugged || !strings.Contains(status.Trouble, "unplugged") {
			t.Errorf("time %d: %v, trouble %q; want %q", n, err, status.Trouble, lab.SourceUnplugged)
		}
		r, err := reel.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		account(t, g, r)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		await(t, "the device file's end", func() bool { return device() == "" })
	}
}

// TestBlueIsNamed: three blue seconds after the mode was set are named, exact or compressed.
func TestBlueIsNamed(t *testing.T) {
	load(t, "")
	for _, pixels := range formats() {
		g := New(Options{Film: Scroll, BlueFirst: 15})
		c := plugged(t, g)
		status, r := filmed(t, g, small(pixels, 5), 24)
		at := account(t, g, r)
		if b := status.Capture.Blue; len(b) != 1 || b[0].Frames != 15-missing(at[:15]) || b[0].To.Sub(b[0].From) < 2500*time.Millisecond ||
			!told(r, lab.SourceBlue, at[15]) {
			t.Errorf("%s: blue %+v, events %v; want 15 frames in 3 s", pixels, b, r.Events())
		}
		c.Pull()
		await(t, "the device file's end", func() bool { return device() == "" })
	}
}

// TestNoiseIsHeld: what a noisy stick moves is learned and held.
func TestNoiseIsHeld(t *testing.T) {
	load(t, "")
	g := New(Options{Film: Noisy(Still, 2)})
	plugged(t, g)
	status, r := filmed(t, g, small(lab.YUYV, 10), 60)
	if n := status.Capture.Noise; n == nil || n.Exact() || n.Pixel > 8 {
		t.Errorf("noise %+v; want some, of few codes", n)
	}
	changes := 0
	for i := r.Len() / 2; i < r.Len(); i++ {
		changes += len(r.Info(i).Changed)
	}
	if changes > 0 {
		t.Errorf("%d changes in a picture that stands still", changes)
	}
}

// TestAlteredPicturesAreNamed: a qualification says of a stick that sharpens or scales that its picture is not the one
// that was shown, and of one that does neither that it is.
func TestAlteredPicturesAreNamed(t *testing.T) {
	load(t, "")
	for name, c := range map[string]struct {
		film Film
		says string
	}{
		"exact":     {Test, "lossless as far as YUYV can be"},
		"sharpened": {Sharpened(Test), "lossy: the grabber compresses, scales or filters"},
		"scaled":    {Scaled(Test, 256, 192), "no picture's number could be read: the grabber scales or cuts"}, // as its strip is
	} {
		// Every eighth number is compared.
		g := New(Options{Film: func(f lab.Format, pix []byte, n int) { c.film(f, pix, 8*n) }})
		cable := plugged(t, g)
		src, err := source.Open(t.Context(), source.Options{Name: "v4l2:" + device(), Format: small(lab.YUYV, 5)})
		if err != nil {
			t.Fatal(err)
		}
		j, err := qualify.NewJudge(src.Format())
		if err != nil {
			t.Fatal(err)
		}
		j.Shown(lab.Monotonic(), lab.Monotonic())
		r, err := capture.Start(t.Context(), src, j, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		await(t, "pictures", func() bool { _, sent := g.Sent(); return len(sent) > 6 })
		st, err := r.Stop()
		if err != nil {
			t.Fatal(err)
		}
		report := j.Report(st, 5)
		if !strings.HasPrefix(report.Fidelity.Words, c.says) || (report.Fidelity.Compared == 0) != (name == "scaled") || report.Torn > 0 {
			t.Errorf("%s: %+v, %d torn; want %q", name, report.Fidelity, report.Torn, c.says)
		}
		t.Logf("%s: %+v", name, report.Fidelity)
		cable.Pull()
		await(t, "the device file's end", func() bool { return device() == "" })
	}
}

// TestModes: in each mode whole pictures come. How many a second is what the emulated processor can do; none of those
// that were sent is missing without a word.
func TestModes(t *testing.T) {
	load(t, "")
	for _, pixels := range formats() {
		for _, size := range sizes() {
			g := New(Options{Film: Scroll})
			c := plugged(t, g)
			_, r := filmed(t, g, lab.Format{Pixels: pixels, Width: size[0], Height: size[1], Rate: 60}, 20)
			account(t, g, r)
			c.Pull()
			await(t, "the device file's end", func() bool { return device() == "" })
		}
	}
}
