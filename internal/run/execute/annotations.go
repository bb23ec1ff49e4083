package execute

import (
	"encoding/json"
	"fmt"
	"strings"

	"eidetic/internal/lab"
	"eidetic/netlab/replay"
)

// noteAnnotation is the annotation by which a page's lab.annotate and its like arrive.
const noteAnnotation = "annotations"

// mostMessages bounds the messages of a trial, so that they leave room for what the page itself annotates.
const mostMessages = lab.MostAnnotations * 3 / 5

// mostRow bounds the name of a frame or a worker in bytes: it leaves room for the group beside it.
const mostRow = 60

// pageNotes keeps what the pages of a session put onto the timeline.
type pageNotes struct {
	pageClocks
	list     []pageNote
	messages int // that were told

	more int               // that there was no room for
	rows map[string]string // of frames and workers, by their documents' names
	seen map[string]int    // how many of them have a name
}

type pageNote struct {
	lab.Annotation
	doc string
}

// add reads one post; what is no annotation is left out.
func (m *pageNotes) add(n replay.Annotation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.read(n)
	if !ok {
		return
	}
	var list []struct {
		Op     string  `json:"op"`
		Text   string  `json:"text"`
		Group  string  `json:"group"`
		Colour string  `json:"colour"`
		Key    string  `json:"key"`
		Bytes  float64 `json:"bytes"`
		PageMS float64 `json:"page_ms"`
	}
	if json.Unmarshal(p.List, &list) != nil {
		return
	}
	row := m.row(p)
	for _, one := range list {
		a := lab.Annotation{Op: one.Op, Text: one.Text, Group: one.Group, Colour: one.Colour, Source: "page", PageMS: one.PageMS,
			Key: one.Key, Bytes: int64(min(max(one.Bytes, 0), 1e15)),
			Earliest: n.Time, Latest: n.Time}.Clean()
		if a.Check() != nil || !isPageTime(one.PageMS) {
			continue
		}
		if one.Group == lab.MessageGroup {
			if m.messages++; m.messages > mostMessages {
				m.more++
				continue
			}
		}
		if len(m.list) >= lab.MostAnnotations-1 { // the last one says so
			m.more++
			continue
		}
		if row != "" {
			a.Group = lab.OneLine(strings.TrimPrefix(a.Group+", ", ", ")+row, lab.MaxAnnotationGroup)
		}
		m.list = append(m.list, pageNote{a, p.Doc})
	}
}

// row is what the rows of a frame or a worker are named by, so that two of one name do not end each other's notes; ""
// for the page itself.
func (m *pageNotes) row(p post) string {
	if p.Where == "" {
		return ""
	}
	if row, there := m.rows[p.Doc]; there {
		return row
	}
	if m.rows == nil {
		m.rows, m.seen = map[string]string{}, map[string]int{}
	}
	row := lab.OneLine(p.Where, mostRow)
	if len(m.rows) == mostDocuments {
		return row
	}
	m.seen[row]++
	if n := m.seen[row]; n > 1 {
		row = fmt.Sprintf("%s (%d)", row, n)
	}
	m.rows[p.Doc] = row
	return row
}

// all returns them with their times on the box's clock, as well as that is joined to the page's by now. A page's
// annotation was made before it arrived.
func (m *pageNotes) all() []lab.Annotation {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]lab.Annotation, 0, len(m.list))
	for _, one := range m.list {
		if earliest, latest, ok := m.at(one.doc, one.PageMS); ok {
			one.Earliest, one.Latest = earliest, max(min(latest, one.Latest), earliest)
		}
		out = append(out, one.Annotation)
	}
	if m.more > 0 {
		now := m.list[len(m.list)-1]
		out = append(out, lab.Annotation{Op: lab.AnnotateMark, Text: fmt.Sprintf("%d more notes of pages are left out", m.more), Source: "page",
			Earliest: now.Earliest, Latest: now.Latest})
	}
	return out
}
