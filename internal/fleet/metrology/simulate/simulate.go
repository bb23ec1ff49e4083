// Package simulate makes up the readings of boxes whose true health is known, to try package metrology on: with heavy
// tails, runs that resemble their neighbours, noise that is not alike at all times, and changes of level, spread and
// lost trials. A seeded source of chance flows in, readings flow out.
package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"eidetic/analysis/stats"
	"eidetic/internal/fleet/metrology"
	"eidetic/internal/metric"
)

// Box is what readings are drawn from. Spreads are relative to the level.
type Box struct {
	Name    string
	Trials  int     // of a reading
	Within  float64 // standard deviation of the trials of a reading
	Between float64 // standard deviation of the readings' levels, besides what their trials explain
	// Correlation is that of the levels of neighbouring readings.
	Correlation float64
	// Tails, if it is more than 2, are the degrees of freedom of Student's t, which trials and levels follow in place
	// of the normal distribution, with the same standard deviations.
	Tails int
	// Uneven is set where the noise of each reading is between a half and twice the usual one, and by day twice that of
	// the night.
	Uneven bool
	Thrown float64 // share of the trials that are thrown away
	// Frame, in ms, is what the times of frames are rounded to; they begin anywhere within one.
	Frame float64
	Days  int // readings of a day; zero: 24
}

// Change is what happens to a box.
type Change struct {
	At     int     // index of the first reading after it
	Until  int     // index of the first reading for which all is as it was; zero: never
	Level  float64 // factor of the level; zero: 1
	Spread float64 // factor of the spread within a reading; zero: 1
	Thrown float64 // share of trials thrown away, in place of Box.Thrown; zero: as it was
}

// shared is the part of the variance that the guards of a load have in common.
const shared = 0.5

// Readings draws n of them.
func (b Box) Readings(r *rand.Rand, n int, change Change) []metrology.Reading {
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	bases := []float64{900, 1200, 600, 1100} // ms, of the guards
	guards := metric.Guards()
	wander := make([]float64, len(guards)+1)
	for i := range wander {
		wander[i] = b.noise(r)
	}
	days := b.Days
	if days == 0 {
		days = 24
	}
	out := make([]metrology.Reading, n)
	for i := range out {
		level, spread, thrown := 1.0, 1.0, b.Thrown
		if i >= change.At && (change.Until == 0 || i < change.Until) {
			level, spread = or(change.Level, 1), or(change.Spread, 1)
			thrown = or(change.Thrown, thrown)
		}
		noise := 1.0
		if b.Uneven {
			noise = math.Exp2(2*r.Float64() - 1)
			if i%days < days/2 {
				noise *= math.Sqrt2
			} else {
				noise /= math.Sqrt2
			}
		}
		for k := range wander {
			wander[k] = float64(b.Correlation*wander[k]) + float64(math.Sqrt(1-b.Correlation*b.Correlation)*b.noise(r))
		}
		values := make([][]float64, len(guards))
		lost := 0
		for range b.Trials {
			if r.Float64() < thrown {
				lost++
				continue
			}
			common := b.noise(r)
			for k := range guards {
				own := mix(common, b.noise(r))
				between := mix(wander[len(guards)], wander[k])
				v := bases[k] * level * math.Exp(noise*(float64(b.Between*between)+float64(b.Within*spread*own)))
				if guards[k].Entry().Instant && b.Frame > 0 {
					phase := b.Frame * r.Float64()
					v = float64(math.Ceil((v+phase)/b.Frame)*b.Frame) - phase
				}
				values[k] = append(values[k], v)
			}
		}
		out[i] = metrology.Reading{
			At: start.Add(time.Duration(i) * time.Hour), Run: "run-" + strconv.Itoa(i), Reference: "simulated", Trials: b.Trials, Thrown: lost,
			Levels: []metrology.Level{},
		}
		for k, v := range values {
			if len(v) == 0 {
				continue
			}
			slices.Sort(v)
			out[i].Levels = append(out[i].Levels, metrology.Level{
				Metric: guards[k].String(), Unit: "ms", Median: stats.Quantile(v, 0.5), Spread: metrology.Deviation(v), N: len(v),
			})
		}
	}
	return out
}

func or(v, otherwise float64) float64 {
	if v == 0 {
		return otherwise
	}
	return v
}

// mix adds what is shared to what is not.
func mix(common, own float64) float64 {
	return float64(math.Sqrt(shared)*common) + float64(math.Sqrt(1-shared)*own)
}

// noise has a standard deviation of 1.
func (b Box) noise(r *rand.Rand) float64 {
	z := r.NormFloat64()
	if b.Tails <= 2 {
		return z
	}
	sum := 0.0
	for range b.Tails {
		v := r.NormFloat64()
		sum += float64(v * v)
	}
	return z / math.Sqrt(sum/float64(b.Tails-2))
}
