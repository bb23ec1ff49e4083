package replay

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// nearKey is equal for requests that can be near each other at all:
// similarity finds nothing in common between others.
func nearKey(s *shape) string {
	return fmt.Sprintf("%s %s %d %s %q", s.method, s.origin, len(s.path), s.kind, extension(s.path[len(s.path)-1]))
}

// neighbours are the exchanges of one nearKey. Many of them are indexed, so
// that a request is compared with each different value once, and with most of
// those by what sorted values have in common with the one beside them.
type neighbours struct {
	entries []*entry
	*nearIndex
}

// nearIndex holds, in the order of entries, what similarity compares.
type nearIndex struct {
	kinds       []*entry   // one of each kind of exchange that usable tells apart
	kind        []int32    // by entry, in kinds
	pairs       [][2]int32 // by entry: how many its query and its body have
	path        []column   // by segment
	query, body map[string]*field
	scratch     sync.Pool // of *tally
}

// field is a query parameter or a field of bodies.
type field struct {
	name    string
	values  column
	holder  []int32 // the entry that each value of the column is of
	repeats bool    // an entry has the name more than once
}

// many is from how many neighbours on an index pays.
const many = 32

// build indexes what was added; nothing is added afterwards.
func (n *neighbours) build() {
	if len(n.entries) < many {
		return
	}
	x := &nearIndex{query: map[string]*field{}, body: map[string]*field{}, path: make([]column, len(n.entries[0].shape.path))}
	x.scratch.New = func() any { return newTally(len(n.entries)) }
	kinds := map[string]int32{}
	for i, en := range n.entries {
		kind := en.kind()
		if _, ok := kinds[kind]; !ok {
			kinds[kind] = int32(len(x.kinds))
			x.kinds = append(x.kinds, en)
		}
		x.kind = append(x.kind, kinds[kind])
		x.pairs = append(x.pairs, [2]int32{int32(len(en.shape.query)), int32(len(en.shape.body))})
		for j, segment := range en.shape.path {
			x.path[j].add(segment)
		}
		addFields(x.query, en.shape.query, i)
		addFields(x.body, en.shape.body, i)
	}
	for j := range x.path {
		x.path[j].sort(volatile)
	}
	for _, fields := range []map[string]*field{x.query, x.body} {
		for _, f := range fields {
			f.values.sort(func(v string) bool { return pair{f.name, v}.volatile() })
		}
	}
	n.nearIndex = x
}

func addFields(fields map[string]*field, pairs []pair, holder int) {
	for _, p := range pairs {
		f := fields[p.name]
		if f == nil {
			f = &field{name: p.name}
			fields[p.name] = f
		}
		f.values.add(p.value)
		f.repeats = f.repeats || len(f.holder) > 0 && f.holder[len(f.holder)-1] == int32(holder)
		f.holder = append(f.holder, int32(holder))
	}
}

