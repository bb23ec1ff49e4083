package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"eidetic/analysis/measure"
	"eidetic/analysis/visual"
	"eidetic/capture/reel"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// AnalyzeCmd measures a recording.
type AnalyzeCmd struct {
	File    string            `arg:"" optional:"" help:"The reel, a folder of pictures, or a film (Y4M; others need ffmpeg); with --plan the folder of a run."`
	Against string            `arg:"" optional:"" help:"Another one, to be shown beside the first."`
	Plan    string            `type:"path" placeholder:"FILE" help:"Judge the steps of an earlier run again, by the ends and masks that this plan has for them, and say what changes."`
	Frames  string            `placeholder:"DIR" help:"Instead of a reel: a folder of PNG, JPEG or WebP frames of one size, the last number in each name its time in ms (ms_001200.png), or a date with a time of day, as in names of screenshots."`
	Rate    float64           `placeholder:"FPS" help:"With --frames: numbers that are not marked as ms (ms_1200.png, 1200ms.png) count frames at this rate. Also the rate of a video stream without a container (h264), which has no times."`
	Start   int               `default:"-1" placeholder:"FRAME" help:"Frame the load starts from (default: the last one of the green page, else the first)."`
	Events  string            `placeholder:"FILE" help:"Log of a trial's events, from whose navigation times count (default: the file events.jsonl beside the reel; without it, or with --start, from the start frame)."`
	End     int               `default:"0" placeholder:"FRAME" help:"One past the final frame (default: all but a red page at the end)."`
	Content string            `placeholder:"WxH+X+Y" help:"Content area (default: the green page's, else the whole frame)."`
	Sync    string            `enum:"green,orange,checkers" default:"green" help:"What marks the content area and the start: a page of Eideticker's green, of the orange of the WebPageTest family (#de640d), or a square of black and white checks in each corner. See docs/metrics.md."`
	Ignore  []string          `sep:"none" placeholder:"WxH+X+Y" help:"Area to leave out, such as a caret or a carousel; may be repeated."`
	Metrics measure.Selection `placeholder:"LIST" help:"Only these measurements, by name or group, separated by commas; all computes every index of a page load. Groups: rate, motion, blank, tearing, stable, window, response, codes, shift, colours. See docs/metrics.md."`
	Flavour string            `enum:"browsertime,wpt" default:"browsertime" help:"Flavour of SpeedIndex: browsertime or wpt, whose name is speed_index_wpt_ms."`
	Bars    bool              `help:"Print the load as bars, too: which share of the final picture each frame shows, and when."`
	Heat    string            `placeholder:"FILE.png" help:"Also write the heat map."`
	JSON    bool              `name:"json" help:"Print JSON, with the curves."`
	deepFlags

	ignore []image.Rectangle // of Ignore
	cut    error             // of a film that ends within a frame
}

// Help shows the command at work.
func (AnalyzeCmd) Help() string {
	return `Examples:
  appliance analyze trial.reel
  appliance analyze --frames shots/ --metrics speed_index_ms,last_visual_change_ms --json
  appliance analyze trial.reel --ignore 300x40+0+500 --heat heat.png
  appliance analyze scroll.reel --metrics rate,motion,blank,tearing --csv frames.csv --charts charts/
  appliance analyze before.reel after.reel --metrics rate,load
  appliance analyze --plan checkout.yaml out/checkout/runs/20261122-200106-checkout`
}

// analysed is what analyze prints.
type analysed struct {
	File         string            `json:"file"`
	Start        int               `json:"start_frame"`
	Origin       string            `json:"origin"`    // what times count from
	End          int               `json:"end_frame"` // one past the final one
	Content      string            `json:"content"`
	Baseline     string            `json:"baseline"`
	Lost         int               `json:"frames_lost"`
	Final        string            `json:"final_frame_sha256"`
	Warnings     []string          `json:"warnings,omitempty"`
	Measurements []lab.Measurement `json:"measurements"`
	Load         []float64         `json:"load_histogram"`
	Progress     []float64         `json:"visual_progress"`
	Times        []float64         `json:"frame_times_ms"`
	Tolerance    string            `json:"tolerance"`
	More         *measure.Result   `json:"more,omitempty"` // the groups that were asked for

	numbers []measure.Number // all, in the order in which they are printed
}

