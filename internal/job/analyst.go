package job

import (
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"sort"
	"time"

	"eidetic/analysis/visual"
	"eidetic/capture/reel"
	"eidetic/capture/video"
	"eidetic/internal/experiment"
	"eidetic/internal/lab"
)

// Names of a trial's evidence.
const (
	videoFile    = "evidence.webm"
	heatFile     = "heatmap.png"
	stripFolder  = "filmstrip"
	stripFile    = "filmstrip.json"
	timelineFile = "timeline.json"
)

// leadIn is how many frames before the start the evidence shows.
const leadIn = 15

// analyst measures a trial's reel and makes its pictures.
type analyst struct{}

// Analyse fills in what pixels tell of t, and writes the evidence into dir.
func (analyst) Analyse(ctx context.Context, dir string, t *lab.Trial, start lab.Event) error {
	seen, err := look(dir, start)
	if err != nil {
		return err
	}
	r, area, result := seen.reel, seen.area, seen.result
	defer r.Close()
	describe(t, result)
	t.Spans = spans(t, result, start)
	first := frameAt(r, t.StartTime)
	for _, write := range []func() error{
		func() error { return writeHeat(dir, t, result) },
		func() error { return writeStrip(ctx, dir, t, r, first, area) },
		func() error { return writeVideo(ctx, dir, t, r, first, area) },
		func() error { return writeJSON(dir, timelineFile, "timeline", t, t.Spans) },
	} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// seen is a reel and what its pixels tell. Whoever looked closes the reel.
type seen struct {
	reel   *reel.Reader
	area   image.Rectangle // of the content
	result *visual.Result
}

// look opens the reel of a trial that began at start and analyses it.
func look(dir string, start lab.Event) (_ seen, err error) {
	r, err := reel.Open(filepath.Join(dir, experiment.ReelFile))
	if err != nil {
		return seen{}, err
	}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	area, _, last, err := visual.FindContent(r, visual.SyncOptions{})
	if err != nil {
		return seen{}, err
	}
	result, err := visual.Analyze(r, visual.Options{Start: last, Origin: start, Content: area})
	return seen{r, area, result}, err
}

// frameAt finds the last frame that was taken before an instant, or the first.
func frameAt(r *reel.Reader, at lab.Time) int {
	after := sort.Search(r.Len(), func(i int) bool { return r.Info(i).Time > at })
	return max(0, after-1)
}

// describe copies the result's numbers into the trial.
func describe(t *lab.Trial, r *visual.Result) {
	t.StartFrame = r.Start
	t.StartTime = r.Origin.Earliest + (r.Origin.Latest-r.Origin.Earliest)/2
	t.ContentX, t.ContentY = r.Content.Min.X, r.Content.Min.Y
	t.ContentW, t.ContentH = r.Content.Dx(), r.Content.Dy()
	t.FinalFrame = r.FinalSHA256
	t.Measurements = r.Measurements()
	for _, m := range t.Measurements {
		t.Metrics[m.Name] = m.Value
	}
	t.LoadHistogram, t.VisualProgress, t.FrameTimes = r.LoadHistogram, r.Progress, r.Times
}

// spans is the trial's tree of intervals: objective, tasks, details.
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

func writeHeat(dir string, t *lab.Trial, r *visual.Result) error {
	f, err := os.Create(filepath.Join(dir, heatFile))
	if err != nil {
		return err
	}
	if err := png.Encode(f, visual.HeatImage(r)); err != nil {
		f.Close()
		return fmt.Errorf("writing the heat map: %w", err)
	}
	t.Files["heatmap"] = heatFile
	return f.Close()
}

// stripMost is the most pictures of a filmstrip.
const stripMost = 14

// stripStep is the time between two pictures of a filmstrip that shows the
// load up to its last change: 100, 200, 400 … ms, so that the pictures of a slow
// load and those of a quick one can be laid on one axis.
func stripStep(last float64) float64 {
	step := 100.0
	for step*(stripMost-2) < last && step < 1e6 {
		step *= 2
	}
	return step
}

func writeStrip(ctx context.Context, dir string, t *lab.Trial, r *reel.Reader, start int, area image.Rectangle) error {
	folder := filepath.Join(dir, stripFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	thumbs, err := video.Filmstrip(ctx, r, folder, video.StripOptions{
		First: start, Crop: area, Width: 240, EveryMS: stripStep(t.Metrics["last_visual_change_ms"]), Max: stripMost,
	})
	if err != nil {
		return err
	}
	for i := range thumbs {
		thumbs[i].File = stripFolder + "/" + filepath.Base(thumbs[i].File)
		// Count from the navigation, as every metric does.
		thumbs[i].TimeMS = max(0, r.Info(thumbs[i].Frame).Time.Sub(t.StartTime).Seconds()*1e3)
	}
	return writeJSON(dir, stripFile, "filmstrip", t, thumbs)
}

func writeVideo(ctx context.Context, dir string, t *lab.Trial, r *reel.Reader, start int, area image.Rectangle) error {
	err := video.WebM(ctx, r, filepath.Join(dir, videoFile), video.Options{First: max(0, start-leadIn), Crop: area, Rate: r.Format().Rate})
	if err != nil {
		return err
	}
	t.Files["video"] = videoFile
	return nil
}

// writeJSON writes an artifact and names it in the trial.
func writeJSON(dir, file, name string, t *lab.Trial, v any) error {
	content, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, file), append(content, '\n'), 0o644); err != nil {
		return err
	}
	t.Files[name] = file
	return nil
}

// ms is a number of milliseconds as a duration.
func ms(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
