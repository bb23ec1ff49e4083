// Package filmtest makes recordings whose measurements are known by construction,
// for the tests and benchmarks of what is measured in frames. Everything follows
// from a seed: a scene draws states of a screen, a schedule says which state, or
// bands of several, each captured frame shows, and noise, flicker and the rest of a
// source's faults are laid over it. Frames are BGRX and are drawn when they are asked
// for, so that a film of ten thousand frames needs the memory of two.
package filmtest

import (
	"fmt"
	"image"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"eidetic/internal/lab"
)

// Scene draws state n of a screen into pix, BGRX without padding.
type Scene func(pix []byte, n int)

// Shot is what one captured frame shows: State, but from each of Bands' rows on the
// band's state.
type Shot struct {
	State int
	Bands []Band
}

// Band begins at Row and reaches to the next band or the bottom.
type Band struct{ Row, State int }

// Torn says whether the frame shows more than one state.
func (s Shot) Torn() bool {
	return slices.ContainsFunc(s.Bands, func(b Band) bool { return b.State != s.State })
}

// Film is a recording; it implements visual.Frames.
type Film struct {
	format lab.Format
	scene  Scene
	shots  []Shot
	infos  []lab.FrameInfo
	// After is laid over every frame: noise, flicker, vignette. A film with it has no
	// frame that is known to be unchanged.
	after func(pix []byte, frame int)

	buf, part []byte
	at        int
	Fail      int // a frame that cannot be read, if > 0
}

// Started is the time of each film's first frame.
const Started = lab.Time(time.Second)

// New makes a film of w × h pixels at a rate. Frames whose shot equals the one
// before have no changed regions, all others the whole frame.
func New(w, h int, rate float64, scene Scene, shots []Shot) *Film {
	f := &Film{format: lab.Format{Pixels: lab.BGRX, Width: w, Height: h, Rate: rate}, scene: scene, shots: shots, at: -1}
	f.buf, f.part = make([]byte, f.format.FrameSize()), make([]byte, f.format.FrameSize())
	for i, s := range shots {
		info := lab.FrameInfo{Seq: uint64(i), Time: Started.Add(time.Duration(float64(i) / rate * float64(time.Second)))}
		if i == 0 || !same(s, shots[i-1]) {
			info.Changed = []image.Rectangle{f.format.Bounds()}
		}
		f.infos = append(f.infos, info)
	}
	return f
}

func same(a, b Shot) bool { return a.State == b.State && slices.Equal(a.Bands, b.Bands) }

// Over lays a fault of the source over every frame.
func (f *Film) Over(after func(pix []byte, frame int)) *Film {
	f.after = after
	for i := range f.infos {
		f.infos[i].Changed = []image.Rectangle{f.format.Bounds()}
	}
	return f
}

// Drop takes captured frames away: their numbers are missing.
func (f *Film) Drop(frames ...int) *Film {
	for i := len(f.shots) - 1; i >= 0; i-- {
		if !slices.Contains(frames, i) {
			continue
		}
		if i+1 < len(f.infos) {
			f.infos[i+1].Changed = []image.Rectangle{f.format.Bounds()}
		}
		f.shots, f.infos = slices.Delete(f.shots, i, i+1), slices.Delete(f.infos, i, i+1)
	}
	return f
}

// Format describes every frame.
func (f *Film) Format() lab.Format { return f.format }

// Len is the number of frames.
func (f *Film) Len() int { return len(f.shots) }

// Info returns what is known of frame i.
func (f *Film) Info(i int) lab.FrameInfo { return f.infos[i] }

// Shot returns what frame i shows.
func (f *Film) Shot(i int) Shot { return f.shots[i] }

// Pixels draws frame i, valid until the next call.
func (f *Film) Pixels(i int) ([]byte, error) {
	if f.Fail > 0 && i == f.Fail {
		return nil, fmt.Errorf("block 7: checksum differs")
	}
	if i == f.at {
		return f.buf, nil
	}
	f.at = i
	s := f.shots[i]
	f.scene(f.buf, s.State)
	stride := f.format.Stride()
	for k, b := range s.Bands {
		to := f.format.Height
		if k+1 < len(s.Bands) {
			to = s.Bands[k+1].Row
		}
		if b.State == s.State {
			continue
		}
		f.scene(f.part, b.State)
		copy(f.buf[b.Row*stride:to*stride], f.part[b.Row*stride:to*stride])
	}
	if f.after != nil {
		f.after(f.buf, i)
	}
	return f.buf, nil
}

// Beat is the schedule of n captured frames, at one rate, of states that are
// shown at another from the instant phase on (in units of a captured frame).
func Beat(n int, captured, shown, phase float64) []Shot {
	shots := make([]Shot, n)
	for i := range shots {
		shots[i].State = int(math.Floor((float64(i) + phase) * shown / captured))
	}
	return shots
}

// States is a schedule of one shot for each state.
func States(states ...int) []Shot {
	shots := make([]Shot, len(states))
	for i, s := range states {
		shots[i].State = s
	}
	return shots
}

// Noise returns Gaussian noise of a source, new in every frame. It is drawn from a
// table, as a million logarithms a frame would take longer than the test.
func Noise(seed uint64, sigma float64) func(pix []byte, frame int) {
	r := rand.New(rand.NewPCG(seed, 17))
	table := make([]int8, 1<<16)
	for i := range table {
		table[i] = int8(min(max(math.Round(r.NormFloat64()*sigma), -127), 127))
	}
	return func(pix []byte, frame int) {
		x := seed*0x9e3779b97f4a7c15 + uint64(frame)*0xbf58476d1ce4e5b9 + 1
		for i := range pix {
			if i&3 == 3 {
				continue
			}
			if i&3 == 0 {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
			}
			pix[i] = uint8(min(max(int(pix[i])+int(table[uint16(x>>(uint(i&3)*16))]), 0), 255))
		}
	}
}

// Fill paints a rectangle of a BGRX picture of a width.
func Fill(pix []byte, width int, r image.Rectangle, red, green, blue uint8) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		row := pix[4*(y*width+r.Min.X) : 4*(y*width+r.Max.X)]
		for x := 0; x < len(row); x += 4 {
			row[x], row[x+1], row[x+2], row[x+3] = blue, green, red, 0
		}
	}
}
