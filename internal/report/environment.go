package report

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"eidetic/internal/lab"
)

// group is a table of names and values.
type group struct {
	Name string
	Rows []pair
}

type pair struct{ Name, Value string }

func groupsOf(run *lab.Run) []group {
	a := run.Archive
	archive := group{"Archive", []pair{
		{"File", a.File}, {"SHA-256", a.SHA256}, {"Exchanges", count(a.Exchanges)}, {"File size", size(a.Bytes)},
		{"Body bytes", size(a.BodyBytes)}, {"Hosts", strings.Join(a.Hosts, ", ")}, {"Protocols", strings.Join(a.Protocols, ", ")},
	}}
	var out []group
	for _, g := range []group{{linkTitle(run), flat(run.Link)}, {"Environment", flat(run.Environment)}, {"Plan", flat(run.Plan)}} {
		if len(g.Rows) > 0 {
			out = append(out, g)
		}
	}
	if a.File != "" || a.Exchanges > 0 {
		out = append(out, archive)
	}
	return out
}

// linkTitle names the table of run.Link, which is the control's.
func linkTitle(run *lab.Run) string {
	if both(run) {
		return "Link of the control"
	}
	return "Link"
}

// flat lists a tree of values by their paths: "browser.version", in order.
func flat(m map[string]any) []pair {
	var out []pair
	var visit func(prefix string, v any, depth int)
	visit = func(prefix string, v any, depth int) {
		tree, ok := v.(map[string]any)
		if ok && len(tree) > 0 && depth < 8 {
			names := make([]string, 0, len(tree))
			for name := range tree {
				names = append(names, name)
			}
			sort.Strings(names)
			for _, name := range names {
				path := name
				if prefix != "" {
					path = prefix + "." + name
				}
				visit(path, tree[name], depth+1)
			}
			return
		}
		if list, ok := v.([]any); ok && depth < 8 && len(list) > 0 {
			if _, trees := list[0].(map[string]any); trees {
				for i, one := range list {
					visit(fmt.Sprintf("%s.%d", prefix, i+1), one, depth+1)
				}
				return
			}
		}
		if prefix != "" {
			out = append(out, pair{prefix, plain(v)})
		}
	}
	visit("", m, 0)
	return out
}

func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return "–"
	case []any:
		parts := make([]string, len(v))
		for i, one := range v {
			parts[i] = plain(one)
		}
		return strings.Join(parts, ", ")
	case []string:
		return strings.Join(v, ", ")
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return fmt.Sprintf("%.0f", v)
		}
	}
	return fmt.Sprint(v)
}
