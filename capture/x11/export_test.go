package x11

import (
	"bytes"
	"context"
	"fmt"
	"image"
)

// Shared says whether pictures come through shared memory.
func (s *Source) Shared() bool { return s.shm != nil }

// Damage says whether the server tells what was drawn.
func (s *Source) Damage() bool { return s.damage != nil }

// Proof is what came of comparing the server's word with every picture.
type Proof struct {
	Looks     int // pictures fetched, one at each look
	Undamaged int // looks at which the server said that nothing had been drawn
	Changed   int // looks at which a pixel differed from the look before
	Unseen    int // looks with a pixel that differed although the server said nothing of it
	First     string
}

// Prover fetches the picture at every look, whether the server says that something
// was drawn or not, and finds the pixels that differ outside of what it said.
type Prover struct {
	s     *Source
	last  []byte            // the picture of the look before
	drawn []image.Rectangle // said since that picture was fetched
	Proof Proof
}

// Prove takes the source over: its Next must not be called any more.
func (s *Source) Prove() *Prover { return &Prover{s: s} }

// Look waits for the next tick and looks.
func (p *Prover) Look(ctx context.Context) error {
	tick, err := p.s.looks.Pace.Next(ctx)
	if err != nil {
		return err
	}
	if p.drawn, err = p.s.damage.take(p.s.w, p.s.region, p.drawn); err != nil {
		return err
	}
	undamaged := len(p.drawn) == 0
	if err := p.s.picture(); err != nil {
		return err
	}
	// What is drawn between the two questions is in the picture: it is asked for now,
	// and may as well be in the next one only.
	before := len(p.drawn)
	if p.drawn, err = p.s.damage.take(p.s.w, p.s.region, p.drawn); err != nil {
		return err
	}
	p.compare(tick, undamaged)
	p.drawn = append(p.drawn[:0], p.drawn[before:]...)
	return nil
}

func (p *Prover) compare(tick uint64, undamaged bool) {
	p.Proof.Looks++
	pix := p.s.pix
	if p.last == nil {
		p.last = bytes.Clone(pix)
		return
	}
	if undamaged {
		p.Proof.Undamaged++
	}
	if bytes.Equal(p.last, pix) {
		return
	}
	p.Proof.Changed++
	stride := p.s.format.Stride()
	for _, r := range p.drawn {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			from, to := y*stride+4*r.Min.X, y*stride+4*r.Max.X
			copy(p.last[from:to], pix[from:to])
		}
	}
	if bytes.Equal(p.last, pix) {
		return
	}
	p.Proof.Unseen++
	if p.Proof.First == "" {
		at := 0
		for p.last[at] == pix[at] {
			at++
		}
		p.Proof.First = fmt.Sprintf("tick %d: pixel %d,%d differs, and the server names %v", tick, at%stride/4, at/stride, p.drawn)
	}
	copy(p.last, pix)
}
