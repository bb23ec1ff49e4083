package change

import (
	"math"

	"eidetic/analysis/stats"
)

// bump looks for two steps that undo each other, which the strongest split of a whole segment hides: it splits
// intervals of all scales (seeded binary segmentation: Kovács, Bühlmann, Li and Munk 2023). The statistic of a split is
// the likelihood ratio of two means against one, of the values' normal scores in their segment (van der Waerden), so
// that an outlier counts little more than the largest of the others.
type bump struct {
	least    int
	sum, sqs []float64 // of the scores before each
}

// shortest is the least number of values on each side of a split: with fewer, the ratio of few scores is large
// by chance.
const shortest = 6

// best returns the strongest split of all intervals of all segments, or −1. scores are those within the segments.
func (b *bump) best(scores []float64, ends []int) (at int, ratio float64) {
	at = -1
	for i := 0; i+1 < len(ends); i++ {
		if k, v := b.split(scores[ends[i]:ends[i+1]]); k > 0 && (at < 0 || v > ratio) {
			at, ratio = ends[i]+k, v
		}
	}
	return at, ratio
}

// split returns the strongest split of all intervals of a segment, or 0.
func (b *bump) split(x []float64) (at int, ratio float64) {
	n, least := len(x), max(b.least, shortest)
	b.sum, b.sqs = append(b.sum[:0], 0), append(b.sqs[:0], 0)
	for i, v := range x {
		b.sum, b.sqs = append(b.sum, b.sum[i]+v), append(b.sqs, b.sqs[i]+float64(v*v))
	}
	for layer := 0; ; layer++ {
		length := int(math.Ceil(float64(n) * math.Pow(math.Sqrt2, -float64(layer))))
		if length < 2*least {
			return at, ratio
		}
		// Neighbours overlap by half, and the last ends where the segment does.
		count := 1
		if length < n {
			count = 2*int(math.Ceil(float64(n)/float64(length))) - 1
		}
		for i := range count {
			from := 0
			if count > 1 {
				from = i * (n - length) / (count - 1)
			}
			if k, v := b.within(from, from+length, least); k > 0 && (at == 0 || v > ratio) {
				at, ratio = k, v
			}
		}
	}
}

// within returns the strongest split of one interval, or 0.
func (b *bump) within(from, to, least int) (at int, ratio float64) {
	n := float64(to - from)
	total := b.sum[to] - b.sum[from]
	spread := b.sqs[to] - b.sqs[from] - total*total/n
	if spread <= 0 {
		return 0, 0
	}
	most := 0.0
	for k := from + least; k+least <= to; k++ {
		m := float64(k - from)
		s := b.sum[k] - b.sum[from] - float64(m/n*total)
		if between := s * s * n / (m * (n - m)); between > most {
			at, most = k, between
		}
	}
	if at == 0 {
		return 0, 0
	}
	return at, -n * math.Log(max(1-most/spread, 1e-12))
}

// scoreWithin replaces the values of each segment by their normal scores in it: the quantiles of the normal
// distribution that their ranks are at. Equal values share the score of their mean rank.
func scoreWithin(values []float64, ends []int) []float64 {
	out := make([]float64, len(values))
	for i := 0; i+1 < len(ends); i++ {
		n := float64(ends[i+1] - ends[i])
		for k, rank := range stats.Ranks(values[ends[i]:ends[i+1]]) {
			out[ends[i]+k] = math.Sqrt2 * math.Erfinv(2*rank/(n+1)-1)
		}
	}
	return out
}
