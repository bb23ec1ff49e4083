// Package simulate makes up experiments whose true difference is known, to try
// statistics on: loads of a page in blocks of two arms, with what spoils such
// measurements. A seeded source of chance flows in, values flow out.
package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"

	"eidetic/analysis/stats"
)

// Frame is the time of a frame at 60 Hz, in ms.
const Frame = 1000.0 / 60

// Machine is what the loads are measured on. Times are in ms.
type Machine struct {
	Load     float64 // median of a load
	Spread   float64 // standard deviation of its log-normal noise
	Outliers float64 // share of the loads that take 300 … 1000 ms longer
	Drift    float64 // how much slower the machine gets from the first trial to the last
	Frame    float64 // to whose end each load is rounded up; zero: it is not
	// Moving is set where loads begin anywhere within a frame, as they do when times
	// count from an input event; else they begin with it.
	Moving  bool
	Invalid float64 // share of the trials that are thrown away
	// Tails, if it is more than 2, are the degrees of freedom of Student's t, which the noise then follows
	// in place of the normal distribution, with the same standard deviation.
	Tails int
	// Known is the share of the noise's variance that a covariate tells before the load, and Useless is how many
	// covariates tell nothing.
	Known   float64
	Useless int
}

// Usual is the machine of docs/metrics.md: loads of 1.5 s with a spread of 45 ms,
// 5 % outliers, at 60 Hz.
func Usual() Machine {
	return Machine{Load: 1500, Spread: 45, Outliers: 0.05, Frame: Frame}
}

// Experiment is one of so many pairs, of which each treatment takes shift longer.
// The arms' order is drawn by lot within blocks of about five pairs, as
// internal/run/experiment does.
func (m Machine) Experiment(r *rand.Rand, pairs int, shift float64) []stats.Block {
	blocks, _ := m.Adjusted(r, pairs, shift)
	return blocks
}

// Adjusted is Experiment with its covariates: first the one that tells something, if Known says so, then the useless
// ones. Theirs drift with the machine, as its speed does, and one in twenty of their numbers is odd.
func (m Machine) Adjusted(r *rand.Rand, pairs int, shift float64) (blocks []stats.Block, covariates []stats.Covariate) {
	count := max((pairs+2)/5, 1)
	blocks = make([]stats.Block, count)
	if m.Known > 0 {
		covariates = append(covariates, stats.Covariate{Name: "known", Blocks: make([]stats.Block, count)})
	}
	for n := range m.Useless {
		covariates = append(covariates, stats.Covariate{Name: fmt.Sprint("useless ", n+1), Blocks: make([]stats.Block, count)})
	}
	trial := 0
	for i := range blocks {
		size := (i+1)*pairs/count - i*pairs/count
		for _, place := range r.Perm(2 * size) {
			arm, more := func(b *stats.Block) *[]float64 { return &b.Control }, 0.0
			if place >= size {
				arm, more = func(b *stats.Block) *[]float64 { return &b.Treatment }, shift
			}
			drift := float64(m.Drift * float64(trial) / float64(2*pairs-1))
			v, known := m.trial(r, more+drift)
			var told []float64
			for k := range covariates {
				z := known
				if m.Known == 0 || k > 0 {
					z = r.NormFloat64()
				}
				if told = append(told, 100+drift/10+10*z); m.Outliers > 0 && r.Float64() < m.Outliers {
					told[k] += 300
				}
			}
			if trial++; m.Invalid == 0 || r.Float64() >= m.Invalid {
				*arm(&blocks[i]) = append(*arm(&blocks[i]), v)
				for k := range covariates {
					to := arm(&covariates[k].Blocks[i])
					*to = append(*to, told[k])
				}
			}
		}
	}
	return blocks, covariates
}

// trial is a load's time, and what was known of its noise.
func (m Machine) trial(r *rand.Rand, more float64) (v, known float64) {
	z := m.noise(r)
	if m.Known > 0 {
		known = r.NormFloat64()
		z = float64(math.Sqrt(1-m.Known)*z) + float64(math.Sqrt(m.Known)*known)
	}
	v = float64(m.Load*math.Exp(m.Spread/m.Load*z)) + more
	if r.Float64() < m.Outliers {
		v += 300 + float64(700*r.Float64())
	}
	if m.Frame == 0 {
		return v, known
	}
	phase := 0.0
	if m.Moving {
		phase = m.Frame * r.Float64()
	}
	return float64(math.Ceil((v+phase)/m.Frame)*m.Frame) - phase, known
}

// noise has a standard deviation of 1.
func (m Machine) noise(r *rand.Rand) float64 {
	z := r.NormFloat64()
	if m.Tails <= 2 {
		return z
	}
	sum := 0.0
	for range m.Tails {
		v := r.NormFloat64()
		sum += float64(v * v)
	}
	return z / math.Sqrt(sum/float64(m.Tails-2))
}