// kind is equal for exchanges that usable treats alike.
func (en *entry) kind() string {
	status := 0
	if !en.plain() {
		status = en.Status
	}
	var span contentRange
	if en.span != nil {
		span = *en.span
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %t %v %q %t", status, en.span != nil, span, en.reqRange, en.Truncated == "")
	for _, name := range en.varyNames() {
		fmt.Fprintf(&b, " %q=%q", name, en.Request.Get(name))
	}
	return b.String()
}

// find offers the entries that can answer a request with this header.
func (n *neighbours) find(t *podium, s *shape, h http.Header) {
	if n.nearIndex == nil {
		for _, en := range usable(n.entries, h) {
			t.offer(en, similarity(en.shape, s))
		}
		return
	}
	good := usable(n.kinds, h)
	takes := make([]bool, len(n.kinds))
	for i, en := range n.kinds {
		takes[i] = slices.Contains(good, en)
	}
	y := n.scratch.Get().(*tally)
	defer n.scratch.Put(y)
	y.pathOf(n.path, s.path)
	y.query.count(n.query, s.query, &y.values, n.entries, func(en *entry) []pair { return en.shape.query })
	if s.kind != "" {
		y.body.count(n.body, s.body, &y.values, n.entries, func(en *entry) []pair { return en.shape.body })
	}
	for i, path := range y.path[:len(n.kind)] {
		if !takes[n.kind[i]] || 10*path < 6*one {
			continue
		}
		query, body := int64(0), int64(0)
		pairs := n.pairs[i]
		hasQuery := int(pairs[0])+len(s.query) > 0
		if hasQuery {
			query = y.query.of(i, int(pairs[0])+len(s.query))
		}
		if s.kind != "" {
			if body = one; n.entries[i].shape.sum != s.sum {
				body = y.body.of(i, int(pairs[1])+len(s.body))
			}
		}
		if score := weigh(path, query, body, hasQuery, s.kind != ""); score >= t.second.score {
			t.offer(n.entries[i], score)
		}
	}
}

// tally is what one request has in common with each of the neighbours.
type tally struct {
	path        []int64
	query, body pairTally
	values      []int64 // of one column
}

func newTally(n int) *tally {
	return &tally{path: make([]int64, n), query: newPairTally(n), body: newPairTally(n)}
}

// pathOf is pathSimilarity, for each neighbour.
func (y *tally) pathOf(recorded []column, asked []string) {
	same := int64(0) // of the segments that all have
	clear(y.path)
	for j := range recorded {
		c := &recorded[j]
		y.values = c.similarities(asked[j], volatile(asked[j]), false, y.values)
		if len(c.values) == 1 {
			same += y.values[0]
			continue
		}
		for i, v := range c.ids {
			y.path[i] += y.values[v]
		}
	}
	last, mean := int64(-1), int64(0) // many are like the one before, and a division takes long
	for i, sum := range y.path {
		if sum != last {
			last, mean = sum, (sum+same)/int64(len(asked))
		}
		y.path[i] = mean
	}
}

// pairTally is what pairSimilarity counts, for each neighbour.
type pairTally struct {
	sum    []int64
	common []int32 // names that both have, as often as both have them
}

func newPairTally(n int) pairTally {
	return pairTally{sum: make([]int64, n), common: make([]int32, n)}
}

// of is pairSimilarity, for as many pairs as the two requests have together.
func (y *pairTally) of(i, pairs int) int64 {
	union := int64(pairs) - int64(y.common[i])
	if union == 0 {
		return one
	}
	return y.sum[i] / union
}

// count goes through the values that neighbours have for the names that are asked with.
func (y *pairTally) count(fields map[string]*field, asked []pair, values *[]int64, entries []*entry, pairs func(*entry) []pair) {
	clear(y.sum)
	clear(y.common)
	times := map[string]int{}
	for _, p := range asked {
		times[p.name]++
	}
	for _, p := range asked {
		f := fields[p.name]
		if f == nil || times[p.name] == 0 {
			continue
		}
		if times[p.name] > 1 || f.repeats {
			times[p.name] = 0 // all of them are compared at once
			for _, i := range slices.Compact(slices.Clone(f.holder)) {
				sum, common := namesake(pairs(entries[i]), asked, p.name)
				y.sum[i] += sum
				y.common[i] += common
			}
			continue
		}
		*values = f.values.similarities(p.value, p.volatile(), true, *values)
		for k, i := range f.holder {
			y.sum[i] += (*values)[f.values.ids[k]]
			y.common[i]++
		}
	}
}

// namesake compares the pairs of one name, as pairSimilarity does those of all.
func namesake(a, b []pair, name string) (sum int64, common int32) {
	var rest []string
	for _, p := range b {
		if p.name == name {
			rest = append(rest, p.value)
		}
	}
	for _, p := range a {
		if p.name != name || len(rest) == 0 {
			continue
		}
		i := max(0, slices.Index(rest, p.value))
		sum += valueSimilarity(p, pair{name, rest[i]})
		common++
		rest = slices.Delete(rest, i, i+1)
	}
	return sum, common
}
