package execute

import (
	"encoding/json"

	"eidetic/internal/lab"
	"eidetic/netlab/replay"
)

// noteAnnotation is the annotation by which a page's lab.annotate and its like arrive.
const noteAnnotation = "annotations"

// pageNotes keeps what the pages of a session put onto the timeline.
type pageNotes struct {
	pageClocks
	list []pageNote
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
		PageMS float64 `json:"page_ms"`
	}
	if json.Unmarshal(p.List, &list) != nil {
		return
	}
	for _, one := range list {
		a := lab.Annotation{Op: one.Op, Text: one.Text, Group: one.Group, Colour: one.Colour, Source: "page", PageMS: one.PageMS,
			Earliest: n.Time, Latest: n.Time}.Clean()
		if a.Check() != nil || !isPageTime(one.PageMS) || len(m.list) == lab.MostAnnotations {
			continue
		}
		m.list = append(m.list, pageNote{a, p.Doc})
	}
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
	return out
}
