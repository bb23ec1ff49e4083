package match

import (
	"fmt"
	"slices"
	"strings"
)

// difference is one thing that is not equal in a recorded and in a made request.
type difference struct {
	where, name     string // "query", "a"; "path segment 2", ""
	recorded, asked string // values; what one side lacks is absent
}

// absent stands for a value that one of the requests does not have. No value has a zero byte and
// this length.
const absent = "\x00none"

func (d difference) String() string {
	value := func(s string) string {
		if s == absent {
			return "none"
		}
		return brief(s)
	}
	space := ""
	if d.name != "" {
		space = " "
	}
	return d.where + space + d.name + ": " + value(d.recorded) + " → " + value(d.asked)
}

// mostDifferences bounds what is told of one request.
const mostDifferences = 10

// differences names what is not equal, for the replay log: at most ten.
func differences(recorded, asked *Request) []string { return texts(compare(recorded, asked)) }

func texts(list []difference) []string {
	if len(list) == 0 {
		return nil
	}
	out := make([]string, 0, min(len(list), mostDifferences)+1) // one more may be added
	for _, d := range list[:min(len(list), mostDifferences)] {
		out = append(out, d.String())
	}
	if more := len(list) - mostDifferences; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}

// compare lists what is not equal.
func compare(recorded, asked *Request) []difference {
	var out []difference
	add := func(where, a, b string) {
		if a != b {
			out = append(out, difference{where: where, recorded: a, asked: b})
		}
	}
	add("method", recorded.method, asked.method)
	add("origin", recorded.origin, asked.origin)
	if len(recorded.path) == len(asked.path) {
		for i := range recorded.path {
			if recorded.path[i] != asked.path[i] {
				add(fmt.Sprintf("path segment %d", i+1), recorded.path[i], asked.path[i])
			}
		}
	} else {
		add("path", "/"+strings.Join(recorded.path, "/"), "/"+strings.Join(asked.path, "/"))
	}
	out = comparePairs(out, "query", recorded.queryByName, asked.queryByName)
	if recorded.sum != asked.sum {
		n := len(out)
		add("kind of body", recorded.kind, asked.kind)
		out = comparePairs(out, "body", recorded.bodyByName, asked.bodyByName)
		if len(out) == n {
			out = append(out, difference{where: "body", recorded: "the recorded bytes", asked: "the same fields in other bytes"})
		}
	}
	if len(out) == 0 && recorded.url != asked.url {
		out = append(out, difference{where: "URL", recorded: "the recorded one", asked: "the same in another spelling"})
	}
	return out
}

// comparePairs compares pairs that are sorted by name.
func comparePairs(out []difference, where string, recorded, asked []pair) []difference {
	for len(recorded)+len(asked) > 0 {
		n, m := 0, 0 // pairs of the next name on either side
		switch {
		case len(asked) == 0 || len(recorded) > 0 && recorded[0].name < asked[0].name:
			n = sameName(recorded)
		case len(recorded) == 0 || asked[0].name < recorded[0].name:
			m = sameName(asked)
		default:
			n, m = sameName(recorded), sameName(asked)
		}
		out = compareNamesakes(out, where, recorded[:n], asked[:m])
		recorded, asked = recorded[n:], asked[m:]
	}
	return out
}

// compareNamesakes compares pairs that all have one name.
func compareNamesakes(out []difference, where string, recorded, asked []pair) []difference {
	const most = 100 // namesakes that are compared one by one
	switch {
	case slices.Equal(recorded, asked):
		return out
	case len(recorded) == 0 && len(asked) == 1:
		return append(out, difference{where, asked[0].name, absent, asked[0].value})
	case len(recorded) == 1 && len(asked) == 1:
		return append(out, difference{where, asked[0].name, recorded[0].value, asked[0].value})
	case max(len(recorded), len(asked)) > most:
		n, m := fmt.Sprint(len(recorded), " values"), fmt.Sprint(len(asked), " other values")
		return append(out, difference{where, nameOf(recorded, asked), n, m})
	}
	left := slices.Clone(recorded)
	var others []pair
	for _, p := range asked {
		if i := slices.Index(left, p); i >= 0 {
			left = slices.Delete(left, i, i+1)
		} else {
			others = append(others, p)
		}
	}
	if len(left)+len(others) == 0 {
		return append(out, difference{where, nameOf(recorded, asked), "in the order " + values(recorded), values(asked)})
	}
	for i := range max(len(left), len(others)) {
		d := difference{where, nameOf(recorded, asked), absent, absent}
		if i < len(left) {
			d.recorded = left[i].value
		}
		if i < len(others) {
			d.asked = others[i].value
		}
		out = append(out, d)
	}
	return out
}

func nameOf(a, b []pair) string {
	if len(a) > 0 {
		return a[0].name
	}
	return b[0].name
}

func values(list []pair) string {
	var out []string
	for _, p := range list {
		out = append(out, p.value)
	}
	return strings.Join(out, ", ")
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

// whyNormal says why the differences of a normalised match do not count.
func (g *Ignored) whyNormal(r *Request, list []difference) string {
	var room [mostDifferences]string
	why, clocks := room[:0], g.clocksOf(r)
	add := func(text string) {
		if !slices.Contains(why, text) {
			why = append(why, text)
		}
	}
	for _, d := range list[:min(len(list), mostDifferences)] {
		p, q := pair{d.name, d.recorded}, pair{d.name, d.asked}
		switch isPair := d.where == "query" || d.where == "body"; {
		case strings.HasPrefix(d.where, "path segment"):
			add("a part of the path is a value of time or chance, or left out by a rule")
		case d.where == "body" && d.name == "" && g.byRule(r.url, ""):
			add("the body is left out by a rule of the recording")
		case !isPair || d.name == "" && d.where == "body":
			add("only the spelling or the layout is another")
		case d.where == "query" && g.functions[r.place()][d.name] && isNumbered(d.asked):
			add(d.where + " " + d.name + " names the function that the answer calls, and the answer gets it")
		case (d.recorded == absent || p.isVolatile()) && (d.asked == absent || q.isVolatile()):
			add(d.where + " " + d.name + " is a value of time or chance")
		case d.where == "body" && r.isCallID(q):
			add(d.where + " " + d.name + " is the id of a call of JSON-RPC, and the answer gets it")
		case isReading(clocks, d.where+" "+d.name, d.asked):
			add(d.where + " " + d.name + " is the page's own clock: in the recording it is the time since the document")
		case d.where == "query" && g.byRule(r.url, d.name), d.where == "body" && g.byRule(r.url, strings.TrimPrefix(d.name, ".")):
			add(d.where + " " + d.name + " is left out by a rule of the recording")
		case d.where == "query" && g.idle[r.place()][d.name]:
			add("query " + d.name + " had other values with equal answers in the recording")
		}
	}
	return strings.Join(why, "; ")
}
