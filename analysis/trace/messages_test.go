package trace

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// TestMessages: an arrow leads from each message to where it came, by its key or else its text; a broadcast comes into
// several rows, and nothing comes before it was sent or from its own row.
func TestMessages(t *testing.T) {
	said := func(op, group, key string, earliest, latest lab.Time) lab.Annotation {
		return lab.Annotation{Op: op, Text: "postMessage", Group: group, Key: key, Bytes: 600, Source: "page", Earliest: earliest, Latest: latest}
	}
	const send, receive, page, worker, frame = lab.AnnotateSend, lab.AnnotateReceive, "messages", "messages, worker w.js", "messages, frame f"
	list := []lab.Annotation{
		said(receive, worker, "a", 500, 500), // before any was sent
		said(send, page, "a", 1000, 1000), said(send, page, "a", 2000, 2000),
		said(receive, worker, "a", 3000, 3000), said(receive, worker, "a", 4000, 4000), said(receive, worker, "a", 4500, 4500),
		said(send, worker, "b", 5000, 5600), said(receive, page, "b", 5100, 5700), // their bounds overlap
		said(send, page, "c", 6000, 6000), said(receive, worker, "c", 6100, 6100), said(receive, frame, "c", 6200, 6200), said(receive, page, "c", 6300, 6300),
		{Op: send, Text: "job 7", Group: "program", Source: "fifo", Earliest: 7000, Latest: 7000},
		{Op: receive, Text: "job 7", Group: "back end", Source: "log", Earliest: 8000, Latest: 8000},
		{Op: lab.AnnotateMark, Text: "WebSocket to a.test", Group: page, Bytes: 5000, Source: "page", Earliest: 8100, Latest: 8100},
	}
	tl := Of(Source{Trial: &lab.Trial{Number: 1, StartTime: 1}, Annotations: list})
	var got []string
	for _, f := range tl.Flows {
		from, to := tl.Tracks[f.FromTrack], tl.Tracks[f.ToTrack]
		a, b := from.Events[f.From], to.Events[f.To]
		got = append(got, from.Name+" "+itoa(a.Earliest)+" > "+to.Name+" "+itoa(b.Earliest))
	}
	want := []string{
		page + " 1000 > " + worker + " 3000", page + " 2000 > " + worker + " 4000", worker + " 5000 > " + page + " 5100",
		page + " 6000 > " + worker + " 6100", page + " 6000 > " + frame + " 6200", "program 7000 > back end 8000",
	}
	if !slices.Equal(got, want) {
		t.Errorf("arrows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	note := "messages: WebSocket to a.test: 1, 5.0 kB; postMessage received: 8, 4.8 kB; postMessage sent: 4, 2.4 kB"
	if !slices.Contains(tl.Notes, note) {
		t.Errorf("notes %q, want %q", tl.Notes, note)
	}
}

func itoa(t lab.Time) string { return strconv.FormatInt(int64(t), 10) }
