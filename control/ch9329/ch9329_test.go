package ch9329

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"image"
	"os"
	"strings"
	"testing"
	"time"

	"eidetic/control"
	"eidetic/control/ch9329/chiptest"
	"eidetic/control/controltest"
	"eidetic/control/hid"
	"eidetic/control/hid/hidtest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

func TestMain(m *testing.M) {
	xtest.Main()
	os.Exit(m.Run())
}

// find finds a chip at the end of a cable.
func find(t *testing.T, chip *chiptest.Chip, o Options) *Chip {
	t.Helper()
	o.Path = chip.Path
	c, err := Find(within(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	t.Cleanup(cancel)
	return ctx
}

// device is what is at the chip's USB end in tests that look at reports.
func device() *hidtest.Sink {
	return &hidtest.Sink{Can: control.Capabilities{Keyboard: true, Pointer: true}}
}

// The manufacturer's examples (CH9329 serial commands, WCH).
func TestFramesAreTheManufacturers(t *testing.T) {
	for text, want := range map[string][]byte{
		"57AB00010003":                    appendFrame(nil, cmdInfo, nil),
		"57AB000208000004000000000010":    appendFrame(nil, cmdKeyboard, hid.Keyboard{Keys: [6]hid.Usage{4}}.Append(nil)),
		"57AB000208020004000000000012":    appendFrame(nil, cmdKeyboard, hid.Keyboard{Modifiers: 2, Keys: [6]hid.Usage{4}}.Append(nil)),
		"57AB000407020040011502" + "0067": appendFrame(nil, cmdAbsolute, []byte{2, 0, 0x40, 1, 0x15, 2, 0}),
	} {
		if got, err := hex.DecodeString(text); err != nil || !bytes.Equal(got, want) {
			t.Errorf("frame % X; the manufacturer's is % X (%v)", want, got, err)
		}
	}
	answer, err := hex.DecodeString("57AB0081083001030000000000BF")
	if err != nil {
		t.Fatal(err)
	}
	f, rest, ok, _ := nextFrame(append([]byte("noise\x57"), answer...))
	info, err := (&Chip{}).info(f.data)
	if want := (Info{Version: 0x30, Connected: true, NumLock: true, CapsLock: true}); !ok || len(rest) != 0 || err != nil || info != want {
		t.Errorf("info %+v, %v, rest % X; want %+v", info, err, rest, want)
	}
}

// The suite, with a real X server at the chip's USB end.
func TestSuite(t *testing.T) {
	server := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "640x480x24")
	chip := chiptest.New(t, Slow, hidtest.NewHost(t, server.Display, "us"))
	controltest.Suite{
		Target: controltest.NewWindow(t, server.Display),
		Open: func(t *testing.T) control.Controller {
			c, err := hid.New(find(t, chip, Options{Baud: Fast}), hid.Options{Screen: image.Pt(640, 480), Repeat: testlab.Hang})
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		NoPan: true, Ahead: Poll,
	}.Run(t)
	if chip.Baud() != Fast {
		t.Errorf("the chip is at %d baud; want %d, which the options name", chip.Baud(), Fast)
	}
}

// Whatever happens to the line, a text arrives whole and once.
func TestHealing(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault func(*chiptest.Chip)
	}{
		{"lost answers", func(c *chiptest.Chip) { c.Set(chiptest.Faults{LoseAnswers: 2}) }},
		{"lost bytes", func(c *chiptest.Chip) { c.Set(chiptest.Faults{LoseBytes: 2}) }},
		{"damaged commands", func(c *chiptest.Chip) { c.Set(chiptest.Faults{Damage: 2}) }},
		{"damaged answers", func(c *chiptest.Chip) { c.Set(chiptest.Faults{DamageAnswer: 2}) }},
		{"another rate", func(c *chiptest.Chip) { c.SetBaud(Fast) }},
		{"dead after idling", func(c *chiptest.Chip) { c.Set(chiptest.Faults{Dead: true}) }},
		{"cable unplugged", func(c *chiptest.Chip) { c.Unplug(); c.Plug() }},
		{"cable unplugged, rate forgotten", func(c *chiptest.Chip) { c.Unplug(); c.SetBaud(Fast); c.Plug() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sink := device()
			chip := chiptest.New(t, Slow, sink)
			c := find(t, chip, Options{})
			h, err := hid.New(c, hid.Options{Screen: image.Pt(100, 100), Repeat: testlab.Hang})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Text(within(t), "a"); err != nil {
				t.Fatal(err)
			}
			tt.fault(chip)
			e, err := h.Text(within(t), "bc")
			if err != nil {
				t.Fatal(err)
			}
			if e.Latest <= e.Earliest || c.Healed() == 0 {
				t.Errorf("event %+v after %d repairs; want an interval, and a repair", e, c.Healed())
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			chip.Unplug() // its goroutine has ended: the notes can be read
			if got, want := compact(sink.Notes), "04 00 05 00 06 00"; got != want {
				t.Errorf("keys %s; want %s", got, want)
			}
		})
	}
}

// compact drops repeated states, which a host does not notice.
func compact(notes []string) string {
	var keys []string
	for _, n := range notes {
		key := strings.TrimPrefix(n, "keys 00 ")
		if len(keys) == 0 || keys[len(keys)-1] != key {
			keys = append(keys, key)
		}
	}
	return strings.Join(keys, " ")
}

// A turn of the wheel whose answer is lost is not repeated: it is an error, and the
// chip works on.
func TestNothingIsDoneTwice(t *testing.T) {
	sink := device()
	chip := chiptest.New(t, Slow, sink)
	c := find(t, chip, Options{})
	chip.Set(chiptest.Faults{LoseAnswers: 1})
	if _, err := c.Send(within(t), hid.Pointer{Wheel: 1}); !errors.Is(err, errTwice) {
		t.Errorf("Send() = %v; want %v", err, errTwice)
	}
	if _, err := c.Send(within(t), hid.Pointer{}); err != nil {
		t.Errorf("Send() afterwards = %v", err)
	}
	chip.Unplug()
	if got, want := strings.Join(sink.Notes, "; "), "mouse 0 4,4 1,0; mouse 0 4,4 0,0"; got != want {
		t.Errorf("reports %s; want %s", got, want)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	sink := device()
	chip := chiptest.New(t, Slow, sink)
	c := find(t, chip, Options{})
	chip.Set(chiptest.Faults{Detached: true})
	if _, err := c.Send(within(t), hid.Keyboard{}); err == nil || !strings.Contains(err.Error(), "plug it in, or wake") {
		t.Errorf("without a device: %v; want an error that says so", err)
	}
	chip.Set(chiptest.Faults{Refuse: byte(StatusData)})
	if _, err := c.Send(within(t), hid.Keyboard{}); !errors.Is(err, StatusData) {
		t.Errorf("refused: %v; want %v", err, StatusData)
	}
	chip.Unplug()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Send(ctx, hid.Keyboard{}); err == nil || !strings.Contains(err.Error(), "plugged in") {
		t.Errorf("unplugged: %v; want an error that asks for the cable", err)
	}
	if _, err := Find(within(t), Options{Path: chip.Path}); err == nil || !strings.Contains(err.Error(), "no such port") {
		t.Errorf("Find() without a port: %v", err)
	}
	if _, err := Find(within(t), Options{Path: "/dev/null"}); err == nil || !strings.Contains(err.Error(), "not a serial port") {
		t.Errorf("Find() of a file that is no port: %v", err)
	}
	if _, err := Find(within(t), Options{Path: chip.Path, Baud: 300}); err == nil {
		t.Error("Find() accepts 300 baud")
	}
}

// A key that may have stayed down for long because answers were lost is told, by name; it is up nevertheless.
func TestLongPressIsTold(t *testing.T) {
	sink := device()
	chip := chiptest.New(t, Slow, sink)
	c := find(t, chip, Options{Answer: 300 * time.Millisecond})
	h, err := hid.New(c, hid.Options{Screen: image.Pt(100, 100), Repeat: 250 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	chip.Set(chiptest.Faults{LoseAnswers: 1})
	e, err := h.Key(within(t), "a")
	var held *control.HeldError
	if !errors.As(err, &held) || held.Down < 300*time.Millisecond || e.Latest < e.Earliest.Add(Poll) {
		t.Errorf("Key() = %+v, %v; want an interval, and that the key was down for 300 ms or more", e, err)
	}
	chip.Unplug()
	if got, want := compact(sink.Notes), "04 00"; got != want {
		t.Errorf("keys %s; want %s", got, want)
	}
}

// TestLongConfiguration: a CH9329F puts bytes behind its configuration that its stated length does not have. It is set all
// the same, with the 50 that there are.
func TestLongConfiguration(t *testing.T) {
	for _, extra := range []int{16, 32} {
		chip := chiptest.New(t, Slow, device())
		chip.Set(chiptest.Faults{Extra: extra})
		c := find(t, chip, Options{Baud: Fast})
		if chip.Baud() != Fast {
			t.Errorf("with %d bytes more, the chip is at %d baud; want %d, which the options name", extra, chip.Baud(), Fast)
		}
		if _, err := c.Send(within(t), hid.Keyboard{}); err != nil {
			t.Errorf("with %d bytes more, Send() = %v afterwards", extra, err)
		}
	}
}

// TestLostAnswersWhileSettingUp: a chip is set to its baud rate although one of the answers on the way is lost.
func TestLostAnswersWhileSettingUp(t *testing.T) {
	for _, cmd := range []byte{cmdGet, cmdSet, cmdReset} {
		chip := chiptest.New(t, Slow, device())
		chip.Set(chiptest.Faults{LoseAnswerTo: cmd})
		c := find(t, chip, Options{Baud: Fast})
		if chip.Baud() != Fast {
			t.Errorf("without the answer to command %#02x, the chip is at %d baud; want %d", cmd, chip.Baud(), Fast)
		}
		if _, err := c.Send(within(t), hid.Keyboard{}); err != nil {
			t.Errorf("without the answer to command %#02x, Send() = %v afterwards", cmd, err)
		}
	}
}

// TestAnswersInPieces: an answer is understood when its last byte has come, however it was cut, and what is behind it kept.
func TestAnswersInPieces(t *testing.T) {
	answer := []byte("\x00\x57\x57\xab\x00\x81\x08\x30\x01\x02\x00\x00\x00\x00\x00\xbe\x57")
	for size := 1; size < len(answer); size++ {
		c, rest, at := &Chip{}, answer, 0
		for {
			n := min(size, len(rest))
			at += n
			data, done, err := c.take(rest[:n], cmdInfo)
			if rest = rest[n:]; done {
				if string(data) != "\x30\x01\x02\x00\x00\x00\x00\x00" || err != nil || at < len(answer)-1 {
					t.Errorf("in pieces of %d bytes: %x, %v after %d bytes", size, data, err, at)
				}
				break
			}
			if len(rest) == 0 {
				t.Fatalf("in pieces of %d bytes: no answer", size)
			}
		}
	}
}

// A chip whose device has Caps Lock on says so.
func TestInfo(t *testing.T) {
	c := find(t, chiptest.New(t, Fast, device()), Options{})
	i, err := c.Info(within(t))
	if want := (Info{Version: 0x30, Connected: true, Baud: Fast}); err != nil || i != want {
		t.Errorf("Info() = %+v, %v; want %+v", i, err, want)
	}
	if !strings.Contains(c.Capabilities().Timing, "115200") || lab.Monotonic() == 0 {
		t.Errorf("Capabilities() = %+v", c.Capabilities())
	}
}

// FuzzFrame: whatever a line carries, frames that are found have a right sum, reading goes
// on, and what is kept is bounded.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("\x57\xab\x00\x81\x08\x30\x01\x03\x00\x00\x00\x00\x00\xbf"))
	f.Add([]byte("\x57\x57\xab\x00\xc2\x01\xe4\xa9\x57\xab\x00\x82\x01\x00\x85"))
	f.Add([]byte("\x57\xab\x00\x82\xff\x00"))
	f.Add([]byte("\x57"))
	f.Add(append(append([]byte("\x57\xab\x00\x88\x32"), make([]byte, 66)...), 0xbc))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		for {
			before := len(b)
			got, rest, ok, _ := nextFrame(b)
			if len(got.data) > maxData || !ok && len(rest) >= overhead+maxData+maxExtra || ok && len(rest) >= before {
				t.Fatalf("frame %v of %d bytes leaves %d of %d", ok, len(got.data), len(rest), before)
			}
			if b = rest; !ok {
				return
			}
		}
	})
}
