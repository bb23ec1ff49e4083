package annotate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"eidetic/internal/lab"
	"eidetic/internal/tell/otlp"
	"eidetic/internal/tell/timeline"
	"eidetic/netlab/archive"
	"eidetic/netlab/replay"
)

// ofSpans is the source of what back ends tell of themselves, and failedColour that of a span that failed.
const (
	ofSpans      = "otlp"
	failedColour = "#b3261e"
)

// Spans puts the spans of a back end, in a file, onto the requests of a run's trials. A replayed request is answered as it
// was recorded, so what the back end did then stands in each trial, as long after the request as it was then.
func Spans(file string, run *lab.Run, files *os.Root, own []lab.Annotation, traced Traced) (found Import, err error) {
	if len(run.Trials) == 0 {
		return found, errNoTrial
	}
	found.isOld = func(a lab.Annotation) bool { return a.Source == ofSpans }
	own = slices.DeleteFunc(own, found.isOld)
	if len(traced.requests) == 0 {
		return found, errors.New("no recorded request has a traceparent: record with --traceparent, or with traceparent: true in the plan's measure")
	}
	f, err := os.Open(file)
	if err != nil {
		return found, err
	}
	defer f.Close()
	joiner := otlp.NewJoiner(traced.requests)
	left, err := otlp.Read(f, joiner.Add)
	cut := ""
	if errors.Is(err, otlp.ErrCut) {
		cut, err = fmt.Sprintf("; %v, so that it is left out", err), nil
	}
	if err != nil {
		return found, fmt.Errorf("%s: %w", file, err)
	}
	byExchange := map[string][]otlp.Placed{}
	widest := int64(0)
	for _, p := range joiner.Placed() {
		id := traced.exchanges[p.Request]
		byExchange[id], widest = append(byExchange[id], p), max(widest, p.Latest-p.Earliest)
	}
	reader := timeline.NewReader(files)
	served := 0
	for _, t := range run.Trials {
		for _, line := range reader.Served(t) {
			spans := byExchange[line.Exchange]
			if line.Exchange == "" || len(spans) == 0 {
				continue
			}
			room := spans[:min(len(spans), lab.MostRunAnnotations-len(own)-len(found.list))]
			found.many += len(spans) - len(room)
			if len(room) > 0 {
				served++
			}
			for _, p := range room {
				found.list = append(found.list, spanNote(t, line, p))
			}
		}
	}
	found.many += joiner.More
	found.said = fmt.Sprintf("%d spans are on the timelines, at %d requests, each known within %.3f ms or better; "+
		"%d are of traces that no recorded request has, %d have no ID or no time%s", len(found.list), served, float64(widest)/1e6, joiner.Others, left, cut)
	return found, nil
}

// spanNote is a span of a back end at a request of a trial.
func spanNote(t *lab.Trial, line lab.Served, p otlp.Placed) lab.Annotation {
	a := lab.Annotation{
		Op: lab.AnnotateSpan, Text: cmp.Or(p.Name, "span"), Group: "back end: " + cmp.Or(p.Service, "unnamed"), Source: ofSpans, Wall: t.Wall,
		Earliest: line.Time + lab.Time(p.Earliest), Latest: line.Time + lab.Time(p.Latest), Lasts: max(p.End-p.Start, 1),
	}
	if p.Failed {
		a.Text, a.Colour = a.Text+" (failed)", failedColour
	}
	return a.Clean()
}

// Traced are the requests of a run's recordings that have a traceparent, each with its exchange.
type Traced struct {
	exchanges []string
	requests  []otlp.Request
}

// TracedIn reads them in a run's folder.
func TracedIn(dir string) (t Traced, err error) {
	names, err := fs.Glob(os.DirFS(dir), "*.wacz")
	if err != nil {
		return t, err
	}
	for _, name := range names {
		a, err := archive.Open(filepath.Join(dir, name))
		if err != nil {
			return t, err
		}
		for _, e := range a.Exchanges() {
			id, parent, ok := otlp.Traceparent(e.Request.Get(replay.Traceparent))
			if !ok {
				continue
			}
			took := e.FirstByte
			for _, piece := range e.Chunks {
				took = max(took, piece.At)
			}
			t.exchanges = append(t.exchanges, e.ID)
			t.requests = append(t.requests, otlp.Request{Trace: id, Parent: parent, Sent: e.Wall.UnixNano(), Took: int64(took)})
		}
	}
	return t, nil
}
