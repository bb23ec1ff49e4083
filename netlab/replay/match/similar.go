package match

import (
	"fmt"
	"slices"
	"strings"
)

// Threshold is the least similarity of a fuzzy match. Below it an answer is more
// likely to be wrong than right, and a miss says more.
const Threshold = 0.6

// one is full similarity. Similarities are whole numbers up to one, so that a sum
// does not depend on its order and equally similar requests compare as equal. It
// is divisible by all numbers up to 20, so that most shares are exact.
const one int64 = 232_792_560

// similarity compares two requests of one method and origin: 1 for equal, 0 for no
// relation. Path segments, query and body are weighed, each only if one of the two
// requests has it.
func similarity(a, b *Request) float64 {
	path := pathSimilarity(a.path, b.path)
	if 10*path < 6*one {
		return 0
	}
	sum, weight := 4*path, 4*one
	if len(a.query)+len(b.query) > 0 {
		sum, weight = sum+3*pairSimilarity(a.queryByName, b.queryByName), weight+3*one
	}
	if a.kind != "" || b.kind != "" {
		body := bodySimilarity(a, b)
		if 2*body < one { // another question put to the same address
			return 0
		}
		sum, weight = sum+3*body, weight+3*one
	}
	return float64(sum) / float64(weight)
}

// pathSimilarity is the mean over the segments; the file extension must be equal.
func pathSimilarity(a, b []string) int64 {
	if len(a) != len(b) || extension(a[len(a)-1]) != extension(b[len(b)-1]) {
		return 0
	}
	sum := int64(0)
	for i := range a {
		sum += textSimilarity(a[i], b[i])
	}
	return sum / int64(len(a))
}

// extension is what a path segment ends with, from its last dot on: ".js", ".png".
func extension(s string) string {
	if i := strings.LastIndexByte(s, '.'); i >= 0 {
		return s[i:]
	}
	return ""
}

// textSimilarity is the share of common prefix and suffix.
func textSimilarity(a, b string) int64 {
	if a == b || isVolatile(a) && isVolatile(b) {
		return one
	}
	prefix := commonPrefix(a, b)
	suffix := min(commonSuffix(a, b), min(len(a), len(b))-prefix)
	return int64(prefix+suffix) * one / int64(max(len(a), len(b)))
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// pairSimilarity compares pairs that are sorted by name: equal pairs count 1, equal
// names up to 0.5 by how similar their values are, volatile ones 0.9. The mean is
// over the union of names.
func pairSimilarity(a, b []pair) int64 {
	if len(a) == 0 && len(b) == 0 {
		return one
	}
	sum, union := int64(0), int64(len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch order := strings.Compare(a[0].name, b[0].name); {
		case order < 0:
			a = a[1:]
		case order > 0:
			b = b[1:]
		default:
			n, m := sameName(a), sameName(b)
			sum += namesakeSimilarity(a[:n], b[:m])
			union -= int64(min(n, m)) // counted twice
			a, b = a[n:], b[m:]
		}
	}
	return sum / union
}

// sameName counts the pairs at the beginning that have the first one's name.
func sameName(pairs []pair) int {
	n := 1
	for n < len(pairs) && pairs[n].name == pairs[0].name {
		n++
	}
	return n
}

// namesakeSimilarity adds up the similarities of pairs that all have one name. Each
// of a is compared with one of b: that of the same value, or else the first that is left.
func namesakeSimilarity(a, b []pair) int64 {
	if len(a) == 1 && len(b) == 1 { // the common case
		return valueSimilarity(a[0], b[0])
	}
	sum, left := int64(0), slices.Clone(b)
	for _, p := range a {
		if len(left) == 0 {
			break
		}
		i := max(0, slices.Index(left, p))
		sum += valueSimilarity(p, left[i])
		left = slices.Delete(left, i, i+1)
	}
	return sum
}

// valueSimilarity is that of two pairs of one name.
func valueSimilarity(a, b pair) int64 {
	switch {
	case a.value == b.value:
		return one
	case a.isVolatile() && b.isVolatile():
		return one / 10 * 9
	}
	return textSimilarity(a.value, b.value) / 2
}

func bodySimilarity(a, b *Request) int64 {
	if a.kind != b.kind {
		return 0
	}
	if a.sum == b.sum {
		return one
	}
	return pairSimilarity(a.bodyByName, b.bodyByName)
}

// differences names what is not equal, for the replay log: at most ten.
func differences(recorded, asked *Request) []string {
	const most = 10
	var out []string
	for i := range min(len(recorded.path), len(asked.path)) {
		if recorded.path[i] != asked.path[i] {
			out = append(out, fmt.Sprintf("path segment %d: %s → %s", i+1, brief(recorded.path[i]), brief(asked.path[i])))
		}
	}
	out = append(out, pairDifferences("query", recorded.query, asked.query)...)
	if recorded.sum != asked.sum {
		n := len(out)
		out = append(out, pairDifferences("body", recorded.body, asked.body)...)
		if len(out) == n {
			out = append(out, "body: the same fields in other bytes")
		}
	}
	if len(out) == 0 && recorded.url != asked.url {
		out = append(out, "URL: the same in another spelling")
	}
	if len(out) > most {
		out = append(out[:most], fmt.Sprintf("and %d more", len(out)-most))
	}
	return out
}

func pairDifferences(what string, recorded, asked []pair) []string {
	if len(recorded)+len(asked) == 0 {
		return nil
	}
	rest := map[string][]string{}
	for _, p := range recorded {
		rest[p.name] = append(rest[p.name], p.value)
	}
	var out []string
	for _, p := range asked {
		values := rest[p.name]
		if len(values) == 0 {
			out = append(out, what+" "+p.name+": none → "+brief(p.value))
			continue
		}
		i := max(0, slices.Index(values, p.value))
		if values[i] != p.value {
			out = append(out, what+" "+p.name+": "+brief(values[i])+" → "+brief(p.value))
		}
		rest[p.name] = slices.Delete(values, i, i+1)
	}
	for _, p := range recorded {
		if values := rest[p.name]; len(values) > 0 {
			out = append(out, what+" "+p.name+": "+brief(values[0])+" → none")
			rest[p.name] = values[1:]
		}
	}
	return out
}

func brief(s string) string {
	const most = 60
	if len(s) > most {
		return s[:most] + "…"
	}
	if s == "" {
		return `""`
	}
	return s
}
