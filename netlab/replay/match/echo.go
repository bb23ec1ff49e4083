package match

import (
	"slices"
	"strings"
)

// Echo is a value by which a client knows the answer to its request again, and that is another one in the recording:
// the function that an answer in JSONP calls, or the id of a call of JSON-RPC.
type Echo struct {
	Recorded, Asked string
	// IsID tells an id of JSON-RPC 2.0; else it is the name of a function.
	IsID bool
}

// echoes lists what an answer has to say otherwise than the recorded one.
func echoes(recorded, asked *Request) (out []Echo) {
	for _, p := range asked.query {
		if i := slices.IndexFunc(recorded.query, func(q pair) bool { return q.name == p.name }); i >= 0 {
			if old := recorded.query[i].value; old != p.value && isFunction(old) && isFunction(p.value) {
				out = append(out, Echo{old, p.value, false})
			}
		}
	}
	for _, p := range asked.body {
		if !asked.isCallID(p) {
			continue
		}
		if i := slices.IndexFunc(recorded.body, func(q pair) bool { return q.name == p.name }); i >= 0 && recorded.body[i].value != p.value {
			out = append(out, Echo{recorded.body[i].value, p.value, true})
		}
	}
	return out
}

// isFunction tells the name of a function as a page passes it: jQuery3_1700, app.loaded.
func isFunction(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || part[0] >= '0' && part[0] <= '9' {
			return false
		}
		if strings.Trim(part, "$_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			return false
		}
	}
	return len(name) <= 256
}

// isCallID tells the id of a call of JSON-RPC 2.0, alone or in a batch, which says nothing of what is asked.
func (r *Request) isCallID(p pair) bool {
	of, isID := strings.CutSuffix(p.name, ".id")
	if !isID || r.kind != "json" || strings.Count(of, ".") > 1 {
		return false
	}
	return slices.Contains(r.body, pair{of + ".jsonrpc", "2.0"})
}
