package bisect

import (
	"math"
	"slices"

	"eidetic/analysis/stats"
)

// freedom is Student's ν of a pair's noise.
const freedom = 4

// The prior probabilities of the explanations.
const (
	priorNone    = 0.5
	priorSeveral = 0.05
)

// group is all pairs of two revisions.
type group struct {
	from, to int
	values   []float64
	// at has the logarithm of the values' likelihood at each level of the grid, apart from a constant; none
	// is that at 0.
	at   []float64
	none float64
}

// crosses says whether a step within the cut lies between the two revisions.
func (g *group) crosses(c cut) bool { return g.from <= c.from && c.to <= g.to }

// cut is the revisions after from up to to: no experiment says which of them made a step.
type cut struct{ from, to int }

// model holds the probabilities of the explanations.
type model struct {
	groups []*group
	cuts   []cut
	scale  float64 // of Student's t
	levels []float64
	prior  []float64 // logarithm, of a step's size at each level

	none, several float64
	one           []float64 // of each cut
	size          []float64 // expected, of a step in each cut
	two           [2]int    // cuts of the most probable two steps
	sizes         [2]float64
}

// newModel weighs the explanations.
func newModel(p Problem, s State) *model {
	m := &model{}
	points := []int{0, p.Revisions - 1}
	for _, v := range s.Visits {
		values := v.differences()
		if len(values) == 0 {
			continue
		}
		points = append(points, v.Control, v.Treatment)
		i := slices.IndexFunc(m.groups, func(g *group) bool { return g.from == v.Control && g.to == v.Treatment })
		if i < 0 {
			i, m.groups = len(m.groups), append(m.groups, &group{from: v.Control, to: v.Treatment})
		}
		m.groups[i].values = append(m.groups[i].values, values...)
	}
	slices.Sort(points)
	points = slices.Compact(points)
	for i := 1; i < len(points); i++ {
		m.cuts = append(m.cuts, cut{points[i-1], points[i]})
	}
	m.scale = m.learnScale()
	m.grid()
	for _, g := range m.groups {
		g.none = m.likelihood(g.values, 0)
		g.at = make([]float64, len(m.levels))
		for i, level := range m.levels {
			g.at[i] = m.likelihood(g.values, level)
		}
	}
	m.weigh(p.Revisions - 1)
	return m
}

// learnScale fits the scale of Student's t to what the groups' values differ from their
// groups' locations by, by the EM algorithm, and allows for the locations that were fitted.
func (m *model) learnScale() float64 {
	var rest []float64
	for _, g := range m.groups {
		centre := stats.Median(g.values)
		for _, v := range g.values {
			rest = append(rest, v-centre)
		}
	}
	n := float64(len(rest))
	square := 0.0
	for _, r := range rest {
		square += float64(r * r)
	}
	square /= n
	for range 50 {
		sum := 0.0
		for _, r := range rest {
			if square > 0 {
				sum += (freedom + 1) * float64(r*r) / (freedom + float64(r*r)/square)
			}
		}
		square = sum / n
	}
	square *= n / max(n-float64(len(m.groups)), 1)
	// Values that do not differ at all, as of a page that draws in one frame, leave no scale: that
	// of a thousandth part of the largest value keeps the likelihoods finite.
	largest := 0.0
	for _, g := range m.groups {
		for _, v := range g.values {
			largest = max(largest, math.Abs(v))
		}
	}
	return max(math.Sqrt(square), largest/1000, 1e-9)
}

// spread is the standard deviation of a normal noise from which a location can be
// estimated as well as from this one.
func (m *model) spread() float64 { return m.scale * math.Sqrt(float64(freedom+3)/float64(freedom+1)) }

// grid lays out levels on both sides of 0, as far as any group may lie, and as finely as
// all of them can tell.
func (m *model) grid() {
	reach, pairs := 0.0, 0
	for _, g := range m.groups {
		n := len(g.values)
		pairs += n
		reach = max(reach, math.Abs(stats.Median(g.values))+4*m.spread()/math.Sqrt(float64(n)))
	}
	step := max(m.spread()/math.Sqrt(float64(pairs))/2, reach/60)
	half := int(math.Ceil(reach / step))
	total := 0.0
	for i := -half; i <= half; i++ {
		level := float64(float64(i) * step)
		x := level / (m.scale / 2)
		weight := float64(x*x) / ((1 + float64(x*x)) * (1 + float64(x*x)))
		m.levels, m.prior = append(m.levels, level), append(m.prior, weight)
		total += weight
	}
	for i := range m.prior {
		m.prior[i] = math.Log(max(m.prior[i]/total, 1e-30)) // 0 has none, and stays finite
	}
}

