package rfb_test

import (
	"bytes"
	"context"
	"crypto/des"
	"errors"
	"image"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/capture"
	"eidetic/capture/reel"
	"eidetic/capture/rfb"
	wire "eidetic/internal/base/rfb"
	"eidetic/internal/base/rfb/rfbtest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

func TestMain(m *testing.M) {
	xtest.Main()
	testlab.NoLeaks(m)
}

// limit bounds what waits for a server; it is long because machines are busy.
const limit = 2 * time.Minute

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, o rfb.Options) *rfb.Source {
	t.Helper()
	s, err := rfb.Open(within(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// until takes frames until one fulfils ok. A machine that stalls makes the
// server seem silent for a while, which ends nothing.
func until(t *testing.T, s *rfb.Source, what string, ok func(lab.Frame) bool) lab.Frame {
	t.Helper()
	ctx := within(t)
	for {
		f, err := s.Next(ctx)
		if err != nil && !passing(err) {
			t.Fatalf("%s: %v", what, err)
		}
		if err == nil && ok(f) {
			return f
		}
	}
}

// passing says that a source goes on after err.
func passing(err error) bool {
	var i *capture.Interruption
	return errors.As(err, &i) && i.Ends == nil
}

// TestServers runs the suite on the fake in its variants and on real servers.
func TestServers(t *testing.T) {
	for _, c := range []struct {
		name  string
		start func(*testing.T) server
		o     rfb.Options
	}{
		{"fake 3.3", fake(rfbtest.Config{Version: "3.3"}), rfb.Options{}},
		{"fake 3.7", fake(rfbtest.Config{Version: "3.7", Prelude: true}), rfb.Options{}},
		{"fake fences", fake(rfbtest.Config{Fences: true, Prelude: true}), rfb.Options{}},
		{"fake continuous", fake(rfbtest.Config{Fences: true, Continuous: true}), rfb.Options{}},
		{"Xvnc raw", realXvnc, rfb.Options{}},
		{"Xvnc ZRLE", realXvnc, rfb.Options{Encoding: rfb.ZRLE}},
		{"Xvnc hextile", realXvnc, rfb.Options{Encoding: rfb.Hextile, Pointer: true}},
		{"x11vnc raw", realX11vnc, rfb.Options{}},
		{"x11vnc ZRLE", realX11vnc, rfb.Options{Encoding: rfb.ZRLE}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			suite(t, c.start(t), c.o)
		})
	}
}

func suite(t *testing.T, sv server, o rfb.Options) {
	o.Address = sv.address
	sv.paint(0x102030)
	s := open(t, o)
	if f := s.Format(); f.Width != sv.size.X || f.Height != sv.size.Y || f.Pixels != lab.BGRX || f.Rate != 60 {
		t.Fatalf("format %+v", f)
	}
	first, err := s.Next(within(t))
	if err != nil || len(first.Changed) != 1 || first.Changed[0] != s.Format().Bounds() {
		t.Fatalf("first frame: %+v, %v", first.FrameInfo, err)
	}
	last := first.FrameInfo
	for _, c := range []struct {
		rgb  uint32
		bgrx []byte
	}{{0x00ff00, []byte{0, 255, 0, 0}}, {0x123456, []byte{0x56, 0x34, 0x12, 0}}} {
		before := lab.Monotonic()
		sv.paint(c.rgb)
		f := until(t, s, "a colour", func(f lab.Frame) bool {
			if f.Seq != last.Seq+1 || f.Time <= last.Time || f.Uncertainty < 0 || f.Time > lab.Monotonic() {
				t.Errorf("after %+v came %+v", last, f.FrameInfo)
			}
			last = f.FrameInfo
			return f.Flags&lab.FrameRepeat == 0 && bytes.Equal(f.Pix[:4], c.bgrx)
		})
		if want := bytes.Repeat(c.bgrx, sv.size.X*sv.size.Y); !bytes.Equal(f.Pix, want) {
			t.Errorf("the screen is not all %06x", c.rgb)
		}
		if f.Time < before {
			t.Errorf("a frame shows at %d what was painted at %d", f.Time, before)
		}
	}
	f := until(t, s, "a still frame", func(f lab.Frame) bool { return f.Flags&lab.FrameRepeat != 0 })
	if !bytes.Equal(f.Pix[:4], []byte{0x56, 0x34, 0x12, 0}) || len(f.Changed) != 0 {
		t.Errorf("a still frame begins with % x and changes %v", f.Pix[:4], f.Changed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
	sv.stop()
	gone(t, s, rfb.ErrClosed, lab.SourceUnplugged)
}

// gone takes frames until the source ends, and checks with what.
func gone(t *testing.T, s *rfb.Source, want error, kind string) *capture.Interruption {
	t.Helper()
	ctx := within(t)
	for {
		_, err := s.Next(ctx)
		if err == nil || passing(err) {
			continue
		}
		var i *capture.Interruption
		if !errors.As(err, &i) || !errors.Is(err, want) || i.Event.Kind != kind || i.Ends == nil {
			t.Fatalf("the source ended with %v, want %q", err, kind)
		}
		return i
	}
}

func TestWhatServersOffer(t *testing.T) {
	for _, c := range []struct {
		name               string
		start              func(*testing.T) server
		fences, continuous bool
		version            string
	}{
		{"plain", fake(rfbtest.Config{Version: "3.3"}), false, false, "3.3"},
		{"fences", fake(rfbtest.Config{Fences: true}), true, false, "3.8"},
		{"Xvnc", realXvnc, true, true, "3.8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, rfb.Options{Address: c.start(t).address})
			if s.Fences() != c.fences || s.Continuous() != c.continuous || s.Version() != c.version {
				t.Errorf("fences %v, continuous %v, version %s", s.Fences(), s.Continuous(), s.Version())
			}
		})
	}
}

// TestSilence: a server that stalls makes frames uncertain; one that stays
// silent is a signal lost, which can come back; nothing ends.
func TestSilence(t *testing.T) {
	for _, cfg := range []rfbtest.Config{{}, {Fences: true, Continuous: true}} {
		sv := rfbtest.New(t, cfg)
		s := open(t, rfb.Options{Address: sv.Addr(), Patience: time.Second})
		until(t, s, "a frame", func(lab.Frame) bool { return true })
		sv.Silence(true)
		quiet := lab.Monotonic()
		var seen []string
		ctx := within(t)
		for len(seen) < 2 {
			f, err := s.Next(ctx)
			var i *capture.Interruption
			switch {
			case err == nil:
				// Nothing is known of what came after.
				if known := f.Time.Add(-f.Uncertainty); len(seen) == 0 && known > quiet {
					t.Errorf("a frame claims to show the screen %v after the server fell silent", known.Sub(quiet))
				}
			case errors.As(err, &i) && i.Event.Kind == lab.SourceSignalBack && len(seen) == 0:
				// from a stall of this machine, before the server fell silent
			case errors.As(err, &i) && i.Ends == nil:
				seen = append(seen, i.Event.Kind)
				sv.Silence(false)
			default:
				t.Fatal(err)
			}
		}
		if seen[0] != lab.SourceSignalLost || seen[1] != lab.SourceSignalBack {
			t.Errorf("events %q", seen)
		}
		sv.Paint(image.Rect(0, 0, 9, 9), 0xff)
		until(t, s, "what is painted afterwards", func(f lab.Frame) bool { return f.Pix[0] == 0xff })
	}
}

// TestResize: another size ends the source with an event that tells it.
func TestResize(t *testing.T) {
	t.Run("fake", func(t *testing.T) {
		sv := rfbtest.New(t, rfbtest.Config{})
		s := open(t, rfb.Options{Address: sv.Addr()})
		sv.Resize(80, 60)
		i := gone(t, s, rfb.ErrResolution, lab.SourceResized)
		if f := i.Event.Format; f == nil || f.Width != 80 || f.Height != 60 {
			t.Errorf("the new format is %+v", f)
		}
	})
	t.Run("while it is opened", func(t *testing.T) {
		s := open(t, rfb.Options{Address: rfbtest.New(t, rfbtest.Config{Late: image.Pt(80, 60)}).Addr()})
		if f := s.Format(); f.Width != 80 || f.Height != 60 {
			t.Errorf("the format is %+v; want 80×60", f)
		}
	})
	t.Run("Xvnc", func(t *testing.T) {
		address := realXvnc(t).address
		s := open(t, rfb.Options{Address: address})
		other, err := wire.Dial(within(t), wire.Options{Address: address})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		setSize := []byte{251, 0, 1, 0, 0, 160, 1, 0, // SetDesktopSize of rfbproto
			0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 160, 0, 0, 0, 0}
		if err := other.Send(append(wire.AppendEncodings(nil, wire.Raw, wire.ExtDesktopSize), setSize...)); err != nil {
			t.Fatal(err)
		}
		i := gone(t, s, rfb.ErrResolution, lab.SourceResized)
		if f := i.Event.Format; f == nil || f.Width != 256 || f.Height != 160 {
			t.Errorf("the new format is %+v", f)
		}
	})
}

// TestScreenWithoutPixels: a screen that is off at first is waited for, and one that is switched off ends the film and
// says so.
func TestScreenWithoutPixels(t *testing.T) {
	t.Run("wakes", func(t *testing.T) {
		sv := rfbtest.New(t, rfbtest.Config{Off: true})
		opened := make(chan error, 1)
		go func() {
			s, err := rfb.Open(within(t), rfb.Options{Address: sv.Addr()})
			if err == nil {
				err = s.Close()
			}
			opened <- err
		}()
		for range 2 { // looks at the screen
			<-sv.Connected
		}
		sv.Resize(80, 60)
		if err := <-opened; err != nil {
			t.Errorf("Open() of a screen that is switched on meanwhile = %v; want nil", err)
		}
	})
	t.Run("wakes for a client", func(t *testing.T) {
		s := open(t, rfb.Options{Address: rfbtest.New(t, rfbtest.Config{Off: true, Late: image.Pt(80, 60)}).Addr()})
		if f := s.Format(); f.Width != 80 || f.Height != 60 {
			t.Errorf("the format is %+v; want 80×60", f)
		}
	})
	t.Run("stays off", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
		defer cancel()
		_, err := rfb.Open(ctx, rfb.Options{Address: rfbtest.New(t, rfbtest.Config{Off: true}).Addr()})
		if err == nil || !errors.Is(err, wire.ErrNoPixels) || !strings.Contains(err.Error(), "no pixels (0×0): it is switched off") {
			t.Errorf("Open() of a screen that is off = %v; want that", err)
		}
	})
	t.Run("is switched off", func(t *testing.T) {
		sv := rfbtest.New(t, rfbtest.Config{})
		s := open(t, rfb.Options{Address: sv.Addr()})
		sv.Resize(0, 0)
		i := gone(t, s, wire.ErrNoPixels, lab.SourceSignalLost)
		if strings.Contains(i.Event.Detail, "connection") {
			t.Errorf("the event says %q; want that the screen is off, and nothing of the connection", i.Event.Detail)
		}
	})
}

// TestQEMU: a server of a third family, which shows the same in every encoding.
func TestQEMU(t *testing.T) {
	testlab.Long(t, "another VNC server")
	machine := rfbtest.QEMU(t, testlab.NeedProgram(t, "qemu-system-x86_64"))
	var want []byte
	for _, e := range []rfb.Encoding{rfb.Raw, rfb.Hextile, rfb.ZRLE} {
		s := open(t, rfb.Options{Address: machine.Address, Encoding: e})
		until(t, s, "a still frame", func(f lab.Frame) bool {
			if want == nil {
				want = bytes.Clone(f.Pix)
			}
			if !bytes.Equal(f.Pix, want) {
				t.Fatalf("%s: the picture differs from the raw one", e)
			}
			return f.Flags&lab.FrameRepeat != 0
		})
	}
	if f := bytes.Count(want, []byte{0, 0, 0, 0}); f == len(want)/4 {
		t.Error("the picture is all black")
	}
	s := open(t, rfb.Options{Address: machine.Address})
	machine.Stop()
	gone(t, s, rfb.ErrClosed, lab.SourceUnplugged)
}

// TestPassword: with a real server and with the fake.
func TestPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "passwd")
	writePassword(t, file, "sesame")
	addresses := []string{rfbtest.Xvnc(t, testlab.NeedProgram(t, "Xvnc", "Xtigervnc"), "-SecurityTypes", "VncAuth", "-PasswordFile",
		file).Address}
	for _, v := range []string{"3.3", "3.7", "3.8"} {
		addresses = append(addresses, rfbtest.New(t, rfbtest.Config{Version: v, Password: "sesame"}).Addr())
	}
	for _, address := range addresses {
		open(t, rfb.Options{Address: address, Password: lab.NewSecret("sesame")})
		for password, want := range map[string]string{"": "asks for a password", "wrong": "refuses the password"} {
			_, err := rfb.Open(within(t), rfb.Options{Address: address, Password: lab.NewSecret(password)})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, password %q: %v", address, password, err)
			}
		}
	}
}

