package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/analysis/measure"
	"eidetic/analysis/visual"
	"eidetic/internal/base/atomicfile"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// deepFlags are those of analyze that concern moving pictures, inputs and thresholds.
type deepFlags struct {
	Regions      []string      `sep:"none" placeholder:"NAME=WxH+X+Y" help:"Also measure frame rate, stable frame and responses in this part of the frame; may be repeated."`
	Raw          bool          `help:"Compare pixels as they are, even where a source's noise moves them."`
	Tolerance    string        `default:"0" placeholder:"N|R,G,B|auto" help:"How far a pixel's channels may each move without counting as changed; auto measures the source's noise on the green page."`
	UniquePixels int           `default:"1" placeholder:"N" help:"Changed pixels that make a frame unique; more than 1: of a step of luma (Eideticker: 2048 for HDMI, 4096 for cameras)."`
	LumaStep     int           `default:"5" placeholder:"N" help:"Step of luma that counts with --unique-pixels and for stable frames."`
	Refresh      float64       `placeholder:"HZ" help:"The screen's refresh rate, if it differs from the recording's (59.94)."`
	Zoom         bool          `help:"Motion may change the scale."`
	Blank        string        `default:"learn" placeholder:"COLOUR" help:"Colour of what is not drawn yet (#ff00ff), or learn: what has one colour and is drawn later."`
	KnownImages  bool          `help:"Tearing: the film shows images that share no pixel value at any place, so frames that share some are torn."`
	Input        []string      `placeholder:"NAMES" help:"Names of the events that are inputs (default: every event but navigate, sync, done and end)."`
	Quiet        time.Duration `default:"500ms" help:"How long a region has to be still to have settled after an input."`
	CSV          string        `name:"csv" placeholder:"FILE.csv" help:"Also write a table with a row for each frame."`
	Charts       string        `placeholder:"DIR" help:"Also write the curves as SVG and PNG into this folder."`
}

// tolerance reads --tolerance; auto measures it where the green page stood.
func (c *AnalyzeCmd) tolerance(frames visual.Frames) (visual.Tolerance, error) {
	t, auto, err := measure.ParseTolerance(c.Tolerance)
	if err != nil {
		return t, usage(fmt.Errorf("--tolerance %w", err))
	}
	if auto {
		if t, err = measure.AutoTolerance(frames, c.sync()); err != nil {
			return t, usage(fmt.Errorf("--tolerance auto: %w; say a number instead", err))
		}
	}
	return t, nil
}

// deep measures the groups that were asked for; nil if there are none.
func (c *AnalyzeCmd) deep(frames visual.Frames, r *visual.Result, t visual.Tolerance) (*measure.Result, error) {
	groups := c.Metrics.Groups()
	if len(groups) == 0 {
		return nil, nil
	}
	o := measure.Options{Start: r.Start, End: r.End, Origin: r.Origin, Content: r.Content, Ignore: c.ignore, Groups: groups, Tolerance: t,
		UniquePixels: c.UniquePixels, LumaStep: c.LumaStep, Zoom: c.Zoom, Known: c.KnownImages, Quiet: c.Quiet,
		Curves: c.JSON || c.CSV != "" || c.Charts != ""}
	for _, text := range c.Regions {
		name, area, ok := strings.Cut(text, "=")
		box, err := parseGeometry(area)
		if !ok || name == "" || err != nil {
			return nil, usage(fmt.Errorf("--regions %q: write NAME=WIDTHxHEIGHT+X+Y, such as menu=300x40+0+500", text))
		}
		o.Regions = append(o.Regions, visual.Region{Name: name, Area: box})
	}
	if c.UniquePixels < 1 || c.LumaStep < 1 || c.LumaStep > 255 {
		return nil, usage(errors.New("--unique-pixels and --luma-step start at 1; a step of luma is at most 255"))
	}
	if c.Refresh != 0 {
		if !(c.Refresh >= 1 && c.Refresh <= 1000) {
			return nil, usage(fmt.Errorf("--refresh %v is outside 1 … 1000 Hz", c.Refresh))
		}
		o.Refresh = time.Duration(float64(time.Second) / c.Refresh)
	}
	var err error
	if o.BlankColour, err = measure.ParseColour(c.Blank); err != nil {
		return nil, usage(fmt.Errorf("--blank %w", err))
	}
	if o.Events, err = c.inputs(frames); err != nil {
		return nil, err
	}
	o.Excuses = o.Events
	m, err := measure.Run(frames, o)
	if err != nil {
		return nil, usage(err)
	}
	return m, nil
}