// Run measures and prints.
func (c *AnalyzeCmd) Run(ctx context.Context, std *streams) error {
	if c.Plan != "" {
		return c.rescore(std)
	}
	if c.Against != "" {
		return c.compare(ctx, std)
	}
	one, err := c.analyse(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(std.out, one)
	}
	for _, w := range one.Warnings {
		fmt.Fprintln(std.err, "appliance: note:", w)
	}
	fmt.Fprintf(std.out, "%s: frames %d … %d, content %s; times count from %s\n", one.File, one.Start, one.End-1, one.Content, one.Origin)
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	printNumbers(w, one.numbers)
	if err := w.Flush(); err != nil || !c.Bars {
		return err
	}
	return printBars(std.out, one.Times, one.Load)
}

// printBars prints a load histogram: a line for each picture whose share differs, with its time.
func printBars(out io.Writer, times, load []float64) error {
	const wide = 50
	for i, share := range load {
		if i > 0 && share == load[i-1] {
			continue
		}
		full := int(math.Round(share / 100 * wide))
		bar := strings.Repeat("█", full) + strings.Repeat("·", wide-full)
		if _, err := fmt.Fprintf(out, "%9.1f ms %s %5.1f %%\n", times[i], bar, share); err != nil {
			return err
		}
	}
	return nil
}

// analyse measures one recording and writes the files that were asked for.
func (c *AnalyzeCmd) analyse(ctx context.Context) (found *analysed, err error) {
	defer func() { err = ofReel(err) }()
	frames, done, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if frames.Len() == 0 {
		return nil, usage(fmt.Errorf("analyze: %s has no pictures", c.name()))
	}
	raw := frames
	frames, noise, drop, err := c.hold(ctx, frames)
	if err != nil {
		return nil, err
	}
	defer drop()
	o, warnings, err := c.options(frames)
	if err != nil {
		return nil, err
	}
	c.ignore = o.Ignore
	if !noise.Exact() {
		warnings = append(warnings, fmt.Sprintf("the source has noise (%s), which is left out: seen for certain is a change %s; --raw compares "+
			"pixels as they are", noise.Floor(), noise.Sees()))
	}
	if r, ok := raw.(*reel.Reader); ok && len(r.Recovered()) > 0 {
		warnings = append(
			warnings,
			fmt.Sprintf("the reel was cut off or is damaged (%s): what is missing is not analysed", r.Recovered()[0]),
		)
	}
	if r, ok := raw.(*reel.Reader); ok {
		warnings = append(warnings, troubles(r)...)
	}
	if c.cut != nil {
		warnings = append(warnings, fmt.Sprintf("the film was cut off (%v): what is missing is not analysed", c.cut))
	}
	origin, told, err := c.origin(frames, o.Start)
	if err != nil {
		return nil, err
	}
	o.Origin = origin
	if o.Tolerance, err = c.tolerance(frames); err != nil {
		return nil, err
	}
	r, err := visual.Analyze(frames, o)
	if err != nil {
		return nil, usage(err)
	}
	if r.End < frames.Len() && c.End == 0 {
		warnings = append(
			warnings,
			fmt.Sprintf("the red page ends the load with frame %d and is not measured (--end %d measures it all the same)",
				r.End, frames.Len()),
		)
	}
	warnings = append(warnings, c.doubts(raw, r)...)
	if r.Lost > 0 {
		warnings = append(
			warnings,
			fmt.Sprintf("%d frames were lost while recording: times of changes next to them are less certain", r.Lost),
		)
	}
	ms, err := c.choose(r.Measurements())
	if err != nil {
		return nil, err
	}
	more, err := c.deep(frames, r, o.Tolerance)
	if err != nil {
		return nil, err
	}
	out := &analysed{File: c.name(), Start: r.Start, Origin: told, End: r.End, Content: geometry(r.Content), Baseline: r.Baseline.String(),
		Lost: r.Lost, Final: r.FinalSHA256, Warnings: warnings, Measurements: ms, Load: r.LoadHistogram, Progress: r.Progress, Times: r.Times,
		Tolerance: o.Tolerance.String(), More: more}
	for _, m := range ms {
		out.numbers = append(out.numbers, measure.Number{Measurement: m})
	}
	if more != nil {
		more.Numbers = c.Metrics.Of(more)
		out.numbers = append(out.numbers, more.Numbers...)
		out.Warnings = append(out.Warnings, more.Notes...)
	}
	return out, c.write(r, more)
}

