package match

import (
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
func similarity(a, b *Request) float64 { return similarityFrom(a, b, 0) }

// similarityFrom is similarity where query and body count as least at least.
func similarityFrom(a, b *Request, least int64) float64 {
	path := pathSimilarity(a.path, b.path)
	if 10*path < 6*one || least == 0 && callOthers(a, b) {
		return 0
	}
	sum, weight := 4*path, 4*one
	if len(a.query)+len(b.query) > 0 {
		query := max(least, inOrder(pairSimilarity(a.queryByName, b.queryByName), a.queryByName, b.queryByName))
		sum, weight = sum+3*query, weight+3*one
	}
	if a.kind != "" || b.kind != "" {
		body := max(least, bodySimilarity(a, b))
		if 2*body < one { // another question put to the same address
			return 0
		}
		sum, weight = sum+3*body, weight+3*one
	}
	return float64(sum) / float64(weight)
}

// elsewhere compares two requests of one path that differ in method, origin, or kind of body: they
// are as similar as their queries are, and at most a tenth, as neither can answer the other.
func elsewhere(a, b *Request) float64 {
	return float64(one/20+pairSimilarity(a.queryByName, b.queryByName)/20) / float64(one)
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

// extension is what a path segment ends with, from its last dot on, in lower case: ".js", ".png".
func extension(s string) string {
	if i := strings.LastIndexByte(s, '.'); i >= 0 {
		return strings.ToLower(s[i:])
	}
	return ""
}

// textSimilarity is the share of common prefix and suffix. Texts that differ in case only are
// nearly equal; two numbers are half alike, whatever their digits are.
func textSimilarity(a, b string) int64 {
	switch {
	case a == b || isVolatile(a) && isVolatile(b):
		return one
	case len(a) == len(b) && strings.EqualFold(a, b):
		return one / 20 * 19
	}
	similar := commonEnds(a, b)
	if 2*similar < one && isDigits(a) && isDigits(b) {
		return one / 2
	}
	return similar
}

// commonEnds is the share of common prefix and suffix.
func commonEnds(a, b string) int64 {
	return int64(inCommonEnds(a, b)) * one / int64(max(len(a), len(b)))
}

func inCommonEnds[T string | []byte](a, b T) int {
	prefix := commonPrefix(a, b)
	return prefix + min(commonSuffix(a, b), min(len(a), len(b))-prefix)
}

func commonPrefix[T string | []byte](a, b T) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix[T string | []byte](a, b T) int {
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
	if a.kind == "bytes" {
		return byteSimilarity(a, b)
	}
	return inOrder(pairSimilarity(a.bodyByName, b.bodyByName), a.bodyByName, b.bodyByName)
}

// inOrder lowers full similarity if values of one name are in another order.
func inOrder(similarity int64, a, b []pair) int64 {
	if similarity == one && !slices.Equal(a, b) {
		return one / 10 * 9
	}
	return similarity
}

// byteSimilarity compares bodies without fields, such as messages of Protobuf or XML: the share of bytes that are equal
// at their places, or in common prefix and suffix. What is beyond mostCompared counts as unequal.
func byteSimilarity(a, b *Request) int64 {
	most := max(a.size, b.size)
	if most == 0 {
		return 0
	}
	alike := 0
	for i := range min(len(a.bytes), len(b.bytes)) {
		if a.bytes[i] == b.bytes[i] {
			alike++
		}
	}
	if most <= mostCompared {
		alike = max(alike, inCommonEnds(a.bytes, b.bytes))
	}
	return int64(alike) * one / int64(most)
}
