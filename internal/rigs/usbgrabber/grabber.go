// Package usbgrabber is a USB stick that films an HDMI cable, without the stick: a device of the USB Video Class 1.1
// that plays a known film over USB/IP, so that the kernel's own driver of such sticks (uvcvideo) and the capture behind
// it can be tried with each fault that sticks have. In flow a film, drawn picture by picture, and the faults by the
// number of the picture; out flow USB's transfers to one host: the kernel behind [Plug] (vhci_hcd, in a virtual
// machine), or a test.
//
// The stick keeps time as sticks do: a picture that falls due while the one before is still on the cable is left out.
//
// Standards: USB Video Class 1.1 with its payload formats "MJPEG" and "uncompressed"; USB/IP as Linux documents it.
package usbgrabber

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"eidetic/internal/lab"
)

// Fault is what goes wrong with one picture.
type Fault int

// The faults.
const (
	Twice    Fault = iota + 1 // the picture before, once more
	Lost                      // it is never sent
	Torn                      // its lower half is that of the next picture
	Jump                      // the stick's own time stamps jump by a second from here on
	ErrorBit                  // a payload says that it is damaged
	Short                     // the second half of its bytes is missing
	Blue                      // the picture of a stick that has no signal
)

// Film draws picture n as YUYV of a format's size.
type Film func(f lab.Format, pix []byte, n int)

// Options of a stick.
type Options struct {
	Film   Film
	Faults map[int]Fault // by the picture's place in its stream, from 0
	// BlueFirst is how many pictures are blue after each change of the mode, as cheap sticks have it.
	BlueFirst int
	// Free has pictures follow each other without a pace.
	Free bool
}

// Sent is a picture that has left the stick.
type Sent struct {
	Number int // that it shows, of the film
	Fault  Fault
}

// Grabber is the stick.
type Grabber struct {
	o Options

	mu     sync.Mutex
	asked  mode // by the last probe
	stream context.CancelFunc
	ended  chan struct{}
	mode   lab.Format // of the last stream
	sent   []Sent
}

// New returns a stick.
func New(o Options) *Grabber { return &Grabber{o: o} }

// Sent lists what the last stream has sent, and says in which format.
func (g *Grabber) Sent() (lab.Format, []Sent) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mode, slices.Clone(g.sent)
}

// Standard requests (USB 3.2, table 9-4).
const (
	getStatus, clearFeature, setFeature, getDescriptor, getConfiguration, setConfiguration = 0, 1, 3, 6, 8, 9
	getInterface, setInterface, setSEL, setIsochDelay                                      = 10, 11, 48, 49
)

// control answers a control transfer; false stalls it.
func (g *Grabber) control(ctx context.Context, b *bus, s setup, data []byte) ([]byte, bool) {
	if s.kind&0x60 == 0x20 { // of the class
		return g.class(ctx, b, s, data)
	}
	switch s.request {
	case getDescriptor:
		device, config := descriptors()
		switch s.value >> 8 {
		case 1:
			return device, true
		case 2:
			return config, s.value&0xff == 0
		case 3:
			return text(byte(s.value))
		}
		return nil, false
	case getStatus:
		return []byte{0, 0}, true
	case getConfiguration:
		return []byte{1}, true
	case getInterface:
		return []byte{0}, true
	case clearFeature: // a host that stops a stream over a bulk endpoint says so by this
		if s.kind&0x1f == 2 {
			g.stop()
		}
		return nil, true
	case setConfiguration, setInterface, setFeature, setSEL, setIsochDelay:
		return nil, true
	}
	return nil, false
}

// class answers for the stream's interface.
func (g *Grabber) class(ctx context.Context, b *bus, s setup, data []byte) ([]byte, bool) {
	control := s.value >> 8
	if s.index != 1 || control != controlProbe && control != controlCommit {
		return nil, false
	}
	g.mu.Lock()
	asked := g.asked
	g.mu.Unlock()
	switch s.request {
	case setCurrent:
		m, ok := understood(data)
		if !ok {
			return nil, false
		}
		g.mu.Lock()
		g.asked = m
		g.mu.Unlock()
		if control == controlCommit {
			g.start(ctx, b, m)
		}
		return nil, true
	case getCurrent:
		return probe(asked), true
	case getLeast, getMost, getDefault:
		m := asked
		m.rate = map[byte]int{getLeast: 0, getMost: len(rates()) - 1, getDefault: 0}[s.request] // the least interval
		return probe(m), true
	case getLength:
		return []byte{probeSize, 0}, true
	case getInfo:
		return []byte{3}, true // can be read and set
	}
	return nil, false
}

