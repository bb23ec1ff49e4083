// Package timeline reads, from a run's folder, what goes onto the timeline of a trial: its record with the curves of
// its frames, the replay log, annotations, what the link did. In flow files that anyone may have written, out flow the
// sources of analysis/trace. What is missing or damaged is left out, and said.
package timeline

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"eidetic/analysis/trace"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Bounds of what is read of one trial.
const (
	mostRequests = 20000
	maxLog       = 64 << 20
	maxLink      = 8 << 20
	mostBins     = 36000 // an hour
)

// Reader reads the trials of one run.
type Reader struct {
	files *os.Root
	own   []lab.Annotation // of the run: from commands, pipes and the panel
	notes []string
}

// NewReader reads what the trials of a run share.
func NewReader(files *os.Root) *Reader {
	r := &Reader{files: files}
	f, _, err := store.OpenFile(files, store.AnnotationsFile)
	if err != nil {
		return r
	}
	defer f.Close()
	list, left, err := store.ReadAnnotations(f, lab.MostRunAnnotations)
	r.own, r.notes = list, said(nil, store.AnnotationsFile, left, err)
	return r
}

func said(notes []string, name string, left int, err error) []string {
	if left > 0 {
		notes = append(notes, fmt.Sprintf("%s: %d lines cannot be read, or are too many, and are left out", name, left))
	}
	if err != nil {
		notes = append(notes, fmt.Sprintf("%s: %v", name, err))
	}
	return notes
}

// Of lays out a trial of the run.
func (r *Reader) Of(t *lab.Trial) *trace.Timeline {
	notes := append([]string(nil), r.notes...)
	if len(t.FrameTimes) == 0 { // run.json has no curves
		if whole, err := store.ReadTrial(r.files, t.Number); err == nil {
			t = whole
		}
	}
	s := trace.Source{Trial: t}
	served, lacks := r.served(t)
	s.Served, notes = served, append(notes, lacks...)
	if f := r.open(t, "annotations"); f != nil {
		defer f.Close()
		list, left, err := store.ReadAnnotations(f, lab.MostAnnotations)
		s.Annotations, notes = list, said(notes, "annotations.jsonl", left, err)
	}
	s.Annotations = append(s.Annotations, ownOf(t, r.own)...)
	s.Link = r.link(t)
	list, left, err := r.Memory(t)
	s.Memory, notes = list, said(notes, "memory.jsonl", left, err)
	if f := r.open(t, "machine"); f != nil {
		defer f.Close()
		s.Machine, s.MachineLeft, err = store.ReadSamples(f)
		notes = said(notes, "machine.jsonl", 0, err)
	}
	if t.Trace != nil && t.Trace.Void == "" {
		kept, err := r.kept(t)
		if err != nil {
			notes = append(notes, err.Error())
		}
		s.Browser = kept.Shown
	}
	tl := trace.Of(s)
	tl.Notes = append(notes, tl.Notes...)
	return tl
}

// Served are the requests of a trial.
func (r *Reader) Served(t *lab.Trial) []lab.Served {
	list, _ := r.served(t)
	return list
}

func (r *Reader) served(t *lab.Trial) (list []lab.Served, notes []string) {
	f := r.open(t, "replay")
	if f == nil {
		return nil, nil
	}
	defer f.Close()
	served, err := store.DecodeServed(io.LimitReader(f, maxLog), mostRequests)
	if err != nil {
		notes = append(notes, fmt.Sprintf("the replay log is damaged after %d requests: %v", len(served.Lines), err))
	}
	if served.More > 0 {
		notes = append(notes, fmt.Sprintf("%d more requests are in the replay log", served.More))
	}
	return served.Lines, notes
}

// open opens a file of a trial by its role; nil if there is none.
func (r *Reader) open(t *lab.Trial, role string) *os.File {
	name, ok := t.Files[role]
	if !ok || !filepath.IsLocal(name) {
		return nil
	}
	f, _, err := store.OpenFile(r.files, path.Join("trials", store.TrialName(t.Number), filepath.ToSlash(name)))
	if err != nil {
		return nil
	}
	return f
}

// Memory reads what memory the processes of a trial's browser had; nothing where that was not read.
func (r *Reader) Memory(t *lab.Trial) (list []lab.ProcessMemory, left int, err error) {
	f := r.open(t, "memory")
	if f == nil {
		return nil, 0, nil
	}
	defer f.Close()
	return store.ReadMemory(f)
}

// link reads what left the link; nil where nothing was kept of it.
func (r *Reader) link(t *lab.Trial) []trace.LinkBin {
	f := r.open(t, "link")
	if f == nil {
		return nil
	}
	defer f.Close()
	var kept struct {
		Bins []trace.LinkBin `json:"bins"`
	}
	if json.NewDecoder(io.LimitReader(f, maxLink)).Decode(&kept) != nil {
		return nil
	}
	return kept.Bins[:min(len(kept.Bins), mostBins)]
}

// before and after are how far an annotation may be from a trial that it belongs to; sameBoot is by how much the wall
// clock may differ: the monotonic clock begins anew when the machine does.
const (
	before   = 5 * time.Second
	sameBoot = 6 * time.Hour
)

// Span is from when to when what comes belongs to a trial; false where its times are not known.
func Span(t *lab.Trial) (first, last lab.Time, ok bool) {
	first, last = t.FirstFrame, t.FirstFrame
	for i, e := range t.Events {
		if first == 0 && i == 0 {
			first = e.Earliest
		}
		last = max(last, e.Latest)
	}
	return first.Add(-before), last, first != 0
}

// ownOf are the annotations of a run that came in a trial.
func ownOf(t *lab.Trial, all []lab.Annotation) (out []lab.Annotation) {
	first, last, ok := Span(t)
	if !ok {
		return nil
	}
	for _, a := range all {
		if a.Latest >= first && a.Earliest <= last && a.Wall.Sub(t.Wall).Abs() < sameBoot {
			out = append(out, a)
		}
	}
	return out
}
