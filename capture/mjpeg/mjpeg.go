// Package mjpeg decodes the pictures of a grabber that compresses them, so that they can be compared: JPEG flows in,
// BGRX flows out, in order and with the times and numbers that the grabber gave. Several pictures are decoded at the
// same time; one comes out when as many have come in. A picture whose bytes are those of the one before is not decoded
// again. [Encoder] is for pictures that people see live.
package mjpeg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"runtime"
	"sync"

	"eidetic/capture"
	"eidetic/internal/lab"
)

// mostAtOnce bounds how many pictures are decoded at the same time, and so how much later the last one comes out.
const mostAtOnce = 4

// Source is a capture.Source over one of JPEGs.
type Source struct {
	from   capture.Source
	format lab.Format
	depth  int
	queue  []*job
	err    error    // what came after the queue
	newest []byte   // the bytes of the last picture that came in
	last   []byte   // the pixels of the last picture that came out
	bad    bool     // the last bytes that came out could not be decoded
	free   [][]byte // pixels that nobody reads any more
}

// job is a picture that is being decoded.
type job struct {
	info lab.FrameInfo
	code []byte
	pix  []byte
	same bool // its bytes are those of the one before
	err  error
	done chan struct{}
}

// New takes a source over. One that does not compress is returned as it is.
func New(from capture.Source) capture.Source {
	f := from.Format()
	if f.Pixels != lab.MJPEG {
		return from
	}
	f.Pixels = lab.BGRX
	return &Source{from: from, format: f, depth: min(runtime.NumCPU(), mostAtOnce)}
}

// Format describes the decoded pictures.
func (s *Source) Format() lab.Format { return s.format }

// Notes are those of the source.
func (s *Source) Notes() map[string]string {
	if n, ok := s.from.(interface{ Notes() map[string]string }); ok {
		return n.Notes()
	}
	return nil
}

// NotLossless says that the pictures were compressed.
func (s *Source) NotLossless() string {
	text := "MJPEG at the source"
	if n, ok := s.from.(interface{ NotLossless() string }); ok && n.NotLossless() != "" {
		text += "; " + n.NotLossless()
	}
	return text
}

// Next returns the oldest picture that is being decoded, when as many have come in as are decoded at once. An
// interruption comes in its place among the pictures. A picture that cannot be decoded is the one before, marked as
// damaged.
func (s *Source) Next(ctx context.Context) (lab.Frame, error) {
	for s.err == nil && len(s.queue) < s.depth {
		f, err := s.from.Next(ctx)
		if err != nil {
			s.err = err
			break
		}
		s.queue = append(s.queue, s.begin(f))
	}
	if len(s.queue) == 0 {
		err := s.err
		var other *capture.Interruption
		if errors.As(err, &other) && other.Ends == nil {
			s.err = nil
		}
		return lab.Frame{}, err
	}
	j := s.queue[0]
	s.queue = s.queue[1:]
	<-j.done
	return s.end(j), nil
}

// begin begins to decode a picture.
func (s *Source) begin(f lab.Frame) *job {
	j := &job{info: f.FrameInfo, done: make(chan struct{})}
	if j.same = s.newest != nil && bytes.Equal(f.Pix, s.newest); j.same {
		close(j.done)
		return j
	}
	j.code = bytes.Clone(f.Pix)
	s.newest = j.code
	if n := len(s.free); n > 0 {
		j.pix, s.free = s.free[n-1], s.free[:n-1]
	} else {
		j.pix = make([]byte, s.format.FrameSize())
	}
	go func() {
		defer close(j.done)
		j.err = Decode(j.pix, j.code, s.format)
	}()
	return j
}

// end gives a decoded picture out.
func (s *Source) end(j *job) lab.Frame {
	f := lab.Frame{FrameInfo: j.info}
	switch {
	case j.same && !s.bad:
		f.Flags |= lab.FrameRepeat
		f.Changed = nil
	case j.same || j.err != nil:
		s.bad = true
		f.Flags |= lab.FrameCorrupt
		if s.last == nil {
			clear(j.pix)
			s.last, j.pix = j.pix, nil
		}
		f.Changed = []image.Rectangle{s.format.Bounds()}
	default:
		s.bad = false
		s.last, j.pix = j.pix, s.last
		f.Flags &^= lab.FrameRepeat | lab.FrameProven
		f.Changed = []image.Rectangle{s.format.Bounds()}
	}
	if j.pix != nil {
		s.free = append(s.free, j.pix)
	}
	f.Pix = s.last
	return f
}

// Close waits for the pictures that are being decoded and closes the source.
func (s *Source) Close() error {
	for _, j := range s.queue {
		<-j.done
	}
	s.queue = nil
	return s.from.Close()
}

// Check returns what is wrong with the head of a JPEG that is to have the format's size.
func Check(code []byte, f lab.Format) error {
	head, err := jpeg.DecodeConfig(bytes.NewReader(code))
	if err != nil {
		return fmt.Errorf("a JPEG of %d bytes: %w", len(code), err)
	}
	if head.Width != f.Width || head.Height != f.Height {
		return fmt.Errorf("a JPEG of %d × %d among pictures of %d × %d", head.Width, head.Height, f.Width, f.Height)
	}
	return nil
}