// start begins to stream.
func (g *Grabber) start(ctx context.Context, b *bus, m mode) {
	g.stop()
	ctx, stop := context.WithCancel(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stream, g.ended, g.mode, g.sent = stop, make(chan struct{}), m.lab(), nil
	p := &player{g: g, b: b, format: m.lab(), ended: g.ended}
	go p.run(ctx)
}

// stop ends the stream.
func (g *Grabber) stop() {
	g.mu.Lock()
	stop, ended := g.stream, g.ended
	g.stream, g.ended = nil, nil
	g.mu.Unlock()
	if stop != nil {
		stop()
		<-ended
	}
}

// player is one stream.
type player struct {
	g      *Grabber
	b      *bus
	format lab.Format
	ended  chan struct{}

	began time.Time
	jump  time.Duration // of the stick's own clock
	fid   byte          // alternates from picture to picture
	shown int           // number of the last picture
	pix   []byte
	other []byte
}

func (p *player) run(ctx context.Context) {
	defer close(p.ended)
	size := int(bytesOf([2]int{p.format.Width, p.format.Height}))
	p.pix, p.other = make([]byte, size), make([]byte, size)
	p.began = time.Now()
	due, number, period := p.began, 0, time.Duration(float64(time.Second)/p.format.Rate)
	for place := 0; ; place++ {
		o := p.g.o
		if !o.Free {
			for late := time.Since(due); late >= period; late -= period { // what the cable had no time for is left out
				due, number = due.Add(period), number+1
			}
			if lab.Wait(ctx, time.Until(due)) != nil {
				return
			}
			due = due.Add(period)
		}
		fault := o.Faults[place]
		if fault == 0 && place < o.BlueFirst {
			fault = Blue
		}
		shown := number
		if fault == Twice {
			shown = p.shown
		}
		if err := p.picture(ctx, shown, fault); err != nil {
			return // the stream was stopped, or the cable was pulled
		}
		p.g.mu.Lock()
		p.g.sent = append(p.g.sent, Sent{shown, fault})
		p.g.mu.Unlock()
		number, p.shown = number+1, shown
	}
}

// picture sends one picture.
func (p *player) picture(ctx context.Context, number int, fault Fault) error {
	code, err := p.draw(number, fault)
	if err != nil || code == nil {
		return err
	}
	if fault == Jump {
		p.jump += time.Second
	}
	if fault == Short {
		code = code[:len(code)/2]
	}
	stamp := time.Since(p.began) + p.jump
	damaged := len(code) / 2 // where the payload with the error begins, at the latest
	const room = payloadSize - headerBytes
	for at := 0; at < len(code); at += room {
		part := code[at:min(at+room, len(code))]
		bits := p.fid | hasStamp | hasClock | headerEnds
		if at+len(part) == len(code) {
			bits |= frameEnds
		}
		if fault == ErrorBit && at <= damaged && damaged < at+room {
			bits |= hasError
		}
		if err := p.b.send(ctx, append(header(bits, stamp, time.Since(p.began)+p.jump), part...)); err != nil {
			return err
		}
	}
	p.fid ^= 1
	return nil
}

// Bits of a payload's header (USB Video Class 1.1, 2.4.3.3).
const (
	frameEnds, hasStamp, hasClock, hasError, headerEnds byte = 1 << 1, 1 << 2, 1 << 3, 1 << 6, 1 << 7
	headerBytes                                              = 12
)

// header is a payload's, with the time stamp of its picture and the clock's time of now.
func header(bits byte, stamp, now time.Duration) []byte {
	h := make([]byte, headerBytes, payloadSize)
	h[0], h[1] = headerBytes, bits
	tick := time.Second / clock
	binary.LittleEndian.PutUint32(h[2:], uint32(stamp/tick))
	binary.LittleEndian.PutUint32(h[6:], uint32(now/tick))
	binary.LittleEndian.PutUint16(h[10:], uint16(now/time.Millisecond)&0x7ff) // USB's own count of frames
	return h
}
