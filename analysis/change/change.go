// Package change finds the places in a history where its distribution changed.
// A series of numbers in order of time flows in, one for each experiment or
// build, never raw page loads; change points with their p-values flow out. It
// is pure, and seeded where it draws lots.
//
// The method is E-divisive (Matteson and James 2014: A nonparametric approach
// for multiple change point analysis of multivariate data), as MongoDB uses it
// for its performance history (Daly and others, ICPE 2020): no distribution
// is assumed, and any number of changes is found. E-divisive overlooks steps that undo each
// other, because it splits a whole segment in two. A second test, which has a fifth of the level, looks
// at intervals of all scales for these. Each point is then moved to the best place between its neighbours.
package change

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"eidetic/analysis/stats"
)

// Options of Points. The zero value has the field's defaults.
type Options struct {
	// Level is the largest p-value of a change point; zero: 0.05.
	Level float64
	// Permutations of each test; zero: 999. The smallest p-value that can come
	// out is 1 ÷ (Permutations + 1).
	Permutations int
	// Least is the smallest number of values between two change points; zero: 3.
	Least int
	// Seed of the permutations.
	Seed uint64
}

// Point is a change of the distribution.
type Point struct {
	// Index is the first value after the change.
	Index int `json:"index"`
	// P is the share of permutations with as large a statistic.
	P float64 `json:"p"`
	// Statistic is E-divisive's Q: the energy distance between the two sides, up to the next
	// change points, times their harmonic weight.
	Statistic float64 `json:"statistic"`
	// Before and After are the medians up to the next change point on each side.
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// SeriesLevel is the level for one series that is looked at for itself: of flat series, one in forty shows a
// change.
const SeriesLevel = 0.025

// MaxValues bounds a series.
const MaxValues = 100_000

// Points returns the change points in order of index. The strongest split of all
// segments is tested by permuting values within the segments found so far;
// if it holds, the segment is split there, and so on.
func Points(values []float64, o Options) ([]Point, error) {
	if o.Level == 0 {
		o.Level = 0.05
	}
	if o.Permutations == 0 {
		o.Permutations = 999
	}
	if o.Least == 0 {
		o.Least = 3
	}
	if o.Least < 1 || o.Permutations < 1 || !(o.Level > 0 && o.Level < 1) {
		return nil, fmt.Errorf("change points: level %v, %d permutations, segments of %d: a level between 0 and 1 and at least 1 of the "+
			"others are needed", o.Level, o.Permutations, o.Least)
	}
	if len(values) > MaxValues {
		return nil, fmt.Errorf("change points: %d values, at most %d are possible: give the newest", len(values), MaxValues)
	}
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("change points: value %d is %v", i, v)
		}
	}
	r := rand.New(rand.NewPCG(o.Seed, 0x64697669736976)) // "divisiv"
	f, g := &finder{least: o.Least}, &bump{least: o.Least}
	var found []Point
	for range rounds {
		before := slices.Clone(found)
		found = add(values, found, o, r, f, g)
		f.settle(values, found)
		found = prune(values, found, o, r, f, g)
		if slices.EqualFunc(before, found, func(a, b Point) bool { return a.Index == b.Index }) {
			break
		}
	}
	ends := endsOf(found, len(values))
	for i := range found {
		found[i].Before, found[i].After = stats.Median(values[ends[i]:ends[i+1]]), stats.Median(values[ends[i+1]:ends[i+2]])
	}
	return found, nil
}

// rounds bounds how often points are added, moved and taken away.
const rounds = 6

// endsOf are the ends of the segments between points: they are ends[i] … ends[i+1]−1.
func endsOf(found []Point, length int) []int {
	ends := []int{0}
	for _, p := range found {
		ends = append(ends, p.Index)
	}
	return append(ends, length)
}

// add adds points until no split of any segment is significant.
func add(values []float64, found []Point, o Options, r *rand.Rand, f *finder, g *bump) []Point {
	for {
		ends := endsOf(found, len(values))
		p, ok := next(values, ends, divisiveShare, o, r, f.best)
		if !ok {
			p, ok = next(scoreWithin(values, ends), ends, 1-divisiveShare, o, r, g.best)
		}
		if !ok {
			return found
		}
		at, _ := slices.BinarySearchFunc(found, p.Index, func(a Point, index int) int { return a.Index - index })
		found = slices.Insert(found, at, p)
	}
}

// prune takes points away that are not significant between their neighbours, the least significant first: they were
// needed only while a neighbour was not known, or not at its place.
func prune(values []float64, found []Point, o Options, r *rand.Rand, f *finder, g *bump) []Point {
	for {
		worst, most := -1, o.Level
		for i, p := range found {
			ends := endsOf(found, len(values))
			segment := values[ends[i]:ends[i+2]]
			whole := []int{0, len(segment)}
			one, _ := next(segment, whole, divisiveShare, o, r, f.best)
			two, _ := next(scoreWithin(segment, whole), whole, 1-divisiveShare, o, r, g.best)
			if v := min(one.P, two.P); v > most {
				worst, most = i, v
			} else {
				found[i].P = min(p.P, v)
			}
		}
		if worst < 0 {
			return found
		}
		found = slices.Delete(found, worst, worst+1)
	}
}

// divisiveShare is E-divisive's share of the level; the other test has the rest.
const divisiveShare = 0.8

// next tests the strongest split that best knows of, at a share of the level. P is as if it had all of the level.
func next(
	values []float64, ends []int, share float64, o Options, r *rand.Rand, best func([]float64, []int) (int, float64),
) (Point, bool) {
	at, q := best(values, ends)
	if at < 0 {
		return Point{P: 1}, false
	}
	level := o.Level
	o.Level *= share
	p := test(values, ends, q, o, r, best) / share
	return Point{Index: at, P: min(p, 1), Statistic: q}, p <= level*(1+1e-12)
}

