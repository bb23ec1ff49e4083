package history

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"eidetic/analysis/change"
)

// Finder looks for change points, and remembers those that it found: the
// permutations of hundreds of runs take a second, and a history is looked at
// more often than it grows. It uses one processor core at a time. Its zero
// value is not ready: see NewFinder.
type Finder struct {
	// state is taken out of the channel by the one whose turn it is.
	state chan map[[sha256.Size]byte][]change.Point
}

// remembered bounds the series whose change points are kept.
const remembered = 256

// NewFinder makes one that remembers nothing yet.
func NewFinder() *Finder {
	f := &Finder{make(chan map[[sha256.Size]byte][]change.Point, 1)}
	f.state <- map[[sha256.Size]byte][]change.Point{}
	return f
}

// points returns the change points of medians; the same ones have the same. There
// are none of fewer than Needed.
func (f *Finder) points(ctx context.Context, medians []float64) ([]change.Point, error) {
	if len(medians) < Needed() {
		return nil, nil
	}
	h := sha256.New()
	_ = binary.Write(h, binary.LittleEndian, medians) // a hash takes everything
	key := [sha256.Size]byte(h.Sum(nil))
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("find change points: %w", ctx.Err())
	case known := <-f.state:
		defer func() { f.state <- known }()
		if points, ok := known[key]; ok {
			return points, nil
		}
		if len(known) >= remembered {
			clear(known)
		}
		points, err := change.Points(medians, change.Options{Level: Level, Least: Least, Seed: 1})
		if err != nil {
			return nil, fmt.Errorf("find change points: %w", err)
		}
		known[key] = points
		return points, nil
	}
}