// write makes the pictures and tables that were asked for.
func (c *AnalyzeCmd) write(r *visual.Result, more *measure.Result) error {
	if c.Heat != "" {
		if err := writePicture(c.Heat, visual.HeatImage(r)); err != nil {
			return err
		}
	}
	if c.CSV != "" {
		if err := writeTable(c.CSV, r, more); err != nil {
			return err
		}
	}
	if c.Charts != "" {
		return writeCharts(c.Charts, r, more)
	}
	return nil
}

// options turns the flags into the analysis's, asking the green page for what they leave open.
func (c *AnalyzeCmd) options(frames visual.Frames) (visual.Options, []string, error) {
	o := visual.Options{Start: max(c.Start, 0), End: c.End, Sync: c.sync().Colour}
	if c.End == 0 {
		o.EndPage = lab.SyncRed()
	}
	var warnings []string
	if c.Content != "" {
		r, err := parseGeometry(c.Content)
		if err != nil {
			return o, nil, usage(fmt.Errorf("--content: %w", err))
		}
		o.Content = r
	}
	for _, s := range c.Ignore {
		r, err := parseGeometry(s)
		if err != nil {
			return o, nil, usage(fmt.Errorf("--ignore: %w", err))
		}
		o.Ignore = append(o.Ignore, r)
	}
	if c.Flavour == "wpt" {
		o.Also |= visual.WPT
	}
	o.Also |= c.Metrics.Indices()
	if c.Start >= 0 && c.Content != "" {
		return o, warnings, nil
	}
	area, _, last, err := visual.FindContent(frames, c.sync())
	switch {
	case errors.Is(err, visual.ErrNoSync):
		warnings = append(warnings, "no frame shows the synchronisation page: the first frame is the start "+
			"and the whole frame the content, unless --start and --content say otherwise")
	case err != nil:
		return o, nil, usage(err)
	default:
		if c.Start < 0 {
			o.Start = last
		}
		if c.Content == "" {
			o.Content = area
		}
	}
	return o, warnings, nil
}

// sync is how the content area is found.
func (c *AnalyzeCmd) sync() visual.SyncOptions {
	o := visual.SyncOptions{To: c.End, Checkers: c.Sync == "checkers"}
	if c.Sync == "orange" {
		o.Colour = visual.SyncOrange()
	}
	return o
}

// choose keeps the measurements that were asked for.
func (c *AnalyzeCmd) choose(all []lab.Measurement) ([]lab.Measurement, error) {
	if err := c.Metrics.Check(); err != nil {
		return nil, usage(fmt.Errorf("--metrics: %w", err))
	}
	if len(c.Metrics) == 0 || slices.Contains(c.Metrics, "all") {
		unwanted := ""
		if c.Flavour == "wpt" && len(c.Metrics) == 0 {
			unwanted = metric.SpeedIndex.String()
		}
		return slices.DeleteFunc(all, func(m lab.Measurement) bool { return m.Name == unwanted }), nil
	}
	var out []lab.Measurement
	if slices.Contains(c.Metrics, metric.Load) {
		return all, nil
	}
	for _, name := range c.Metrics {
		if name == metric.SpeedIndex.String() && c.Flavour == "wpt" {
			name = metric.SpeedIndexWPT.String()
		}
		// One that is not there does not exist in this recording: nothing changed, or never enough.
		if i := slices.IndexFunc(all, func(m lab.Measurement) bool { return m.Name == name }); i >= 0 {
			out = append(out, all[i])
		}
	}
	return out, nil
}

// geometry writes a rectangle as X does: 1280x720+0+0.
func geometry(r image.Rectangle) string {
	return fmt.Sprintf("%dx%d+%d+%d", r.Dx(), r.Dy(), r.Min.X, r.Min.Y)
}

func parseGeometry(s string) (image.Rectangle, error) {
	var w, h, x, y int
	var rest string
	if n, _ := fmt.Sscanf(s, "%dx%d+%d+%d%s", &w, &h, &x, &y, &rest); n != 4 || w < 1 || h < 1 || w > lab.MaxSide || h > lab.MaxSide ||
		x < 0 || y < 0 || x > lab.MaxSide || y > lab.MaxSide {
		return image.Rectangle{}, fmt.Errorf("%q is not an area: write WIDTHxHEIGHT+X+Y, such as 300x40+0+500", s)
	}
	return image.Rect(x, y, x+w, y+h), nil
}

func writePicture(path string, img image.Image) error {
	if err := writeNamed(path, func(w io.Writer) error { return png.Encode(w, img) }); err != nil {
		return cannot(fmt.Errorf("write %s: %w", path, err))
	}
	return nil
}
