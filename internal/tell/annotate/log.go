package annotate

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/tell/loglines"
	"eidetic/internal/tell/timeline"
)

// markersGroup is the row of the markers by which a log's clock is joined to the box's, and markerName begins each.
const (
	markersGroup = "log markers"
	markerName   = "eidetic-marker-"
)

// errNoTrial is about a run that has just begun.
var errNoTrial = errors.New("the run has no trial yet") // constant

// Marker is a text that a program writes into its log, by which the log's clock is joined to the box's.
func Marker() string { return markerName + strings.ToLower(rand.Text()[:10]) }

// Marked is the note of a marker that was written between two instants.
func Marked(marker string, earliest, latest lab.Time) lab.Annotation {
	return lab.Annotation{Op: lab.AnnotateMark, Text: marker, Group: markersGroup, Source: "command", Earliest: earliest, Latest: latest}
}

// LogOptions say how a log is read.
type LogOptions struct {
	File, Format string          // "" finds the format out
	Group        string          // the row
	Rules        *loglines.Rules // made for the same row
	Zone         *time.Location
	ThisMachine  bool // the log's clock is this machine's, on which the run was made
}

// trialSpan is from when to when a trial takes annotations.
type trialSpan struct {
	trial       *lab.Trial
	first, last lab.Time
}

// Log puts the lines of a log onto the timelines of a run, which has annotations of its own.
func Log(run *lab.Run, own []lab.Annotation, o LogOptions) (Import, error) {
	for _, a := range own {
		if a.Source == "log" && a.Group == lab.OneLine(o.Group, lab.MaxAnnotationGroup) {
			return Import{}, fmt.Errorf("a log is already on the row %q: name another with --group", o.Group)
		}
	}
	var spans []trialSpan
	for _, t := range run.Trials {
		if first, last, ok := timeline.Span(t); ok {
			spans = append(spans, trialSpan{t, first, last})
		}
	}
	if len(spans) == 0 {
		return Import{}, errNoTrial
	}
	lines := loglines.Options{Format: o.Format, Near: spans[0].trial.Wall, Zone: o.Zone}
	clock, err := o.clock(lines, own, spans[0])
	if err != nil {
		return Import{}, err
	}
	found := placing{clock: clock, rules: o.Rules, spans: spans, room: lab.MostRunAnnotations - len(own)}
	left, err := o.eachEntry(lines, found.take)
	if err != nil {
		return Import{}, fmt.Errorf("%s: %w", o.File, err)
	}
	return Import{
		list: found.list, isOld: func(lab.Annotation) bool { return false }, many: found.many,
		said: fmt.Sprintf("%d lines are on the timeline, each known within %.3f ms or better; %d are of other times, %d are left out by rules, %d have no stamp",
			len(found.list), float64(found.widest)/1e6, found.outside, found.skipped, left),
	}, nil
}

// placing puts entries onto the trials in which they were written.
type placing struct {
	clock                  *loglines.Clock
	rules                  *loglines.Rules
	spans                  []trialSpan
	room                   int // for so many
	list                   []lab.Annotation
	widest                 lab.Time
	outside, skipped, many int
}

func (p *placing) take(e loglines.Entry) error {
	earliest, latest, err := p.clock.At(e)
	if err != nil {
		return err
	}
	for _, s := range p.spans {
		if latest < s.first || earliest > s.last {
			continue
		}
		a, ok := p.rules.Annotation(e, earliest, latest)
		switch {
		case !ok:
			p.skipped++
		case len(p.list) >= p.room:
			p.many++
		default:
			a.Wall = s.trial.Wall
			p.list, p.widest = append(p.list, a), max(p.widest, latest-earliest)
		}
		return nil
	}
	p.outside++
	return nil
}

// eachEntry reads the log.
func (o LogOptions) eachEntry(lines loglines.Options, take func(loglines.Entry) error) (left int, err error) {
	f, err := os.Open(o.File)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	some := false
	left, err = loglines.Read(f, lines, func(e loglines.Entry) error {
		some = true
		return take(e)
	})
	if err == nil && !some && left == 0 {
		err = errors.New("it has no line")
	} else if err == nil && !some {
		err = fmt.Errorf("none of its %d lines has a stamp of a known form: %s", left, strings.Join(loglines.Formats(), ", "))
	}
	return left, err
}

// clock joins the log's clock to the box's: by the markers that are in both, or because it is this machine's own.
func (o LogOptions) clock(lines loglines.Options, own []lab.Annotation, first trialSpan) (*loglines.Clock, error) {
	if o.ThisMachine {
		before, wall, after := lab.Monotonic(), time.Now(), lab.Monotonic()
		if began := before - lab.Time(wall.Sub(first.trial.Wall)); time.Duration(began-first.first).Abs() > 10*time.Minute {
			return nil, errors.New("--this-machine: the run was made on another machine, or before this one was started: its clock tells nothing of the run")
		}
		return loglines.NewClock([]loglines.Pair{{Log: wall, Earliest: before, Latest: after}}, true), nil
	}
	markers := map[string]lab.Annotation{}
	for _, a := range own {
		if a.Group == markersGroup && strings.HasPrefix(a.Text, markerName) {
			markers[a.Text] = a
		}
	}
	var pairs []loglines.Pair
	if len(markers) > 0 {
		_, err := o.eachEntry(lines, func(e loglines.Entry) error {
			at := strings.Index(e.Text, markerName)
			if at < 0 || e.At.IsZero() {
				return nil
			}
			word, _, _ := strings.Cut(e.Text[at:]+" ", " ")
			if a, ok := markers[strings.Trim(word, "\"',.")]; ok {
				pairs = append(pairs, loglines.Pair{Log: e.At, Grain: e.Grain, Earliest: a.Earliest, Latest: a.Latest})
				delete(markers, a.Text) // a line may be told twice
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.File, err)
		}
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("%w: write markers into the log with --marker while the run goes on, or say --this-machine", loglines.ErrNoClock)
	}
	return loglines.NewClock(pairs, false), nil
}