// inputs reads the events that count as inputs, of those while this was filmed.
func (c *AnalyzeCmd) inputs(frames visual.Frames) ([]lab.Event, error) {
	file := c.Events
	if file == "" && c.Frames == "" {
		file = filepath.Join(filepath.Dir(c.File), experiment.EventsFile)
	}
	if file == "" || frames.Len() == 0 {
		return nil, nil
	}
	all, err := experiment.ReadEvents(file)
	if err != nil {
		if c.Events == "" {
			return nil, nil // there is no log beside it
		}
		return nil, usage(fmt.Errorf("--events %s: %w", file, err))
	}
	first, last := frames.Info(0).Time, frames.Info(frames.Len()-1).Time
	var out []lab.Event
	for _, e := range all {
		wanted := slices.Contains(c.Input, e.Name)
		if len(c.Input) == 0 {
			wanted = !slices.Contains([]string{"navigate", "sync", "done", "end"}, e.Name)
		}
		if wanted && e.Latest >= first && e.Earliest <= last && e.Earliest <= e.Latest {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b lab.Event) int { return int(min(max(a.Earliest-b.Earliest, -1), 1)) })
	return out, nil
}

// columns are all curves of an analysis.
func columns(r *visual.Result, m *measure.Result) []measure.Column {
	out := []measure.Column{{Name: "load", Unit: "%", Values: r.LoadHistogram}, {Name: "progress", Unit: "%", Values: r.Progress}}
	changed := make([]float64, len(r.Changed))
	for i, n := range r.Changed {
		changed[i] = float64(n)
	}
	if m == nil || !slices.ContainsFunc(m.Columns, func(c measure.Column) bool { return c.Name == "changed" }) {
		out = append(out, measure.Column{Name: "changed", Unit: "pixels", Values: changed})
	}
	if m != nil {
		out = append(out, m.Columns...)
	}
	return out
}

// writeTable writes one row for each frame.
func writeTable(path string, r *visual.Result, m *measure.Result) error {
	cols := columns(r, m)
	head := []string{"frame", "time_ms"}
	for _, col := range cols {
		head = append(head, strings.ReplaceAll(strings.TrimSpace(col.Name+" "+col.Unit), " ", "_"))
	}
	rows := [][]string{head}
	for i, at := range r.Times {
		row := []string{strconv.Itoa(r.Start + i), strconv.FormatFloat(at, 'f', 3, 64)}
		for _, col := range cols {
			row = append(row, strconv.FormatFloat(col.Values[i], 'g', 8, 64))
		}
		rows = append(rows, row)
	}
	if err := writeNamed(path, func(w io.Writer) error { return csv.NewWriter(w).WriteAll(rows) }); err != nil {
		return cannot(fmt.Errorf("write %s: %w", path, err))
	}
	return nil
}

// writeCharts writes each family of curves as NAME.svg and NAME.png.
func writeCharts(dir string, r *visual.Result, m *measure.Result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return cannot(err)
	}
	for _, c := range measure.Charts(r.Times, columns(r, m)) {
		if err := atomicfile.WriteFile(filepath.Join(dir, c.Name+".svg"), c.SVG(), 0o644); err != nil {
			return cannot(err)
		}
		if err := writePicture(filepath.Join(dir, c.Name+".png"), c.Image()); err != nil {
			return err
		}
	}
	return writePicture(filepath.Join(dir, "heat.png"), visual.HeatImage(r))
}

// printNumbers prints the rows of the groups' numbers, and what was noted.
func printNumbers(w io.Writer, numbers []measure.Number) {
	for _, n := range numbers {
		bounds := ""
		if n.Low != nil && n.High != nil {
			bounds = fmt.Sprintf("between %.1f and %.1f", *n.Low, *n.High)
		}
		name := n.Name
		if n.Region != "" {
			name = n.Region + ": " + name
		}
		digits := 1
		if n.Unit != "ms" && n.Unit != "frames" {
			digits = 2
		}
		fmt.Fprintf(w, "%s\t%.*f %s\t%s\n", name, digits, n.Value, n.Unit, bounds)
	}
}
