package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"sort"
	"sync/atomic"
	"time"

	"eidetic/analysis/find"
	"eidetic/analysis/measure"
	"eidetic/analysis/visual"
	"eidetic/capture/reel"
	"eidetic/capture/video"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/run/experiment"
)

// Names of a trial's evidence.
const (
	videoFile    = "evidence.webm"
	heatFile     = "heatmap.png"
	stripFolder  = "filmstrip"
	stripFile    = "filmstrip.json"
	timelineFile = "timeline.json"
)

// leadIn is how many frames before the start the evidence includes.
const leadIn = 15

// analyst measures a trial's reel and makes its evidence.
type analyst struct {
	encoding  atomic.Int64              // processor time of the encoders so far, in nanoseconds
	templates map[string]*find.Template // of the plan's steps
	ask       measure.Request           // what the plan asks for
}

// Analyse fills in the fields of t that come from pixels, and returns the function that makes
// the evidence. The video is encoded meanwhile, by another process on a second core.
func (a *analyst) Analyse(ctx context.Context, dir string, t *lab.Trial, start lab.Event) (func(context.Context) error, error) {
	r, o, err := open(dir, start)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	first := max(0, frameAt(r, middle(start))-leadIn)
	t.VideoLead = middle(start).Sub(r.Info(first).Time).Seconds() * 1e3
	filming, giveUp := context.WithCancel(ctx)
	filmed := make(chan error, 1)
	go func() {
		defer giveUp()
		filmed <- a.writeVideo(filming, dir, first, o.Content)
	}()
	evidence, err := a.measure(r, o, t, dir, filmed)
	if err != nil {
		giveUp()
		<-filmed
		return nil, err
	}
	traced(dir, t)
	worked(dir, t)
	return evidence, nil
}

