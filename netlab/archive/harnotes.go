package archive

import (
	"fmt"
	"strings"
)

// harNotes counts what an import left out, lacks or changed, by reason.
type harNotes struct {
	reasons []string // in the order in which they were met
	of      map[string]*harNote
}

type harNote struct {
	count    int
	examples []string
}

// otherReasons takes the reasons beyond a number that no real file has.
const otherReasons = "left out or changed for other reasons"

// add notes that something about the place is so: "left out: it has no method".
func (n *harNotes) add(place, url, reason string) {
	const most, examples = 50, 3
	reason = oneLine(reason)
	if n.of[reason] == nil {
		if len(n.reasons) >= most {
			reason = otherReasons
		}
		if n.of == nil {
			n.of = map[string]*harNote{}
		}
		if n.of[reason] == nil {
			n.reasons, n.of[reason] = append(n.reasons, reason), &harNote{}
		}
	}
	x := n.of[reason]
	if x.count++; len(x.examples) < examples {
		if len(url) > 80 {
			url = strings.ToValidUTF8(url[:80], "") + "…"
		}
		x.examples = append(x.examples, oneLine(strings.TrimSpace(place+" "+url)))
	}
}

// lines says it all, a line for each reason.
func (n *harNotes) lines() (out []string) {
	for _, reason := range n.reasons {
		x := n.of[reason]
		more := ""
		if rest := x.count - len(x.examples); rest > 0 {
			more = fmt.Sprintf(", and %d more", rest)
		}
		out = append(out, fmt.Sprintf("%d × %s (%s%s)", x.count, reason, strings.Join(x.examples, ", "), more))
	}
	return out
}

// isNull tells a JSON value that is missing or null.
func isNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }
