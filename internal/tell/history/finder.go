package history

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"eidetic/analysis/change"
)

// Finder looks for change points and caches the result: the permutations of hundreds of
// runs take a second, and a history is read more often than it grows. It uses one
// processor core at a time. Use NewFinder; the zero value is not ready.
type Finder struct {
	// state is a mutex with a context: its owner takes it out of the channel and puts it back.
	state chan map[[sha256.Size]byte][]change.Point
}

// remembered bounds the number of series in the cache.
const remembered = 256

// NewFinder makes a Finder with an empty cache.
func NewFinder() *Finder {
	f := &Finder{make(chan map[[sha256.Size]byte][]change.Point, 1)}
	f.state <- map[[sha256.Size]byte][]change.Point{}
	return f
}

// points returns the change points of medians by a rule, from the cache if they are known.
func (f *Finder) points(ctx context.Context, medians []float64, rule Rule) ([]change.Point, error) {
	if len(medians) < rule.Needed {
		return nil, nil
	}
	h := sha256.New()
	_ = binary.Write(h, binary.LittleEndian, append(medians[:len(medians):len(medians)], rule.Level)) // a hash never fails
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
		points, err := change.Points(medians, change.Options{Level: rule.Level, Permutations: rule.permutations, Least: Least, Seed: 1})
		if err != nil {
			return nil, fmt.Errorf("find change points: %w", err)
		}
		known[key] = points
		return points, nil
	}
}