// measure measures a load, or the steps of a journey.
func (a *analyst) measure(
	r *reel.Reader, o visual.Options, t *lab.Trial, dir string, filmed <-chan error,
) (func(context.Context) error, error) {
	d, err := newDeep(r, o.Content, a.ask)
	if err != nil {
		return nil, err
	}
	if len(t.Steps) > 0 {
		if err := a.measureSteps(r, o, t, d); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error { return stepEvidence(ctx, dir, t, d, filmed) }, nil
	}
	d.widen(&o)
	result, err := visual.Analyze(r, o)
	if err != nil {
		return nil, err
	}
	describe(t, result)
	t.Spans = spans(t, result, o.Origin)
	if t.Measurements, t.Analysis, err = d.measure("", result, t.Measurements, o.Origin, nil); err != nil {
		return nil, err
	}
	if d != nil {
		if err := d.painted(t, result); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error { return evidence(ctx, dir, t, result, d, filmed) }, nil
}

// open opens the reel of a trial that began at start, and returns which part of it is to be
// measured. The caller closes the reader.
func open(dir string, start lab.Event) (*reel.Reader, visual.Options, error) {
	r, err := reel.Open(filepath.Join(dir, experiment.ReelFile))
	if err != nil {
		return nil, visual.Options{}, err
	}
	area, _, last, err := visual.FindContent(r, visual.SyncOptions{})
	if err != nil {
		r.Close()
		return nil, visual.Options{}, err
	}
	return r, visual.Options{Start: last, Origin: start, Content: area, EndPage: lab.SyncRed()}, nil
}

// evidence makes the pictures of a trial and waits for its video. It names in the trial
// whatever was made, even if another part fails.
func evidence(ctx context.Context, dir string, t *lab.Trial, result *visual.Result, d *deep, filmed <-chan error) error {
	errs := []error{d.writeTimeline(dir, t), d.writeAreas(dir, t)}
	for _, made := range []struct {
		role, file string
		write      func() error
	}{
		{"heatmap", heatFile, func() error { return writePNG(dir, heatFile, visual.HeatImage(result)) }},
		{"filmstrip", stripFile, func() error {
			return writeStrip(ctx, dir, t, result.End-1, result.Content, stripStep(metric.LastChange.In(t)))
		}},
		{"video", videoFile, func() error { return <-filmed }},
	} {
		if err := made.write(); err != nil {
			errs = append(errs, err)
			continue
		}
		t.Files[made.role] = made.file
	}
	return errors.Join(errs...)
}

// frameAt finds the last frame taken before an instant, or the first frame.
func frameAt(r *reel.Reader, at lab.Time) int {
	after := sort.Search(r.Len(), func(i int) bool { return r.Info(i).Time > at })
	return max(0, after-1)
}

// middle is the best single estimate of an event's instant.
func middle(e lab.Event) lab.Time { return e.Earliest + (e.Latest-e.Earliest)/2 }

// describe copies the numbers of the result into the trial.
func describe(t *lab.Trial, r *visual.Result) {
	t.StartFrame = r.Start
	t.StartTime = middle(r.Origin)
	t.ContentX, t.ContentY = r.Content.Min.X, r.Content.Min.Y
	t.ContentW, t.ContentH = r.Content.Dx(), r.Content.Dy()
	t.FinalFrame, t.NoLoad = r.FinalSHA256, r.NoLoad()
	t.Measurements = r.Measurements()
	t.LoadHistogram, t.VisualProgress, t.FrameTimes = r.LoadHistogram, r.Progress, r.Times
}

// spans returns the trial's tree of intervals: objective, tasks, details.
func spans(t *lab.Trial, r *visual.Result, start lab.Event) []*lab.Span {
	at := func(frame int) (lab.Time, bool) {
		if frame < r.Start || frame-r.Start >= len(r.Times) {
			return 0, false
		}
		return t.StartTime.Add(ms(r.Times[frame-r.Start])), true
	}
	end := t.StartTime
	if len(r.Times) > 0 {
		end = t.StartTime.Add(ms(r.Times[len(r.Times)-1]))
	}
	root := &lab.Span{Name: "load " + t.Page, Level: "objective", Start: start.Earliest, End: end}
	previous := t.StartTime
	for _, task := range []struct {
		name  string
		frame int
	}{
		{"waiting for the first change", r.FirstChange},
		{"painting", r.LastChange},
	} {
		until, ok := at(task.frame)
		if !ok {
			break
		}
		root.Children = append(root.Children, &lab.Span{Name: task.name, Level: "task", Start: previous, End: until})
		previous = until
	}
	if len(root.Children) == 2 {
		painting := root.Children[1]
		from := painting.Start
		for _, share := range []int{85, 95, 99} {
			if until, ok := at(r.Complete[share]); ok && until > from {
				painting.Children = append(painting.Children, &lab.Span{
					Name: fmt.Sprintf("to %d %% visually complete", share), Level: "detail", Start: from, End: until,
				})
				from = until
			}
		}
		root.Children = append(root.Children, &lab.Span{Name: "still", Level: "task", Start: previous, End: end})
	}
	return []*lab.Span{root}
}

// stripMost is the most pictures of a filmstrip.
const stripMost = 14

// stripStep is the time between two pictures of a filmstrip that shows the load up to its
// last change: 100, 200, 400 … ms, so that filmstrips of slow and of fast loads fit one
// axis.
func stripStep(last float64) float64 {
	step := 100.0
	for step*(stripMost-2) < last && step < 1e6 {
		step *= 2
	}
	return step
}

// FilmEvidence makes the video and the filmstrip of a trial that is a film alone, and names them in it.
func FilmEvidence(ctx context.Context, dir string, t *lab.Trial) error {
	if err := (&analyst{}).writeVideo(ctx, dir, 0, image.Rectangle{}); err != nil {
		return err
	}
	t.Files["video"] = videoFile
	if err := writeStrip(ctx, dir, t, t.Frames-1, image.Rectangle{}, 0); err != nil {
		return err
	}
	t.Files["filmstrip"] = stripFile
	return nil
}

// writeStrip makes the filmstrip of a part of the screen up to a frame, with a picture every so many ms, or 0 for at
// its changes.
func writeStrip(ctx context.Context, dir string, t *lab.Trial, last int, area image.Rectangle, every float64) error {
	r, err := reel.Open(filepath.Join(dir, experiment.ReelFile))
	if err != nil {
		return err
	}
	defer r.Close()
	folder := filepath.Join(dir, stripFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	thumbs, err := video.Filmstrip(ctx, r, folder, video.StripOptions{
		First: frameAt(r, t.StartTime), Last: last, Crop: area, Width: 240, EveryMS: every, Max: stripMost,
	})
	if err != nil {
		return err
	}
	for i := range thumbs {
		thumbs[i].File = stripFolder + "/" + filepath.Base(thumbs[i].File)
		// Times count from the navigation, as in every metric.
		thumbs[i].TimeMS = max(0, r.Info(thumbs[i].Frame).Time.Sub(t.StartTime).Seconds()*1e3)
	}
	return writeJSON(dir, stripFile, thumbs)
}

// writeVideo makes the video of a trial from a frame on.
func (a *analyst) writeVideo(ctx context.Context, dir string, first int, area image.Rectangle) error {
	r, err := reel.Open(filepath.Join(dir, experiment.ReelFile)) // a reader must not be used by two goroutines
	if err != nil {
		return err
	}
	defer r.Close()
	return video.WebM(ctx, r, filepath.Join(dir, videoFile), video.Options{
		First: first, Crop: area,
		Ended: func(p *os.ProcessState) { a.encoding.Add(int64(p.UserTime() + p.SystemTime())) },
	})
}

func writeJSON(dir, file string, v any) error {
	content, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, file), append(content, '\n'), 0o644)
}

// ms converts milliseconds to a duration.
func ms(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
