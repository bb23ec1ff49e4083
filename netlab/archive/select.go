package archive

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// Selection chooses exchanges: those whose URL matches one of the patterns (see
// [MatchURL]), and those with one of the numbers or ends of IDs.
type Selection struct{ URL, ID []string }

// shortestID is the fewest characters of an ID's end that name an exchange.
const shortestID = 4

// Empty says that nothing was chosen.
func (s Selection) Empty() bool { return len(s.URL)+len(s.ID) == 0 }

// Has says whether e is chosen.
func (s Selection) Has(e *lab.Exchange) bool {
	for _, p := range s.URL {
		if MatchURL(p, e.URL) {
			return true
		}
	}
	for _, id := range s.ID {
		if id == strconv.Itoa(e.Order) || len(id) >= shortestID && strings.HasSuffix(e.ID, id) {
			return true
		}
	}
	return false
}

// Find returns the one exchange that name stands for: its number, the end of its
// ID, its URL, or a pattern that only its URL matches.
func (a *Archive) Find(name string) (*lab.Exchange, error) {
	var found, equal []*lab.Exchange
	for _, e := range a.exchanges {
		if (Selection{ID: []string{name}}).Has(e) {
			return e, nil
		}
		if MatchURL(name, e.URL) {
			found = append(found, e)
		}
		if e.URL == name {
			equal = append(equal, e)
		}
	}
	if len(equal) > 0 {
		found = equal
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, fmt.Errorf("no exchange is %q; appliance archive ls lists them", name)
	}
	return nil, fmt.Errorf("%d exchanges match %q, such as %d and %d: name one by its number", len(found), name, found[0].Order,
		found[1].Order)
}

// Split returns the exchanges for which keep is true, and the others.
func (a *Archive) Split(keep func(*lab.Exchange) bool) (kept, others []*lab.Exchange) {
	for _, e := range a.exchanges {
		if keep(e) {
			kept = append(kept, e)
		} else {
			others = append(others, e)
		}
	}
	return kept, others
}

// ReadServed adds to used the IDs of the exchanges that a trial's replay log
// (replay.jsonl) says were served.
func ReadServed(log string, used map[string]bool) error {
	f, err := os.Open(log)
	if err != nil {
		return err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	for n := 1; ; n++ {
		var line lab.Served
		if err := d.Decode(&line); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s, line %d: %w", log, n, err)
		}
		used[line.Exchange] = true
	}
}

// Entry is an exchange in a list. Times are in ms.
type Entry struct {
	Order     int     `json:"order"`
	ID        string  `json:"id"`
	Method    string  `json:"method"`
	URL       string  `json:"url"`
	Status    int     `json:"status"`
	Protocol  string  `json:"protocol"`
	Server    string  `json:"server,omitempty"`
	Type      string  `json:"type"`
	Bytes     int     `json:"bytes"` // of the body on the wire
	Start     float64 `json:"start_ms"`
	FirstByte float64 `json:"first_byte_ms"`
	End       float64 `json:"end_ms"` // since the request
	Chunks    int     `json:"chunks"`
	Truncated string  `json:"truncated,omitempty"`
}

// EntryOf returns what a list shows of an exchange.
func EntryOf(e *lab.Exchange) Entry {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	kind, _, _ := strings.Cut(e.Response.Get("Content-Type"), ";")
	l := Entry{
		Order: e.Order, ID: e.ID, Method: e.Method, URL: e.URL, Status: e.Status, Protocol: e.Protocol, Type: kind,
		Bytes: len(e.Response.Body), Start: ms(e.Start), FirstByte: ms(e.FirstByte), End: ms(e.FirstByte),
		Chunks: len(e.Chunks), Truncated: e.Truncated,
	}
	if n := len(e.Chunks); n > 0 {
		l.End = ms(e.Chunks[n-1].At)
	}
	if e.Server.IsValid() {
		l.Server = e.Server.String()
	}
	return l
}
