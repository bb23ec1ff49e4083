package archive

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// harEvent is an event of an event stream, as tools write it that drive Chromium: its developer tools have no text of a
// stream.
type harEvent struct {
	Time harFloat  `json:"time"` // in s since 1970, or in ms
	Name harLoose  `json:"eventName"`
	ID   harLoose  `json:"eventId"`
	Data harString `json:"data"`
}

// isOpenStream tells an event stream, or pictures without end, whose body the exporter does not have: browsers keep a text
// only once a body has ended.
func (h *harEntry) isOpenStream(e *lab.Exchange) bool {
	c := &h.Response.Content
	isEmpty := c.attached == nil && (c.Text == nil || *c.Text == "") && !strings.HasPrefix(c.Comment, harCut)
	return e.Status == 200 && e.Method != "HEAD" && isEmpty && lab.IsStream(e.Response.Get("Content-Type"))
}

// stream makes e an event stream that was still open, with the entry's events at their times. Were it at its end, a page
// would ask for it again and again.
func (h *harEntry) stream(e *lab.Exchange) (notes []string) {
	e.Truncated = "time"
	e.Response.Header = slices.DeleteFunc(e.Response.Header, func(f lab.HeaderField) bool { // of the bytes that are not there
		return slices.Contains([]string{"content-encoding", "content-length", "transfer-encoding"}, strings.ToLower(f.Name))
	})
	var list []harEvent
	if isNull(h.Events) || json.Unmarshal(h.Events, &list) != nil && len(list) == 0 {
		return []string{"an event stream without its events, which stays open and silent"}
	}
	times := make([]harMessage, len(list))
	for i, event := range list {
		const latest = 1e11 // in seconds; in milliseconds, it is in 1973
		if times[i].Time = event.Time; event.Time > latest {
			times[i].Time /= 1000
		}
	}
	at := messageTimes(times, h.sentAt(e), e.FirstByte)
	for i, event := range list {
		text := event.text()
		e.Response.Body = append(e.Response.Body, text...)
		e.Chunks = append(e.Chunks, lab.Chunk{At: max(at[i], e.FirstByte, lastChunk(e)), Bytes: len(text)})
	}
	return []string{"an event stream whose text is made of its events, and which stays open"}
}

// lastChunk is when the last piece came.
func lastChunk(e *lab.Exchange) time.Duration {
	if n := len(e.Chunks); n > 0 {
		return e.Chunks[n-1].At
	}
	return 0
}

// text is the event as the stream had it (HTML, 9.2.5), for a reader that cannot tell them apart.
func (v harEvent) text() string {
	var b strings.Builder
	field := func(name, value string) { fmt.Fprintf(&b, "%s: %s\n", name, oneLine(value)) }
	if v.Name != "" && v.Name != "message" {
		field("event", string(v.Name))
	}
	if v.ID != "" {
		field("id", string(v.ID))
	}
	for line := range strings.SplitSeq(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(v.Data)), "\n") {
		field("data", line)
	}
	b.WriteByte('\n')
	return b.String()
}
