package trace

import (
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"eidetic/internal/lab"
)

// joined puts requests together that stand in one arm only but ask for the same thing under another URL, as a new
// build's hashed file names do. Those of the control are paired with those of the treatment in their order: first where
// method, owner and path are equal but for hashes and numbers, then where as many of one owner and kind are left in
// both arms. What remains is in one arm only. It returns the order without the names that were taken up in others, and
// what those others are called.
func (t *table) joined(order []string, all map[string][]*asked) (rest []string, called map[string]string) {
	called = map[string]string{}
	taken := map[string]bool{}
	for _, pass := range []struct {
		key   func(string) string
		equal bool
	}{{pattern, false}, {kindOf, true}} {
		lone := map[string][2][]string{} // by key, those of the control alone and of the treatment alone
		var keys []string
		for _, name := range order {
			arm, alone := t.aloneIn(all[name])
			if !alone || taken[name] || called[name] != "" {
				continue
			}
			key := pass.key(name)
			pair, known := lone[key]
			if !known {
				keys = append(keys, key)
			}
			pair[arm] = append(pair[arm], name)
			lone[key] = pair
		}
		for _, key := range keys {
			c, d := lone[key][0], lone[key][1]
			if pass.equal && len(c) != len(d) {
				continue
			}
			for i := range min(len(c), len(d)) {
				for trial, a := range all[d[i]] {
					if a != nil {
						all[c[i]][trial] = a
					}
				}
				_, other, _ := strings.Cut(d[i], " ")
				taken[d[i]], called[c[i]] = true, c[i]+", in the treatment "+other
				delete(all, d[i])
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(order), func(name string) bool { return taken[name] }), called
}

// aloneIn says whether a request is made in one arm only, and in which: 0 for the control, 1 for the treatment.
func (t *table) aloneIn(list []*asked) (arm int, alone bool) {
	var has [2]bool
	for i, a := range list {
		if a != nil {
			has[truth(t.trials[i].Arm == lab.Treatment)] = true
		}
	}
	return truth(has[1]), has[0] != has[1]
}

// pattern is a request without what changes from build to build: the hashes and numbers of its path, the values of its
// query.
func pattern(name string) string {
	method, rest, _ := strings.Cut(name, " ")
	u, err := url.Parse(rest)
	if err != nil {
		return name
	}
	var b strings.Builder
	b.WriteString(method + " " + u.Host)
	word := func(w string) {
		if strings.ContainsFunc(w, unicode.IsDigit) {
			w = "#"
		}
		b.WriteString(w)
	}
	from := 0
	for i, r := range u.Path {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			word(u.Path[from:i])
			b.WriteRune(r)
			from = i + len(string(r))
		}
	}
	word(u.Path[from:])
	for _, key := range slices.Sorted(maps.Keys(u.Query())) {
		b.WriteString("?" + key)
	}
	return b.String()
}

// kindOf is who owns what a request asks for, and what kind it is, as far as its address says.
func kindOf(name string) string {
	method, rest, _ := strings.Cut(name, " ")
	u, err := url.Parse(rest)
	if err != nil {
		return name
	}
	return method + " " + u.Host + " " + strings.ToLower(path.Ext(u.Path))
}
