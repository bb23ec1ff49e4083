package scrcpy_test

import (
	"context"
	"encoding/hex"
	"errors"
	"image"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/capture"
	"eidetic/capture/scrcpy"
	"eidetic/capture/scrcpy/scrcpytest"
	"eidetic/internal/base/adbserver"
	"eidetic/internal/base/adbserver/adbtest"
	"eidetic/internal/base/scrcpyserver/servertest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// A picture of the tests has its number in squares of black and white.
const (
	square = 16
	across = 20 // squares
	down   = 2
)

func screenFormat() lab.Format {
	return lab.Format{Pixels: lab.Grey, Width: across * square, Height: down * square, Rate: 60}
}

// draw draws a number.
func draw(f lab.Format, number int) []byte {
	pix := make([]byte, f.Width*f.Height)
	for y := range f.Height {
		for x := range f.Width {
			if number>>(x/square)&1 == 1 {
				pix[y*f.Width+x] = 255
			}
		}
	}
	return pix
}

// read reads the number of a picture, by its brightness.
func read(f lab.Format, pix []byte) (number int) {
	for bit := range min(across, f.Width/square) {
		if pix[square/2*f.Width+bit*square+square/2] > 128 {
			number |= 1 << bit
		}
	}
	return number
}

// plugIn starts the real adb server and a phone that trusts it.
func plugIn(t *testing.T) (adbserver.Client, *adbtest.Phone) {
	t.Helper()
	testlab.NeedProgram(t, "ffmpeg")
	client, phone := adbtest.NewServer(t), adbtest.NewPhone(t)
	phone.Accept()
	phone.Connect(t, client)
	adbtest.Await(t, client, phone.Serial, "device")
	return client, phone
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	t.Cleanup(cancel)
	return ctx
}

// drawn is what a phone has drawn: pictures by their numbers, with the box's time.
type drawn struct {
	filmed chan struct{} // closed by the test when it films
	mu     sync.Mutex
	at     map[int]lab.Time
}

func (d *drawn) when(number int) (lab.Time, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, ok := d.at[number]
	return at, ok
}

// pen draws pictures on the phone, has them encoded and sends them.
type pen struct {
	t       *testing.T
	ctx     context.Context
	s       *scrcpytest.Stream
	encoder *scrcpytest.Encoder
	format  lab.Format
	drawn   *drawn
}

func (p *pen) pause(d time.Duration) { _ = lab.Wait(p.ctx, d) }

// packet draws a number now and encodes it.
func (p *pen) packet(number int) (list []scrcpytest.Packet, at lab.Time) {
	at = lab.Monotonic()
	p.drawn.mu.Lock()
	p.drawn.at[number] = at
	p.drawn.mu.Unlock()
	list, err := p.encoder.Encode(draw(p.format, number))
	if err != nil && p.ctx.Err() == nil {
		p.t.Error(err)
	}
	return list, at
}

func (p *pen) send(list []scrcpytest.Packet, at lab.Time) {
	for _, one := range list {
		p.s.Packet(one, time.Duration(at+adbtest.Ahead))
	}
}

// warmUp draws the pictures 1 to 12, by which the clocks are mapped, and waits until they are filmed.
func (p *pen) warmUp() {
	for n := 1; n <= 12; n++ {
		p.picture(n)
		p.pause(10 * time.Millisecond)
	}
	select {
	case <-p.drawn.filmed:
	case <-p.ctx.Done():
	}
}

// picture draws and sends a number.
func (p *pen) picture(number int) { p.send(p.packet(number)) }

// serve has the phone draw with a pen, each time that it is filmed. After f the screen stays as it is.
func serve(t *testing.T, phone *adbtest.Phone, version string, key int, f func(*pen), more ...string) *drawn {
	d := &drawn{filmed: make(chan struct{}), at: map[int]lab.Time{}}
	format := screenFormat()
	scrcpytest.Serve(phone, version, format.Width, format.Height, func(ctx context.Context, s *scrcpytest.Stream) {
		s.Session(format.Width, format.Height)
		encoder, err := scrcpytest.NewEncoder(ctx, format, key, more...)
		if err != nil {
			t.Error(err)
			return
		}
		defer encoder.Close()
		f(&pen{t, ctx, s, encoder, format, d})
	})
	return d
}

// still is what a phone does whose screen stays as it is.
func (p *pen) still() { <-p.ctx.Done() }

// filmed is a frame that came.
type filmed struct {
	number int
	info   lab.FrameInfo
}

// film reads frames until one has a number, and what was reported in the place of others.
func film(t *testing.T, src capture.Source, last int) (frames []filmed, events []lab.SourceEvent) {
	t.Helper()
	ctx := within(t)
	for {
		f, err := src.Next(ctx)
		var other *capture.Interruption
		if errors.As(err, &other) && other.Ends == nil {
			events = append(events, other.Event)
			continue
		}
		if err != nil {
			t.Fatalf("Next() after %d frames = %v; want picture %d", len(frames), err, last)
		}
		f.Changed = nil
		one := filmed{read(src.Format(), f.Pix), f.FrameInfo}
		frames = append(frames, one)
		if one.number == last && f.Flags&lab.FrameRepeat == 0 {
			return frames, events
		}
	}
}

// pictures leaves the repeats out.
func pictures(frames []filmed) []filmed {
	return slices.DeleteFunc(slices.Clone(frames), func(f filmed) bool { return f.info.Flags&lab.FrameRepeat != 0 })
}

// TestConformance: of each version's stream, the pictures that were sent come out, each one with its own time, however
// late its packet comes; between them the screen stays as it was.
func TestConformance(t *testing.T) {
	client, phone := plugIn(t)
	for _, version := range []string{"1.25", "2.7", "3.3.4", "4.1"} {
		t.Run(version, func(t *testing.T) {
			if version == "2.7" {
				testlab.Long(t, "its bytes are those of 3.3.4")
			}
			const last = 60
			d := serve(t, phone, version, 20, func(p *pen) {
				p.warmUp()
				for n := 13; n < last; n++ {
					switch {
					case n%7 == 0: // the encoder leaves one out
						continue
					case n%11 == 0: // late: others are drawn meanwhile
						a, at := p.packet(n)
						p.pause(60 * time.Millisecond)
						n++
						b, bt := p.packet(n)
						p.send(a, at)
						p.send(b, bt)
					case n%13 == 0:
						p.pause(400 * time.Millisecond)
						p.picture(n)
					default:
						p.picture(n)
					}
					p.pause(17 * time.Millisecond)
				}
				p.picture(last)
				p.still()
			})
			src, err := scrcpy.Open(within(t), scrcpy.Options{Client: client, Server: servertest.Jar(t, version)})
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			close(d.filmed)
			if f := src.Format(); f.Pixels != lab.NV12 || f.Width != across*square || f.Height != down*square {
				t.Errorf("Format() = %+v", f)
			}
			frames, events := film(t, src, last)
			if len(events) > 0 {
				t.Errorf("events %v; want none", events)
			}
			checkTimes(t, d, frames)
			shown := pictures(frames)
			got := map[int]bool{}
			for _, f := range shown {
				got[f.number] = true
			}
			for n := shown[0].number; n <= last; n++ {
				if _, was := d.when(n); was != got[n] {
					t.Errorf("picture %d was sent: %v, came: %v", n, was, got[n])
				}
			}
			if phone.Files() != 0 {
				t.Errorf("%d files are left on the phone", phone.Files())
			}
		})
	}
	for ctx := within(t); phone.Programs() > 0; {
		if err := lab.Wait(ctx, time.Millisecond); err != nil {
			t.Fatalf("%d servers still run on the phone", phone.Programs())
		}
	}
}

// checkTimes compares the frames with what was drawn.
func checkTimes(t *testing.T, d *drawn, frames []filmed) {
	t.Helper()
	var before filmed
	least := time.Duration(1 << 62) // of the difference of a picture's time and its drawing
	for i, f := range frames {
		at, was := d.when(f.number)
		if !was {
			t.Fatalf("frame %d shows picture %d, which was not drawn", i, f.number)
		}
		if i > 0 && (f.info.Time <= before.info.Time || f.info.Seq <= before.info.Seq || f.number < before.number) {
			t.Errorf("frame %d, %+v, follows %+v", i, f, before)
		}
		if f.info.Flags&lab.FrameLook == 0 {
			t.Errorf("frame %d is no look", i)
		}
		if f.info.Flags&lab.FrameRepeat != 0 {
			if f.number != before.number || f.info.Time.Sub(before.info.Time) > time.Second/60+time.Microsecond {
				t.Errorf("frame %d repeats picture %d at %v after picture %d", i, f.number, f.info.Time.Sub(before.info.Time), before.number)
			}
		} else if i > 0 {
			late := f.info.Time.Sub(at)
			const drift = 1e-4 // what the clocks are allowed
			most := least + 200*time.Microsecond + time.Duration(drift*float64(f.info.Time.Sub(frames[0].info.Time)))
			if earliest := late - f.info.Uncertainty; earliest < 0 || earliest > most {
				t.Errorf("picture %d came %v to %v after it was drawn; want 0 to %v", f.number, earliest, late, most)
			}
			least = min(least, late)
		}
		before = f
	}
}

// TestDamage: a packet that is missing, cut off or out of order is told, and no picture that is made of it passes for
// good; the next picture that begins anew is good again.
func TestDamage(t *testing.T) {
	client, phone := plugIn(t)
	const key, last = 10, 60
	for _, c := range []struct {
		name  string
		event string
		more  []string
		send  func(p *pen, n int) bool // sends picture n in another way
	}{
		{"dropped", "a packet of the video is missing", nil, func(p *pen, n int) bool {
			if n == 25 {
				p.packet(n)
			}
			return n == 25
		}},
		{"reordered", "a packet of the video is missing", nil, func(p *pen, n int) bool {
			if n == 25 {
				a, at := p.packet(n)
				p.picture(n + 1)
				p.send(a, at)
			}
			return n == 25 || n == 26
		}},
		{"cut off", "the decoder says", nil, func(p *pen, n int) bool {
			if n == 25 {
				list, at := p.packet(n)
				list[0].Data = list[0].Data[:len(list[0].Data)/2]
				p.send(list, at)
			}
			return n == 25
		}},
		{"no picture", "without a picture", nil, func(p *pen, n int) bool {
			if n == 25 {
				list, at := p.packet(n)
				clear(list[0].Data)
				p.send(list, at)
			}
			return n == 25
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := serve(t, phone, "3.3.4", key, func(p *pen) {
				p.warmUp()
				for n := 13; n <= last; n++ {
					if !c.send(p, n) {
						p.picture(n)
					}
					p.pause(17 * time.Millisecond)
				}
				p.still()
			}, c.more...)
			src, err := scrcpy.Open(within(t), scrcpy.Options{Client: client, Server: servertest.Jar(t, "3.3.4")})
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			close(d.filmed)
			frames, events := film(t, src, last)
			if !slices.ContainsFunc(events, func(e lab.SourceEvent) bool {
				return e.Kind == lab.SourceDamaged && strings.Contains(e.Detail, c.event)
			}) {
				t.Errorf("events %v; want one with %q", events, c.event)
			}
			good := map[int]bool{}
			for _, f := range pictures(frames) {
				if f.info.Flags&lab.FrameCorrupt == 0 {
					good[f.number] = true
				}
			}
			for n := 13; n <= last; n++ {
				if want := n < 25 || n > 30; good[n] != want { // pictures 1, 11, 21, 31 … begin anew
					t.Errorf("picture %d is good: %v; want %v", n, good[n], want)
				}
			}
		})
	}
}

// TestEnds: what ends a stream is told by its name: a phone that is turned, a server that ends, a phone that goes away,
// bytes that make no sense.
func TestEnds(t *testing.T) {
	client, phone := plugIn(t)
	turned := screenFormat()
	turned.Width, turned.Height = turned.Height*4, turned.Width
	for _, c := range []struct {
		name, version, kind, says string
		is                        error
		end                       func(p *pen)
	}{
		{"turned", "3.3.4", lab.SourceResized, "128 × 320 now", scrcpy.ErrResolution, func(p *pen) {
			other, err := scrcpytest.NewEncoder(p.ctx, turned, 10)
			if err != nil {
				p.t.Error(err)
				return
			}
			defer other.Close()
			p.encoder, p.format = other, turned
			p.picture(13)
			p.still()
		}},
		{"turned, as it says", "4.0", lab.SourceResized, "128 × 320 now", scrcpy.ErrResolution, func(p *pen) {
			p.s.Session(turned.Width, turned.Height)
			p.still()
		}},
		{"the server ends", "2.7", lab.SourceUnplugged, "the phone's video ended", scrcpy.ErrClosed, func(*pen) {}},
		{"too long a packet", "2.7", lab.SourceUnplugged, "a packet of 1073741824 bytes", scrcpy.ErrClosed, func(p *pen) {
			p.s.Raw(1, 1<<30, nil)
			p.still()
		}},
		{"an empty packet", "4.1", lab.SourceUnplugged, "a packet of 0 bytes", scrcpy.ErrClosed, func(p *pen) {
			p.s.Raw(1, 0, nil)
			p.still()
		}},
		{"a packet cut off", "2.7", lab.SourceUnplugged, "was cut off", scrcpy.ErrClosed, func(p *pen) { p.s.Raw(1, 1000, make([]byte, 10)) }},
		{"other parameters", "2.7", lab.SourceUnplugged, "it is cut off", scrcpy.ErrClosed, func(p *pen) {
			p.s.Raw(1<<63, 6, []byte{0, 0, 0, 1, 0x67, 66})
			p.still()
		}},
		{"a clock that jumps", "2.7", lab.SourceUnplugged, "its clock was set", scrcpy.ErrClosed, func(p *pen) {
			list, at := p.packet(13)
			p.send(list, at.Add(time.Hour))
			p.still()
		}},
		{"the phone goes away", "3.3.4", lab.SourceUnplugged, "the phone's video ended", scrcpy.ErrClosed, func(p *pen) {
			phone.Leave()
			p.still()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := serve(t, phone, c.version, 100, func(p *pen) {
				p.warmUp()
				c.end(p)
			})
			src, err := scrcpy.Open(within(t), scrcpy.Options{Client: client, Server: servertest.Jar(t, c.version)})
			if err != nil {
				t.Fatal(err)
			}
			close(d.filmed)
			ctx := within(t)
			for err == nil {
				_, err = src.Next(ctx)
			}
			var other *capture.Interruption
			if !errors.As(err, &other) || other.Event.Kind != c.kind || !errors.Is(other.Ends, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Next() = %v; want the end %q with %q", err, c.kind, c.says)
			}
			if other != nil && c.kind == lab.SourceResized && (other.Event.Format == nil || other.Event.Format.Width != turned.Width) {
				t.Errorf("the event's format is %+v; want %+v", other.Event.Format, turned)
			}
			if err := src.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLate: a picture that comes when the screen was already taken for still makes the time of the change less certain,
// which the recording says.
func TestLate(t *testing.T) {
	client, phone := plugIn(t)
	d := serve(t, phone, "4.1", 100, func(p *pen) {
		p.warmUp()
		p.pause(100 * time.Millisecond)
		list, at := p.packet(13)
		p.pause(time.Second)
		p.send(list, at)
		p.still()
	})
	src, err := scrcpy.Open(within(t), scrcpy.Options{Client: client, Server: servertest.Jar(t, "4.1")})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	close(d.filmed)
	frames, _ := film(t, src, 13)
	checkTimes(t, d, frames)
	drawn, _ := d.when(13)
	before, late := frames[len(frames)-2].info, frames[len(frames)-1].info
	if before.Time.Add(-before.Uncertainty).Sub(drawn) > time.Second || late.Time.Sub(drawn) < time.Second/2 {
		t.Errorf("picture 13, drawn at %d, lies in %v before %d, after a repeat in %v before %d; want intervals that hold when it was drawn",
			drawn, late.Uncertainty, late.Time, before.Uncertainty, before.Time)
	}
	var sink unseen
	r, err := capture.Start(within(t), &played{src.Format(), frames}, &sink, capture.Options{NoPriority: true})
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	if _, err := r.Stop(); err != nil || len(sink) == 0 || sink[len(sink)-1].From.Sub(drawn) > time.Second/2 {
		t.Errorf("Stop() = %v; the recording has the late looks %v; want that of picture 13", err, sink)
	}
}

// played are frames as they came, without their pictures.
type played struct {
	format lab.Format
	frames []filmed
}

func (p *played) Format() lab.Format { return p.format }
func (p *played) Close() error       { return nil }
func (p *played) Next(context.Context) (lab.Frame, error) {
	if len(p.frames) == 0 {
		return lab.Frame{}, io.EOF
	}
	one := p.frames[0]
	p.frames = p.frames[1:]
	f := lab.Frame{FrameInfo: one.info, Pix: make([]byte, p.format.FrameSize())}
	f.Pix[0] = byte(one.number)
	f.Changed = []image.Rectangle{p.format.Bounds()}
	return f, nil
}

// unseen keeps the changes whose time is known badly.
type unseen []lab.SourceEvent

func (u *unseen) WriteFrame(lab.Frame) error { return nil }
func (u *unseen) WriteGap(lab.Gap) error     { return nil }
func (u *unseen) WriteEvent(e lab.SourceEvent) error {
	*u = append(*u, e)
	return nil
}

// TestOpen: what cannot be opened says why, and what to do.
func TestOpen(t *testing.T) {
	client, phone := plugIn(t)
	jar := servertest.Jar(t, "3.0")
	silent := func(*pen) {}
	for _, c := range []struct {
		name, installed, file, says string
		serial                      string
		f                           func(p *pen)
		patience                    time.Duration
	}{
		{"no file", "3.0", "/none", "there is no server at /none: download scrcpy-server", "", silent, 0},
		{"another version", "3.1", jar, "The server version (3.1) does not match the client (3.0)", "", silent, 0},
		{"an old version", "3.0", servertest.Jar(t, "1.17"), "it is scrcpy 1.17: take 1.23", "", silent, 0},
		{"another phone", "3.0", jar, "there is no phone", "other", silent, 0},
		{"no program", "", jar, "app_process: inaccessible", "", silent, 0},
		{"ends at once", "3.0", jar, "the server on the phone ended without a word", "", silent, 0},
		{"a picture first", "3.0", jar, "a picture before its parameters", "", func(p *pen) {
			p.s.Raw(1, 4, []byte{0, 0, 1, 0x65})
			p.still()
		}, 0},
		{"another size", "3.0", jar, "announces pictures of 320 × 32, and its video has 128 × 320", "", func(p *pen) {
			other := lab.Format{Pixels: lab.Grey, Width: 128, Height: 320, Rate: 60}
			encoder, err := scrcpytest.NewEncoder(p.ctx, other, 10)
			if err != nil {
				p.t.Error(err)
				return
			}
			defer encoder.Close()
			p.encoder, p.format = encoder, other
			p.picture(1)
			p.still()
		}, 0},
		{"a screen that is off", "3.0", jar, "unlock the phone", "", func(p *pen) { p.still() }, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.installed == "" {
				phone.Install(nil)
			} else {
				serve(t, phone, c.installed, 10, c.f)
			}
			src, err := scrcpy.Open(within(t), scrcpy.Options{Client: client, Serial: c.serial, Server: c.file, Patience: c.patience})
			if err == nil {
				src.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Open() = %v; want an error with %q", err, c.says)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	serve(t, phone, "3.0", 10, func(p *pen) {
		cancel()
		p.still()
	})
	if _, err := scrcpy.Open(ctx, scrcpy.Options{Client: client, Server: jar}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open() whose context ends = %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	format := screenFormat() // without ffmpeg there is no encoder either
	scrcpytest.Serve(phone, "3.0", format.Width, format.Height, func(ctx context.Context, s *scrcpytest.Stream) {
		s.Raw(1<<63, len(parameters()), parameters())
		<-ctx.Done()
	})
	if _, err := scrcpy.Open(within(t), scrcpy.Options{Client: client, Server: jar}); err == nil || !strings.Contains(err.Error(), "apt-get install ffmpeg") {
		t.Errorf("Open() without ffmpeg = %v; want how to install it", err)
	}
}

// parameters are those of libx264 for pictures of 320 × 32.
func parameters() []byte {
	b, _ := hex.DecodeString("000000016742c00bda051684000003000400000301e23c50aa800000000168ce010f20")
	return b
}