// Picture decodes a JPEG of the format's size, also one without Huffman tables or the marker of its end, and one before
// which something else stands. The error says what is wrong with the bytes.
func Picture(code []byte, f lab.Format) (image.Image, error) {
	code = WithTables(code)
	if err := Check(code, f); err != nil {
		return nil, err
	}
	img, err := jpeg.Decode(bytes.NewReader(withEnd(code)))
	if err != nil {
		return nil, fmt.Errorf("a JPEG of %d bytes: %w", len(code), err)
	}
	return img, nil
}

// Decode writes a picture as BGRX.
func Decode(pix, code []byte, f lab.Format) error {
	img, err := Picture(code, f)
	if err != nil {
		return err
	}
	if m, ok := img.(*image.YCbCr); ok {
		fromYCbCr(pix, m)
		return nil
	}
	m := image.NewRGBA(f.Bounds())
	draw.Draw(m, m.Rect, img, image.Point{}, draw.Src)
	for i := 0; i < len(pix); i += 4 {
		pix[i], pix[i+1], pix[i+2], pix[i+3] = m.Pix[i+2], m.Pix[i+1], m.Pix[i], 0
	}
	return nil
}

// fromYCbCr writes a picture as BGRX, by the formula of JFIF (BT.601 in full range).
func fromYCbCr(pix []byte, m *image.YCbCr) {
	w, shift := m.Rect.Dx(), 0
	switch m.SubsampleRatio {
	case image.YCbCrSubsampleRatio422, image.YCbCrSubsampleRatio420:
		shift = 1
	case image.YCbCrSubsampleRatio411, image.YCbCrSubsampleRatio410:
		shift = 2
	}
	for y := range m.Rect.Dy() {
		at := m.COffset(0, y)
		cb, cr := m.Cb[at:], m.Cr[at:]
		line := pix[4*y*w:][:4*w]
		for x, l := range m.Y[y*m.YStride:][:w] {
			v, u, r := int(l)<<16+1<<15, int(cb[x>>shift])-128, int(cr[x>>shift])-128
			p := line[4*x:][:4]
			p[0], p[1], p[2], p[3] = clamp(v+116130*u), clamp(v-22554*u-46802*r), clamp(v+91881*r), 0
		}
	}
}

func clamp(v int) byte { return byte(min(max(v>>16, 0), 255)) }

// Markers of a JPEG (ITU-T T.81, table B.1).
const (
	markerFrame  = 0xc0 // SOF0
	markerTables = 0xc4 // DHT
	markerStart  = 0xd8 // SOI
	markerEnd    = 0xd9 // EOI
	markerScan   = 0xda // SOS
	markerQuanta = 0xdb // DQT
)

// standardTables are the Huffman tables of ITU-T T.81, annex K.3, as a segment. Grabbers leave them out, as in AVI
// files; the encoder of the standard library writes them.
var standardTables = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewRGBA(image.Rect(0, 0, 8, 8)), nil); err != nil {
		return nil
	}
	segment, _ := find(b.Bytes(), markerTables)
	return segment
})

// WithTables adds the standard tables to a JPEG that has none, and cuts off what stands before it.
func WithTables(code []byte) []byte {
	code = fromStart(code)
	if _, ok := find(code, markerTables); ok || len(code) < 2 {
		return code
	}
	return bytes.Join([][]byte{code[:2], standardTables(), code[2:]}, nil)
}

// withEnd adds the marker of a JPEG's end, which some grabbers leave out. A JPEG that was cut off earlier stays invalid.
func withEnd(code []byte) []byte {
	if bytes.HasSuffix(bytes.TrimRight(code, "\x00"), []byte{0xff, markerEnd}) {
		return code
	}
	return append(code[:len(code):len(code)], 0xff, markerEnd)
}

// fromStart cuts off what some grabbers send before a JPEG: zeros, or JPEGs of nothing (SOI and EOI).
func fromStart(code []byte) []byte {
	for at := 0; ; at += 2 {
		n := bytes.Index(code[at:], []byte{0xff, markerStart, 0xff})
		if n < 0 {
			return code
		}
		if at += n; at+3 < len(code) && code[at+3] != markerEnd {
			return code[at:]
		}
	}
}

// find returns the first segment of a kind before the picture's own bytes.
func find(code []byte, marker byte) (segment []byte, ok bool) {
	for at := 2; at+4 <= len(code) && code[at] == 0xff; {
		if code[at+1] == 0xff { // a byte of padding
			at++
			continue
		}
		size := 2 + int(code[at+2])<<8 + int(code[at+3])
		if at+size > len(code) || size < 4 {
			return nil, false
		}
		if code[at+1] == marker {
			return code[at : at+size], true
		}
		if code[at+1] == markerScan {
			return nil, false
		}
		at += size
	}
	return nil, false
}
