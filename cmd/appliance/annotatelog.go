package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/tell/loglines"
	"eidetic/internal/tell/terminal"
	"eidetic/internal/tell/timeline"
)

// markersGroup is the row of the markers by which a log's clock is joined to the box's, and markerName begins each.
const (
	markersGroup = "log markers"
	markerName   = "eidetic-marker-"
)

// logFlags put the log of a program onto a run's timeline.
type logFlags struct {
	Log         string `type:"existingfile" placeholder:"FILE" help:"Put the lines of a log onto the timelines of the run's trials, also after the run."`
	As          string `placeholder:"FORMAT" help:"The log's stamps: rfc3339, epoch, syslog, journald (journalctl -o json), json, logfmt, logcat, nginx, nginx-error, console (Chromium's), ctime, glog, clock (a time without a date), monotonic. Without it found out line by line."`
	Rules       string `type:"existingfile" placeholder:"FILE" help:"A YAML file that says which lines are marks, intervals or nothing (docs/timeline.md)."`
	Zone        string `default:"UTC" placeholder:"NAME" help:"Time zone of stamps that name none, such as Europe/Berlin or Local."`
	ThisMachine bool   `help:"The log is of this machine, and so is its clock; else markers join the two clocks."`
	Marker      string `placeholder:"COMMAND" help:"Write a marker into the log, during the run: the command with the marker's text as its last argument, such as 'logger' or 'adb shell log -t eidetic'. --log finds the markers."`
}

// writeMarker has a command write a marker into a log, and notes when that was.
func (c *AnnotateCmd) writeMarker(ctx context.Context, write func(context.Context, []lab.Annotation) error) error {
	words := strings.Fields(c.Marker)
	text := markerName + strings.ToLower(rand.Text()[:10])
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], text)...)
	before := lab.Monotonic()
	if out, err := cmd.CombinedOutput(); err != nil {
		return cannot(fmt.Errorf("--marker: %s: %w: %s", terminal.Visible(c.Marker), err, terminal.Visible(string(out))))
	}
	mark := lab.Annotation{Op: lab.AnnotateMark, Text: text, Group: markersGroup, Source: "command", Earliest: before, Latest: lab.Monotonic()}
	return write(ctx, []lab.Annotation{mark})
}

// span is from when to when a trial takes annotations.
type trialSpan struct {
	trial       *lab.Trial
	first, last lab.Time
}

// importLog puts a log onto the timelines of a run.
func (c *AnnotateCmd) importLog(std *streams) error {
	dir, run, err := c.folder()
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		return usage(fmt.Errorf("--zone: %w", err))
	}
	group := cmp.Or(c.Group, filepath.Base(c.Log))
	var text []byte
	if c.Rules != "" {
		if text, err = readNamed(c.Rules, loglines.MaxRules); err != nil {
			return usage(fmt.Errorf("--rules: %w", err))
		}
	}
	rules, err := loglines.NewRules(text, group)
	if err != nil {
		return usage(fmt.Errorf("%s: %w", terminal.Visible(c.Rules), err))
	}
	own, err := ownAnnotations(dir)
	if err != nil {
		return cannot(err)
	}
	for _, a := range own {
		if a.Source == "log" && a.Group == lab.OneLine(group, lab.MaxAnnotationGroup) {
			return usage(fmt.Errorf("a log is already on the row %q: name another with --group", group))
		}
	}
	var spans []trialSpan
	for _, t := range run.Trials {
		if first, last, ok := timeline.Span(t); ok {
			spans = append(spans, trialSpan{t, first, last})
		}
	}
	if len(spans) == 0 {
		return usage(fmt.Errorf("%s has no trial yet", terminal.Visible(c.To)))
	}
	o := loglines.Options{Format: c.As, Near: spans[0].trial.Wall, Zone: zone}
	clock, err := c.logClock(o, own, spans[0])
	if err != nil {
		return err
	}
	found := placing{clock: clock, rules: rules, spans: spans, room: lab.MostRunAnnotations - len(own)}
	left, err := c.eachEntry(o, found.take)
	if err != nil {
		return usage(fmt.Errorf("%s: %w", terminal.Visible(c.Log), err))
	}
	return imported{
		list: found.list, isOld: func(lab.Annotation) bool { return false }, many: found.many,
		said: fmt.Sprintf("%d lines are on the timeline, each known within %.3f ms or better; %d are of other times, %d are left out by rules, %d have no stamp",
			len(found.list), float64(found.widest)/1e6, found.outside, found.skipped, left),
	}.put(std, dir)
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
func (c *AnnotateCmd) eachEntry(o loglines.Options, take func(loglines.Entry) error) (left int, err error) {
	f, err := os.Open(c.Log)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	some := false
	left, err = loglines.Read(f, o, func(e loglines.Entry) error {
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

// logClock joins the log's clock to the box's: by the markers that are in both, or because it is this machine's own.
func (c *AnnotateCmd) logClock(o loglines.Options, own []lab.Annotation, first trialSpan) (*loglines.Clock, error) {
	if c.ThisMachine {
		before, wall, after := lab.Monotonic(), time.Now(), lab.Monotonic()
		if began := before - lab.Time(wall.Sub(first.trial.Wall)); time.Duration(began-first.first).Abs() > 10*time.Minute {
			return nil, usage(errors.New("--this-machine: the run was made on another machine, or before this one was started: its clock tells nothing of the run"))
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
		_, err := c.eachEntry(o, func(e loglines.Entry) error {
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
			return nil, usage(fmt.Errorf("%s: %w", terminal.Visible(c.Log), err))
		}
	}
	if len(pairs) == 0 {
		return nil, usage(fmt.Errorf("%w: write markers into the log with --marker while the run goes on, or say --this-machine", loglines.ErrNoClock))
	}
	return loglines.NewClock(pairs, false), nil
}
