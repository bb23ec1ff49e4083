package frames

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"path/filepath"
	"slices"
	"testing"

	"eidetic/analysis/filmtest"
	"eidetic/capture/reel"
	"eidetic/internal/lab"
)

// recorded makes a reel of pictures.
func recorded(t *testing.T, f lab.Format, pictures [][]byte) *reel.Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.reel")
	w, err := reel.Create(path, reel.Header{Format: f, Source: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for i, pix := range pictures {
		info := lab.FrameInfo{Seq: uint64(i), Time: lab.Time(1e9 + i*1e7), Changed: []image.Rectangle{f.Bounds()}}
		if err := w.WriteFrame(lab.Frame{FrameInfo: info, Pix: pix}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := reel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// film is a page that scrolls, stands still, and at last changes in a few pixels.
func film(f lab.Format) (out [][]byte) {
	page := filmtest.NewPage(f.Width, 400, 5)
	bgrx := make([]byte, 4*f.Width*f.Height)
	for i := range 150 {
		page.Show(bgrx, f.Width, f.Height, 0, min(i, 90)*2)
		if i > 120 {
			filmtest.Fill(bgrx, f.Width, image.Rect(5, 7, 9, 8+i%3), uint8(i), 200, 10)
		}
		pix := make([]byte, f.FrameSize())
		for k := range pix { // any bytes are pixels of any format
			pix[k] = bgrx[k%len(bgrx)]
			if f.Pixels == lab.BGRX && k%4 == 3 {
				pix[k] = 0
			}
		}
		out = append(out, pix)
	}
	return out
}

// player applies pieces as the page does.
type player struct {
	w, h   int
	pix    []uint32
	frames []difference // of the piece: frames[0] is the one before
	first  int
}

// difference leads from a frame to the next, and back.
type difference struct {
	moved image.Rectangle
	rows  int
	all   []rectangle
}

type rectangle struct {
	r   image.Rectangle
	pix []uint32
}

func (p *player) read(t *testing.T, b []byte) {
	t.Helper()
	next := func() uint32 {
		if len(b) < 4 {
			t.Fatal("a piece ends in the middle")
		}
		v := binary.LittleEndian.Uint32(b)
		b = b[4:]
		return v
	}
	p.frames = nil
	for k := 0; len(b) > 0; k++ {
		if at := int(int32(next())); at != p.first-1+k {
			t.Fatalf("piece %d has frame %d as number %d", p.first, at, k)
		}
		var one difference
		x, y, w, h := int(next()), int(next()), int(next()), int(next())
		one.moved, one.rows = image.Rect(x, y, x+w, y+h), int(int32(next()))
		for range next() {
			x, y, w, h := int(next()), int(next()), int(next()), int(next())
			rect := rectangle{r: image.Rect(x, y, x+w, y+h)}
			for range w * h {
				rect.pix = append(rect.pix, next())
			}
			one.all = append(one.all, rect)
		}
		p.frames = append(p.frames, one)
	}
}

// on goes one frame on, and returns how many pixels differ.
func (p *player) on(one difference) (pixels int) {
	before := slices.Clone(p.pix)
	p.rotate(one.moved, one.rows)
	p.flip(one.all)
	for i, v := range p.pix {
		if v != before[i] {
			pixels++
		}
	}
	return pixels
}

// back undoes on.
func (p *player) back(one difference) {
	p.flip(one.all)
	p.rotate(one.moved, -one.rows)
}

func (p *player) flip(rs []rectangle) {
	for _, one := range rs {
		for i, v := range one.pix {
			p.pix[(one.r.Min.Y+i/one.r.Dx())*p.w+one.r.Min.X+i%one.r.Dx()] ^= v
		}
	}
}

func (p *player) rotate(area image.Rectangle, rows int) {
	before := slices.Clone(p.pix)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		to := area.Min.Y + (y-area.Min.Y+rows+area.Dy())%area.Dy()
		copy(p.pix[to*p.w+area.Min.X:][:area.Dx()], before[y*p.w+area.Min.X:])
	}
}

// shows says whether the player has frame i.
func (p *player) shows(t *testing.T, r *reel.Reader, i int) bool {
	t.Helper()
	img, err := Picture(r, i)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range p.pix {
		if c := img.At(k%p.w, k/p.w).(color.RGBA); v != uint32(c.R)|uint32(c.G)<<8|uint32(c.B)<<16 {
			return false
		}
	}
	return true
}

// TestPieces: every frame of every format comes out of its piece forwards and backwards, and as many pixels differ
// as the list says.
func TestPieces(t *testing.T) {
	for _, pixels := range []lab.PixelFormat{lab.BGRX, lab.BGR24, lab.YUYV, lab.NV12, lab.Grey} {
		t.Run(string(pixels), func(t *testing.T) {
			f := lab.Format{Pixels: pixels, Width: 64, Height: 96, Rate: 60}
			r := recorded(t, f, film(f))
			list, err := Read(r, image.Rectangle{})
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Changed) != r.Len() || len(list.Pieces) < 3 || list.TimeNS[3] != 1e9+3e7 || list.Changed[100] != 0 {
				t.Fatalf("list = %d frames, pieces %v, times %v …; want %d frames in several pieces", len(list.Changed), list.Pieces, list.TimeNS[:4], r.Len())
			}
			p := &player{w: f.Width, h: f.Height}
			moved := 0
			for k, first := range list.Pieces {
				var b bytes.Buffer
				if err := WritePiece(&b, r, first, true); err != nil {
					t.Fatal(err)
				}
				p.first, p.pix = first, make([]uint32, f.Width*f.Height)
				p.read(t, b.Bytes())
				var bare bytes.Buffer
				if err := WritePiece(&bare, r, first, false); err != nil || !bytes.HasSuffix(b.Bytes(), bare.Bytes()[4*headWords:]) {
					t.Fatalf("piece %d without its base is another one (%v)", first, err)
				}
				end := r.Len()
				if k+1 < len(list.Pieces) {
					end = list.Pieces[k+1]
				}
				if len(p.frames) != end-first+1 {
					t.Fatalf("piece %d has %d frames, want %d", first, len(p.frames)-1, end-first)
				}
				p.on(p.frames[0])
				for i := first; i < end; i++ {
					n := p.on(p.frames[i-first+1])
					if p.frames[i-first+1].rows != 0 {
						moved++
					}
					if !p.shows(t, r, i) {
						t.Fatalf("frame %d is another one", i)
					}
					if rgb := pixels == lab.BGRX || pixels == lab.BGR24; i > 0 && rgb && n != list.Changed[i] {
						t.Errorf("frame %d: %d pixels differ, the list says %d", i, n, list.Changed[i])
					}
				}
				for i := end - 1; i > first; i-- {
					p.back(p.frames[i-first+1])
					if !p.shows(t, r, i-1) {
						t.Fatalf("back from %d, frame %d is another one", i, i-1)
					}
				}
			}
			if pixels == lab.BGRX && moved < 80 {
				t.Errorf("%d of the 90 frames in which the page scrolls are told as moved", moved)
			}
		})
	}
}

// TestScroll: a page that scrolls takes the rows that come in and what stands still, though it has a header and a
// sidebar that do, and a page of which all is new moves nothing.
func TestScroll(t *testing.T) {
	f := lab.Format{Pixels: lab.BGRX, Width: 300, Height: 200, Rate: 60}
	page := filmtest.NewPage(f.Width, 600, 9)
	var pictures [][]byte
	for i := range 9 {
		pix := make([]byte, f.FrameSize())
		page.Show(pix, f.Width, f.Height, 0, 7*i)
		filmtest.Fill(pix, f.Width, image.Rect(0, 0, f.Width, 20), 20, 30, 40)
		filmtest.Fill(pix, f.Width, image.Rect(0, 0, 50, f.Height), 90, 30, 40)
		pictures = append(pictures, pix)
	}
	noise := filmtest.NewPage(f.Width, f.Height, 77)
	pix := make([]byte, f.FrameSize())
	noise.Show(pix, f.Width, f.Height, 0, 0)
	r := recorded(t, f, append(pictures, pix))
	list, err := Read(r, image.Rectangle{})
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, first := range list.Pieces {
		var b bytes.Buffer
		if err := WritePiece(&b, r, first, false); err != nil {
			t.Fatal(err)
		}
		size += b.Len()
	}
	whole := 4 * f.Width * f.Height
	if most := 3 * whole; size > most { // the first frame, the last, and eight times a tenth
		t.Errorf("ten frames, of which eight scroll, take %d bytes; want %d at most", size, most)
	}
}

func TestRegion(t *testing.T) {
	f := lab.Format{Pixels: lab.BGRX, Width: 64, Height: 48, Rate: 60}
	r := recorded(t, f, film(f))
	list, err := Read(r, image.Rect(0, 0, 20, 20))
	if err != nil || list.Changed[121] == 0 || list.Region.Dx() != 20 {
		t.Errorf("changes at the animation: %+v, %v; want some", list, err)
	}
	if list, err = Read(r, image.Rect(30, 0, 50, 20)); err != nil || list.Changed[125] != 0 {
		t.Errorf("changes beside the animation: %v; want none", err)
	}
}

func TestRefuses(t *testing.T) {
	f := lab.Format{Pixels: lab.BGRX, Width: 16, Height: 8, Rate: 60}
	r := recorded(t, f, [][]byte{make([]byte, f.FrameSize()), make([]byte, f.FrameSize())})
	if err := WritePiece(&bytes.Buffer{}, r, 1, true); err == nil {
		t.Error("frame 1 begins no piece, and one was written")
	}
	for _, i := range []int{-1, 2} {
		if _, err := Picture(r, i); err == nil {
			t.Errorf("there is a picture of frame %d of 2", i)
		}
	}
	if _, err := Read(recorded(t, f, nil), image.Rectangle{}); err == nil {
		t.Error("a list of no frames")
	}
	big := lab.Format{Pixels: lab.Grey, Width: 16384, Height: 1025, Rate: 60}
	if _, err := Read(recorded(t, big, [][]byte{make([]byte, big.FrameSize())}), image.Rectangle{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a list of huge frames: %v; want ErrTooLarge", err)
	}
}
