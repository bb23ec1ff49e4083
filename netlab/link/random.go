package link

import (
	"math/rand/v2"
	"time"
)

// newRandom returns a generator of its own for a direction: the same seed
// gives the same stream on every machine (PCG, whose output Go promises to keep).
func newRandom(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// spread returns a duration in [−d, d].
func spread(r *rand.Rand, d time.Duration) time.Duration {
	if d == 0 {
		return 0
	}
	return time.Duration((2*r.Float64() - 1) * float64(d))
}
