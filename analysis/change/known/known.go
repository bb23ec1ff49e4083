// Package known makes series of numbers whose steps are known, to try methods that look for them. A seed flows in, a
// series flows out; and points that were found flow in, and how many of them were right flows out.
package known

import (
	"math"
	"math/rand/v2"
)

// Noise is a distribution, of standard deviation 1.
type Noise string

// The distributions.
const (
	Normal Noise = "normal"
	Heavy  Noise = "heavy" // Student's t with five degrees of freedom, and one value in 50 that is 5 further up
)

// Series is a series of numbers with its steps.
type Series struct {
	Values []float64
	Steps  []int // the first value of each new level
}

// The shortest and the longest series.
const shortest, longest = 60, 200

// New makes the n-th series of a seed, of 60 to 200 values: its length and its one to four steps are drawn by lot, each
// up or down by size, and each level has at least so many values, of at most 30. Of size 0 it is flat.
func New(seed, n uint64, noise Noise, size float64, least int) Series {
	r := rand.New(rand.NewPCG(seed, n))
	length := shortest + r.IntN(longest-shortest+1)
	count := min(1+r.IntN(4), length/least-1)
	// Places that leave every level its least: the room that is left over is cut at random.
	room := length - (count+1)*least
	cuts := make([]int, length)
	for range room {
		cuts[r.IntN(count+1)]++
	}
	var s Series
	at := 0
	for i := range count {
		at += least + cuts[i]
		s.Steps = append(s.Steps, at)
	}
	level, next := 100.0, 0
	for i := range length {
		if next < len(s.Steps) && i == s.Steps[next] {
			next++
			if level += size; r.IntN(2) == 0 {
				level -= 2 * size
			}
		}
		s.Values = append(s.Values, level+noise.draw(r))
	}
	if size == 0 {
		s.Steps = nil
	}
	return s
}

func (n Noise) draw(r *rand.Rand) float64 {
	z := r.NormFloat64()
	if n == Normal {
		return z
	}
	sum := 0.0
	for range 5 {
		v := r.NormFloat64()
		sum += float64(v * v)
	}
	z /= math.Sqrt(sum / 3)
	if r.IntN(50) == 0 {
		z += 5
	}
	return z
}

// Score counts.
type Score struct {
	Steps, Points int
	Found, Right  int // steps that have a point, and points that have a step
}

// Judge matches points with steps, one with one, that are at most within apart.
func (s Series) Judge(points []int, within int) Score {
	out := Score{Steps: len(s.Steps), Points: len(points)}
	used := map[int]bool{}
	for _, step := range s.Steps {
		best := -1
		for i, p := range points {
			if d := max(p-step, step-p); d <= within && !used[i] && (best < 0 || d < max(points[best]-step, step-points[best])) {
				best = i
			}
		}
		if best >= 0 {
			used[best] = true
			out.Found++
			out.Right++
		}
	}
	return out
}

// Add adds the counts of another series.
func (s *Score) Add(o Score) {
	s.Steps, s.Points, s.Found, s.Right = s.Steps+o.Steps, s.Points+o.Points, s.Found+o.Found, s.Right+o.Right
}

// Precision is the share of points that are steps; 1 without any.
func (s Score) Precision() float64 { return share(s.Right, s.Points) }

// Recall is the share of steps that were found.
func (s Score) Recall() float64 { return share(s.Found, s.Steps) }

func share(part, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(part) / float64(of)
}
