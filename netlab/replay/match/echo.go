package match

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"

	"eidetic/internal/lab"
	"eidetic/netlab/inject"
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

// functionParameters finds query parameters of JSONP, whatever their names: the recorded answer begins with a call of the
// function that the value names, which has a number.
func functionParameters(entries []*Entry) map[string]map[string]bool {
	const window = "window."
	out := map[string]map[string]bool{}
	for _, en := range entries {
		r := en.request
		if len(r.query) == 0 || len(r.query) > mostParameters || en.Method != "GET" || !mayCall(en) {
			continue
		}
		called := ""
		for _, p := range r.query {
			if !isNumbered(p.value) {
				continue
			}
			if called == "" {
				if called = firstCall(en.Response); called == "" {
					break
				}
			}
			if strings.TrimPrefix(p.value, window) == strings.TrimPrefix(called, window) {
				if out[r.place()] == nil {
					out[r.place()] = map[string]bool{}
				}
				out[r.place()][p.name] = true
			}
		}
	}
	return out
}

// mayCall tells an answer that a page runs as a script.
func mayCall(en *Entry) bool {
	dest := en.Request.Get("Sec-Fetch-Dest")
	return en.Status == 200 && (dest == "" || strings.EqualFold(dest, "script")) && len(en.Response.Body) > 0
}

// firstCall is the function that a script begins to call, behind comments, or "".
func firstCall(answer lab.Message) string {
	const most = 1 << 10 // bytes up to the call
	r, err := inject.NewDecoder(inject.ContentCoding(answer.Header), bytes.NewReader(answer.Body))
	if err != nil {
		return ""
	}
	defer r.Close()
	head := make([]byte, most)
	n, _ := io.ReadFull(r, head) // a shorter one, or one that is cut off, may begin with a call, too
	found := call.FindSubmatch(head[:n])
	if found == nil {
		return ""
	}
	return string(found[1])
}

// call matches a call at the begin of a script, behind comments, perhaps only if there is such a function:
// typeof f === "function" && f(
var call = regexp.MustCompile(`^\x{feff}?(?:\s|;|//.*\n|/\*(?s:.*?)\*/)*` + // constant
	`(?:try\s*\{\s*|typeof\s[^&(]*&&\s*|[\w.$]+\s*&&\s*)?([\w.$]+)\s*\(`)

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

// isNumbered tells the name of a function that a page has made for one request, by a clock or by chance: cb_1022200.
func isNumbered(name string) bool {
	const least = 3 // digits; fewer tell functions of a page apart
	digits := 0
	for _, c := range name {
		if c >= '0' && c <= '9' {
			digits++
		}
	}
	return digits >= least && isFunction(name)
}

// isCallID tells the id of a call of JSON-RPC 2.0, alone or in a batch, which says nothing of what is asked.
func (r *Request) isCallID(p pair) bool {
	of, isID := strings.CutSuffix(p.name, ".id")
	if !isID || r.kind != "json" || strings.Count(of, ".") > 1 {
		return false
	}
	return slices.Contains(r.body, pair{of + ".jsonrpc", "2.0"})
}