// likelihood is the logarithm of that of the values at a level, apart from a constant.
func (m *model) likelihood(values []float64, level float64) (sum float64) {
	for _, v := range values {
		z := (v - level) / m.scale
		sum -= (freedom + 1) / 2.0 * math.Log1p(float64(z*z)/freedom)
	}
	return sum
}

// weigh computes the probabilities. steps is the number of revisions that may be the culprit.
func (m *model) weigh(steps int) {
	var logs []float64
	none := math.Log(priorNone)
	for _, g := range m.groups {
		none += g.none
	}
	logs = append(logs, none)
	share := func(c cut) float64 { return float64(c.to-c.from) / float64(steps) }
	m.size = make([]float64, len(m.cuts))
	for i, c := range m.cuts {
		terms, rest := slices.Clone(m.prior), 0.0
		for _, g := range m.groups {
			if !g.crosses(c) {
				rest += g.none
				continue
			}
			for k, v := range g.at {
				terms[k] += v
			}
		}
		total := sumLogs(terms)
		for k, v := range terms {
			m.size[i] += float64(math.Exp(v-total) * m.levels[k])
		}
		logs = append(logs, math.Log((1-priorNone-priorSeveral)*share(c))+total+rest)
	}
	// A second step that is small beside the first leaves the culprit the culprit.
	best := math.Inf(-1)
	of := slices.Repeat([]int{-1}, len(logs)) // the cut that made the change; −1: none, or two
	for i := range m.cuts {
		of[1+i] = i
	}
	for i, a := range m.cuts {
		for k := i + 1; k < len(m.cuts); k++ {
			prior := math.Log(priorSeveral * 2 * share(a) * share(m.cuts[k]))
			t := m.twoSteps(a, m.cuts[k])
			for n, cut := range []int{-1, i, k} {
				logs, of = append(logs, prior+t.log[n]), append(of, cut)
			}
			if v := prior + t.log[0]; v > best {
				best, m.two, m.sizes = v, [2]int{i, k}, t.sizes
			}
		}
	}
	all := sumLogs(logs)
	m.one = make([]float64, len(m.cuts))
	m.none = math.Exp(logs[0] - all)
	for i, v := range logs[1:] {
		if cut := of[1+i]; cut >= 0 {
			m.one[cut] += math.Exp(v - all)
		} else {
			m.several += math.Exp(v - all)
		}
	}
}

// smallShare is how large a step is at least beside another one, to count.
const smallShare = 1.0 / 3

// twice is the logarithm of the likelihood of steps in two cuts, over all sizes of both: where both count, where
// the second is small beside the first, and the other way round; and the sizes of the greatest where both count.
type twice struct {
	log   [3]float64
	sizes [2]float64
}

func (m *model) twoSteps(a, b cut) twice {
	n := len(m.levels)
	first, second, both, rest := slices.Clone(m.prior), slices.Clone(m.prior), make([]float64, n), 0.0
	for _, g := range m.groups {
		x, y := g.crosses(a), g.crosses(b)
		to := both
		switch {
		case !x && !y:
			rest += g.none
			continue
		case !y:
			to = first
		case !x:
			to = second
		}
		for k, v := range g.at {
			to[k] += v
		}
	}
	var out twice
	var sums [3]float64
	tops := [3]float64{math.Inf(-1), math.Inf(-1), math.Inf(-1)}
	zero := n / 2 // the sum of the levels i and k is level i+k−zero
	for i := range n {
		for k := max(zero-i, 0); k < min(n, n+zero-i); k++ {
			v := first[i] + second[k] + both[i+k-zero]
			x, y := math.Abs(m.levels[i]), math.Abs(m.levels[k])
			kind := 0
			switch {
			case y < smallShare*x:
				kind = 1
			case x < smallShare*y:
				kind = 2
			}
			switch {
			case v > tops[kind]:
				sums[kind] = float64(sums[kind]*math.Exp(tops[kind]-v)) + 1
				if tops[kind] = v; kind == 0 {
					out.sizes = [2]float64{m.levels[i], m.levels[k]}
				}
			case v > tops[kind]-30:
				sums[kind] += math.Exp(v - tops[kind])
			}
		}
	}
	for kind := range out.log {
		out.log[kind] = tops[kind] + math.Log(sums[kind]) + rest
	}
	return out
}

// sumLogs is the logarithm of the sum of what these are the logarithms of.
func sumLogs(logs []float64) float64 {
	most, sum := slices.Max(logs), 0.0
	for _, v := range logs {
		sum += math.Exp(v - most)
	}
	return most + math.Log(sum)
}
