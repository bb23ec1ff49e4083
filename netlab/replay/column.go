package replay

import (
	"slices"
	"sort"
)

// column is what many requests have in one place: a path segment, or the
// value of a parameter. Values are sorted, once from their beginning and once
// from their end, and it is known how much each shares with the one before.
// What an asked one shares with all of them then follows from what it shares
// with those that it would stand between.
type column struct {
	ids     []int32 // of what was added, in its order: which of values
	values  []string
	lengths []int32 // of values
	fickle  []bool  // by value: of time or chance

	prefix []int32 // of values[i-1] and values[i]
	ending []int32 // values by their ends
	suffix []int32 // of ending[i-1] and ending[i]

	added []string // until sort
}

func (c *column) add(v string) { c.added = append(c.added, v) }

// sort ends adding.
func (c *column) sort(fickle func(string) bool) {
	c.values = slices.Compact(slices.Sorted(slices.Values(c.added)))
	number := make(map[string]int32, len(c.values))
	for i, v := range c.values {
		number[v] = int32(i)
		c.fickle, c.lengths = append(c.fickle, fickle(v)), append(c.lengths, int32(len(v)))
		c.ending = append(c.ending, int32(i))
	}
	for _, v := range c.added {
		c.ids = append(c.ids, number[v])
	}
	c.added = nil
	slices.SortFunc(c.ending, func(a, b int32) int { return compareEnds(c.values[a], c.values[b]) })
	c.prefix, c.suffix = make([]int32, len(c.values)), make([]int32, len(c.values))
	for i := 1; i < len(c.values); i++ {
		c.prefix[i] = int32(commonPrefix(c.values[i-1], c.values[i]))
		c.suffix[i] = int32(commonSuffix(c.values[c.ending[i-1]], c.values[c.ending[i]]))
	}
}

// compareEnds orders texts by their last bytes, as they were read backwards.
func compareEnds(a, b string) int {
	n := commonSuffix(a, b)
	switch {
	case n == len(a) || n == len(b):
		return len(a) - len(b)
	case a[len(a)-1-n] < b[len(b)-1-n]:
		return -1
	}
	return 1
}

// similarities returns, for each value, how similar it is to what is asked:
// textSimilarity, or for those of pairs valueSimilarity. fickle tells that the
// asked one is of time or chance. The result is in space, if that is large enough.
func (c *column) similarities(asked string, fickle, pairs bool, space []int64) []int64 {
	out := slices.Grow(space[:0], len(c.values))[:len(c.values)]
	clear(out)
	// First what begins and ends are shared, each in half of a number.
	at, _ := slices.BinarySearch(c.values, asked)
	left, right := int32(0), int32(0)
	if at > 0 {
		left = int32(commonPrefix(c.values[at-1], asked))
	}
	if at < len(c.values) {
		right = int32(commonPrefix(c.values[at], asked))
	}
	spread(out, nil, 0, c.prefix, at, left, right)
	at = sort.Search(len(c.ending), func(i int) bool { return compareEnds(c.values[c.ending[i]], asked) >= 0 })
	left, right = 0, 0
	if at > 0 {
		left = int32(commonSuffix(c.values[c.ending[at-1]], asked))
	}
	if at < len(c.ending) {
		right = int32(commonSuffix(c.values[c.ending[at]], asked))
	}
	spread(out, c.ending, 32, c.suffix, at, left, right)
	for i, length := range c.lengths {
		share := textShare(int(uint32(out[i])), int(out[i]>>32), int(length), len(asked))
		switch {
		case share == one: // equal, since that is all of the longer one
		case fickle && c.fickle[i] && pairs:
			share = one / 10 * 9
		case fickle && c.fickle[i]:
			share = one
		case pairs:
			share /= 2
		}
		out[i] = share
	}
	return out
}

// spread adds to out what an asked text shares with each of sorted ones, as
// long as that is anything, shifted by some bits. order is theirs in out, nil
// for the same. The asked one's place is at; left and right are what it shares
// with those beside that, and beside[i] what the i-th shares with the one before.
func spread(out []int64, order []int32, shift int, beside []int32, at int, left, right int32) {
	for i := at; i < len(beside) && right > 0; {
		out[place(order, i)] |= int64(right) << shift
		if i++; i < len(beside) {
			right = min(right, beside[i])
		}
	}
	for i := at - 1; i >= 0 && left > 0; i-- {
		out[place(order, i)] |= int64(left) << shift
		left = min(left, beside[i])
	}
}

func place(order []int32, i int) int {
	if order == nil {
		return i
	}
	return int(order[i])
}