// Ticks that this machine sleeps through are no losses, and frames that were looked
// for have the time at which they were.
func TestRecordsAScreen(t *testing.T) {
	sv := realXvnc(t)
	if st := record(t, sv, 0x00ff00); st.Lost != 0 || st.Irregular != 0 {
		t.Errorf("Stats = %+v, want nothing lost and no irregular time", st)
	}
}

// record films the server while its screen changes and until it has been still.
func record(t *testing.T, sv server, rgb uint32) capture.Stats {
	t.Helper()
	s, err := rfb.Open(within(t), rfb.Options{Address: sv.address})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "screen.reel")
	w, err := reel.Create(path, reel.Header{Format: s.Format(), Source: "rfb"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := capture.Start(t.Context(), s, w, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sv.paint(rgb)
	deadline := time.After(limit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for st := r.Status(); st.LastFrame.Sub(st.LastChange) < 300*time.Millisecond; st = r.Status() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the recording did not come to rest")
		}
	}
	st, err := r.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if st.Repeats == 0 {
		t.Errorf("Stop() = %+v, want repeats of a still screen", st)
	}
	report, err := reel.Verify(path)
	if err != nil || !report.Good() || report.Frames != st.Frames || report.Lost != st.Lost {
		t.Errorf("%+v, %v; recorded %+v", report, err, st)
	}
	return st
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	sv := rfbtest.New(t, rfbtest.Config{})
	for _, c := range []struct {
		o    rfb.Options
		want string
	}{
		{rfb.Options{Address: "nonsense"}, `"nonsense" is not of the form HOST:PORT`},
		{rfb.Options{Address: "127.0.0.1:1"}, "connect to the VNC server"},
		{rfb.Options{Address: "127.0.0.1:1"}, "(display :1 of a VNC server is port 5901)"},
		{rfb.Options{Address: "unix:/nowhere"}, "connect to the VNC server"},
		{rfb.Options{Address: sv.Addr(), Rate: 2000}, "frame rate 2000 is outside"},
		{rfb.Options{Address: sv.Addr(), Encoding: "jpeg"}, `encoding "jpeg" is not one of`},
	} {
		if _, err := rfb.Open(within(t), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	sv.Silence(true)
	if _, err := rfb.Open(ctx, rfb.Options{Address: sv.Addr()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent server: %v", err)
	}
}

// writePassword writes a password as vncpasswd does: encrypted with a key that
// everybody knows.
func writePassword(t *testing.T, file, password string) {
	t.Helper()
	key := []byte{23, 82, 107, 6, 35, 78, 88, 7}
	for i := range key {
		key[i] = bits.Reverse8(key[i])
	}
	block, err := des.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	var b [8]byte
	copy(b[:], password)
	block.Encrypt(b[:], b[:])
	if err := os.WriteFile(file, b[:], 0o600); err != nil {
		t.Fatal(err)
	}
}
