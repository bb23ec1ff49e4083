package replay

import (
	"fmt"
	"slices"
	"strings"
)

// threshold is the least similarity of a fuzzy match. Below it an answer is
// more likely to be wrong than right, and a miss says more.
const threshold = 0.6

// similarity compares two requests of one method and origin: 1 for equal, 0
// for no relation. It weighs path segments, query and body, each only if one
// of the two has it.
func similarity(a, b *shape) float64 {
	path := pathSimilarity(a.path, b.path)
	if path < 0.6 {
		return 0
	}
	sum, weight := 0.4*path, 0.4
	if len(a.query)+len(b.query) > 0 {
		sum, weight = sum+0.3*pairSimilarity(a.query, b.query), weight+0.3
	}
	if a.kind != "" || b.kind != "" {
		body := bodySimilarity(a, b)
		if body < 0.5 { // another question put to the same address
			return 0
		}
		sum, weight = sum+0.3*body, weight+0.3
	}
	return sum / weight
}

// pathSimilarity is the mean over the segments; what the last one ends with
// (".js", ".png") must be equal.
func pathSimilarity(a, b []string) float64 {
	if len(a) != len(b) || extension(a[len(a)-1]) != extension(b[len(b)-1]) {
		return 0
	}
	sum := 0.0
	for i := range a {
		sum += textSimilarity(a[i], b[i])
	}
	return sum / float64(len(a))
}

func extension(s string) string {
	if i := strings.LastIndexByte(s, '.'); i >= 0 {
		return s[i:]
	}
	return ""
}

// textSimilarity is the share of common prefix and suffix.
func textSimilarity(a, b string) float64 {
	if a == b || volatile(a) && volatile(b) {
		return 1
	}
	long := max(len(a), len(b))
	short := min(len(a), len(b))
	n := 0
	for n < short && a[n] == b[n] {
		n++
	}
	m := 0
	for m < short-n && a[len(a)-1-m] == b[len(b)-1-m] {
		m++
	}
	return float64(n+m) / float64(long)
}

// pairSimilarity: equal pairs count 1, equal names up to 0.5 by how near
// their values are, volatile ones 0.9; over the union of names.
func pairSimilarity(a, b []pair) float64 {
	if len(a) == 0 && len(b) == 0 {
		return 1
	}
	rest := map[string][]string{}
	for _, p := range b {
		rest[p.name] = append(rest[p.name], p.value)
	}
	sum, union := 0.0, len(b)
	for _, p := range a {
		values := rest[p.name]
		if len(values) == 0 {
			union++
			continue
		}
		i := max(0, slices.Index(values, p.value))
		switch v := values[i]; {
		case v == p.value:
			sum++
		case p.volatile() && (pair{p.name, v}).volatile():
			sum += 0.9
		default:
			sum += 0.5 * textSimilarity(v, p.value)
		}
		rest[p.name] = slices.Delete(values, i, i+1)
	}
	return sum / float64(union)
}

func bodySimilarity(a, b *shape) float64 {
	if a.kind != b.kind {
		return 0
	}
	if a.sum == b.sum {
		return 1
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
	rest := map[string][]string{}
	for _, p := range recorded {
		rest[p.name] = append(rest[p.name], p.value)
	}
	var out []string
	for _, p := range asked {
		values := rest[p.name]
		if len(values) == 0 {
			out = append(out, fmt.Sprintf("%s %s: none → %s", what, p.name, brief(p.value)))
			continue
		}
		i := max(0, slices.Index(values, p.value))
		if values[i] != p.value {
			out = append(out, fmt.Sprintf("%s %s: %s → %s", what, p.name, brief(values[i]), brief(p.value)))
		}
		rest[p.name] = slices.Delete(values, i, i+1)
	}
	for _, p := range recorded {
		if values := rest[p.name]; len(values) > 0 {
			out = append(out, fmt.Sprintf("%s %s: %s → none", what, p.name, brief(values[0])))
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
