package schedule

import (
	"math/rand/v2"
	"time"
)

// NewRandom returns a generator for one direction's losses or jitter. The same
// seed and stream give the same numbers on every machine (PCG, whose output Go
// promises to keep).
func NewRandom(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// Jitter draws a duration in [−d, d].
func Jitter(r *rand.Rand, d time.Duration) time.Duration {
	if d == 0 {
		return 0
	}
	return time.Duration((2*r.Float64() - 1) * float64(d))
}
