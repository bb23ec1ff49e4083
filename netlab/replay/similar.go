package replay

import (
	"fmt"
	"slices"
	"strings"
)

// threshold is the least similarity of a fuzzy match. Below it an answer is
// more likely to be wrong than right, and a miss says more.
const threshold = 0.6

// one is full similarity. Whole numbers, so that the index (neighbours) may
// add in another order and find the same; divisible by all up to 20, so that
// the shares of most texts are exact.
const one int64 = 232_792_560

// similarity compares two requests of one method and origin: 1 for equal, 0
// for no relation.
func similarity(a, b *shape) float64 {
	query, body := int64(0), int64(0)
	if len(a.query)+len(b.query) > 0 {
		query = pairSimilarity(a.query, b.query)
	}
	if a.kind != "" || b.kind != "" {
		body = bodySimilarity(a, b)
	}
	return weigh(pathSimilarity(a.path, b.path), query, body, len(a.query)+len(b.query) > 0, a.kind != "" || b.kind != "")
}

// weigh weighs path segments, query and body, each only if one of the two
// requests has it.
func weigh(path, query, body int64, hasQuery, hasBody bool) float64 {
	if 10*path < 6*one || hasBody && 2*body < one { // another question put to the same address
		return 0
	}
	sum, weight := 4*path, 4*one
	if hasQuery {
		sum, weight = sum+3*query, weight+3*one
	}
	if hasBody {
		sum, weight = sum+3*body, weight+3*one
	}
	return float64(sum) / float64(weight)
}

// pathSimilarity is the mean over the segments; what the last one ends with
// (".js", ".png") must be equal.
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

func extension(s string) string {
	if i := strings.LastIndexByte(s, '.'); i >= 0 {
		return s[i:]
	}
	return ""
}

// textSimilarity is the share of common prefix and suffix.
func textSimilarity(a, b string) int64 {
	if a == b || volatile(a) && volatile(b) {
		return one
	}
	return textShare(commonPrefix(a, b), commonSuffix(a, b), len(a), len(b))
}

// textShare is that of texts of two lengths, from their common ends.
func textShare(prefix, suffix, a, b int) int64 {
	long, short := max(a, b), min(a, b)
	if long == 0 {
		return one
	}
	// Floats divide quicker than whole numbers, and exactly enough: a quotient
	// that is no whole number is farther from one than they are wrong.
	return int64(float64(int64(prefix+min(suffix, short-prefix))*one) / float64(long))
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

// pairSimilarity: equal pairs count 1, equal names up to 0.5 by how near
// their values are, volatile ones 0.9; over the union of names.
func pairSimilarity(a, b []pair) int64 {
	if len(a) == 0 && len(b) == 0 {
		return one
	}
	rest := map[string][]string{}
	for _, p := range b {
		rest[p.name] = append(rest[p.name], p.value)
	}
	sum, union := int64(0), int64(len(b))
	for _, p := range a {
		values := rest[p.name]
		if len(values) == 0 {
			union++
			continue
		}
		i := max(0, slices.Index(values, p.value))
		sum += valueSimilarity(p, pair{p.name, values[i]})
		rest[p.name] = slices.Delete(values, i, i+1)
	}
	return sum / union
}

// valueSimilarity is that of two pairs of one name.
func valueSimilarity(a, b pair) int64 {
	switch {
	case a.value == b.value:
		return one
	case a.volatile() && b.volatile():
		return one / 10 * 9
	}
	return textSimilarity(a.value, b.value) / 2
}

func bodySimilarity(a, b *shape) int64 {
	if a.kind != b.kind {
		return 0
	}
	if a.sum == b.sum {
		return one
	}
	return pairSimilarity(a.body, b.body)
}

// differences names what is not equal, for the replay log: at most ten.
func differences(recorded, asked *shape) []string {
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