// settle moves each point to the strongest split between its neighbours, until none moves: a point
// that was found when its neighbours were not known yet may be beside its place.
func (f *finder) settle(values []float64, found []Point) {
	for range 10 {
		moved := false
		for i := range found {
			from, to := 0, len(values)
			if i > 0 {
				from = found[i-1].Index
			}
			if i+1 < len(found) {
				to = found[i+1].Index
			}
			k, q := f.split(values[from:to])
			if k == 0 { // the neighbours are too near
				continue
			}
			moved = moved || from+k != found[i].Index
			found[i].Index, found[i].Statistic = from+k, q
		}
		if !moved {
			return
		}
	}
}

// finder looks for the best split; it keeps its scratch memory.
type finder struct {
	least       int
	order       []int
	left, right fenwick
}

// best returns the strongest split of all segments, or −1.
func (f *finder) best(values []float64, ends []int) (at int, q float64) {
	at = -1
	for i := 0; i+1 < len(ends); i++ {
		if k, v := f.split(values[ends[i]:ends[i+1]]); k > 0 && (at < 0 || v > q) {
			at, q = ends[i]+k, v
		}
	}
	return at, q
}

// test returns the p-value of a best split of statistic q. It stops early
// once the p-value cannot get to the level any more (Besag and Clifford 1991).
func test(values []float64, ends []int, q float64, o Options, r *rand.Rand, best func([]float64, []int) (int, float64)) float64 {
	shuffled := slices.Clone(values)
	larger, most := 0, int(o.Level*float64(o.Permutations+1))
	for done := 1; done <= o.Permutations; done++ {
		for i := 0; i+1 < len(ends); i++ {
			s := shuffled[ends[i]:ends[i+1]]
			r.Shuffle(len(s), func(a, b int) { s[a], s[b] = s[b], s[a] })
		}
		if _, v := best(shuffled, ends); v >= q-1e-12*math.Abs(q) {
			if larger++; larger >= most {
				return max(float64(1+larger)/float64(1+done), math.Nextafter(o.Level, 1))
			}
		}
	}
	return float64(1+larger) / float64(1+o.Permutations)
}

// split returns the k that maximises the statistic of x[:k] against x[k:], or 0
// if the segment is too short:
//
//	Q = mn/(m+n) · (2/(mn)·Σ|xᵢ−yⱼ| − 1/C(m,2)·Σ|xᵢ−xₖ| − 1/C(n,2)·Σ|yⱼ−yₖ|)
//
// Sums of distances to what is on one side come from Fenwick trees over ranks, so
// the whole segment costs n·log n.
func (f *finder) split(x []float64) (at int, best float64) {
	n := len(x)
	if n < 2*f.least || n < 2 {
		return 0, 0
	}
	f.order = f.order[:0]
	for i := range x {
		f.order = append(f.order, i)
	}
	slices.SortFunc(f.order, func(a, b int) int {
		switch {
		case x[a] < x[b]:
			return -1
		case x[a] > x[b]:
			return 1
		}
		return a - b
	})
	rank := make([]int, n)
	for r, i := range f.order {
		rank[i] = r
	}
	f.left.reset(n)
	f.right.reset(n)
	// Sums over the pairs within each side: all values are on the right at first.
	var left, right, total float64
	for i, v := range x {
		total += f.right.distance(rank[i], v)
		f.right.add(rank[i], v, 1)
	}
	right = total
	for k := 1; k < n; k++ {
		v, r := x[k-1], rank[k-1]
		f.right.add(r, v, -1)
		right -= f.right.distance(r, v)
		left += f.left.distance(r, v)
		f.left.add(r, v, 1)
		if k < f.least || n-k < f.least {
			continue
		}
		if q := statistic(left, right, total-left-right, float64(k), float64(n-k)); at == 0 || q > best {
			at, best = k, q
		}
	}
	return at, best
}

// statistic is Q from the sums of distances within and across. A side of one
// value has no distance within.
func statistic(left, right, across, m, n float64) float64 {
	q := 2 / (m * n) * across
	if m > 1 {
		q -= float64(left * 2 / (m * (m - 1)))
	}
	if n > 1 {
		q -= float64(right * 2 / (n * (n - 1)))
	}
	return m * n / (m + n) * q
}

// fenwick sums counts and values by rank.
type fenwick struct {
	count []float64
	sum   []float64
	n     float64
	total float64
}

func (t *fenwick) reset(n int) {
	t.count, t.sum = slices.Grow(t.count[:0], n+1)[:n+1], slices.Grow(t.sum[:0], n+1)[:n+1]
	clear(t.count)
	clear(t.sum)
	t.n, t.total = 0, 0
}

func (t *fenwick) add(rank int, v, sign float64) {
	t.n, t.total = t.n+sign, t.total+float64(sign*v)
	for i := rank + 1; i < len(t.count); i += i & -i {
		t.count[i] += sign
		t.sum[i] += float64(sign * v)
	}
}

// distance is Σ|v−w| over the values w in the tree, of which those of a lower
// rank are not larger than v.
func (t *fenwick) distance(rank int, v float64) float64 {
	var count, sum float64
	for i := rank; i > 0; i &= i - 1 {
		count += t.count[i]
		sum += t.sum[i]
	}
	return float64(v*count) - sum + (t.total - sum) - float64(v*(t.n-count))
}
