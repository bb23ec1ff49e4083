package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/tabwriter"

	"eidetic/capture"
	"eidetic/capture/reel"
	"eidetic/capture/video"
	"eidetic/internal/lab"
	"eidetic/internal/tell/terminal"
)

// ReelCmd inspects screen recordings.
type ReelCmd struct {
	Info    ReelInfoCmd    `cmd:"" help:"Say what a reel holds." example:"appliance reel info trial.reel"`
	Verify  ReelVerifyCmd  `cmd:"" help:"Decode every frame and check every checksum. Exit status 1 when something is damaged." example:"appliance reel verify trial.reel"`
	Recover ReelRecoverCmd `cmd:"" help:"Save every whole frame of a reel that was cut off or damaged." example:"appliance reel recover cut.reel --out saved.reel"`
	Frames  ReelFramesCmd  `cmd:"" help:"List the frames: time, sequence number, what changed." example:"appliance reel frames --changed trial.reel"`
	Export  ReelExportCmd  `cmd:"" help:"Write a film, a picture or a filmstrip." example:"appliance reel export trial.reel --out film.webm"`
}

// ReelInfoCmd prints a summary.
type ReelInfoCmd struct {
	File string `arg:"" help:"The reel."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run prints what the reel holds.
func (c *ReelInfoCmd) Run(std *streams) error {
	r, err := openReel(c.File)
	if err != nil {
		return err
	}
	defer r.Close()
	info := r.Summary()
	if c.JSON {
		return printJSON(std.out, info)
	}
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	f := info.Format
	fmt.Fprintf(w, "picture\t%d × %d %s, %g frames/s\n", f.Width, f.Height, f.Pixels, f.Rate)
	fmt.Fprintf(w, "source\t%s\n", terminal.OneLine(info.Source))
	if info.NotLossless != "" {
		fmt.Fprintf(w, "not lossless\t%s\n", terminal.OneLine(info.NotLossless))
	}
	fmt.Fprintf(w, "started\t%s\n", info.Wall.Format("2006-01-02 15:04:05 MST"))
	fmt.Fprintf(w, "frames\t%d in %.3f s, %d of them changed something\n", info.Frames, info.Seconds, info.Changed)
	fmt.Fprintf(w, "lost\t%d\n", info.Lost)
	if info.Proven+info.LateLooks > 0 {
		fmt.Fprintf(w, "looks\t%d missed while nothing was drawn, so the picture is known; %d late, after something was drawn\n", info.Proven, info.LateLooks)
	}
	if info.Rate > 0 {
		fmt.Fprintf(w, "rate\t%s\n", capture.RateText(info.Rate, f.Rate))
	}
	fmt.Fprintf(w, "buffers\t%d damaged, %d of them short; %d irregular timestamps\n", info.Corrupt, info.Short, info.Irregular)
	if info.Ratio > 0 { // JPEGs are as large as they are
		fmt.Fprintf(w, "file\t%d bytes, 1/%.0f of the pixels\n", info.Bytes, info.Ratio)
	} else {
		fmt.Fprintf(w, "file\t%d bytes\n", info.Bytes)
	}
	for _, n := range r.Notes() {
		if n.Gap != nil {
			fmt.Fprintf(w, "gap\t%s\n", terminal.OneLine(n.String()))
		} else {
			fmt.Fprintf(w, "event\t%s\n", terminal.OneLine(n.String()))
		}
	}
	for _, d := range info.Recovered {
		fmt.Fprintf(w, "damage\t%s\n", terminal.OneLine(d.String()))
	}
	return w.Flush()
}

// ReelVerifyCmd checks a reel.
type ReelVerifyCmd struct {
	File string `arg:"" help:"The reel."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run checks every frame.
func (c *ReelVerifyCmd) Run(std *streams) error {
	report, err := reel.Verify(c.File)
	if err != nil {
		return badFile(err)
	}
	return printReport(std, c.JSON, c.File, report)
}

// printReport prints a report; damage is a failed check.
func printReport(std *streams, asJSON bool, file string, report reel.Report) error {
	if asJSON {
		if err := printJSON(std.out, report); err != nil {
			return err
		}
	} else {
		for _, d := range report.Damage {
			fmt.Fprintln(std.out, terminal.OneLine(d.String()))
		}
		fmt.Fprintf(std.out, "%d whole frames, %d lost while recording\n", report.Frames, report.Lost)
	}
	if !report.Good() {
		return failed(fmt.Errorf("%s is damaged in %d place(s)", file, len(report.Damage)))
	}
	return nil
}

// ReelRecoverCmd saves what can be read.
type ReelRecoverCmd struct {
	File string `arg:"" help:"The cut-off or damaged reel."`
	Out  string `required:"" help:"The new reel. It must not exist yet."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run writes the whole frames to a new reel.
func (c *ReelRecoverCmd) Run(std *streams) error {
	report, err := reel.Recover(c.File, c.Out)
	if err != nil {
		return badFile(err)
	}
	if c.JSON {
		return printJSON(std.out, report)
	}
	for _, d := range report.Damage {
		fmt.Fprintln(std.out, terminal.OneLine(d.String()))
	}
	_, err = fmt.Fprintf(std.out, "%d whole frames are in %s\n", report.Frames, c.Out)
	return err
}

// ReelFramesCmd lists frames.
type ReelFramesCmd struct {
	File    string `arg:"" help:"The reel."`
	Changed bool   `help:"Only frames that differ from the one before."`
	JSON    bool   `name:"json" help:"Print one JSON object a line."`
}

// reelFrame is one line of reel frames.
type reelFrame struct {
	Frame   int              `json:"frame"`
	Seq     uint64           `json:"seq"`
	TimeMS  float64          `json:"time_ms"` // since the first frame
	Within  float64          `json:"uncertainty_ms"`
	Flags   lab.FrameFlags   `json:"flags"`
	Sum     string           `json:"xxh3"`
	Changed []map[string]int `json:"changed"`
}

// Run lists the frames.
func (c *ReelFramesCmd) Run(std *streams) error {
	r, err := openReel(c.File)
	if err != nil {
		return err
	}
	defer r.Close()
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(w, "frame\tseq\ttime (ms)\twithin (ms)\tpixels\tchanged")
	}
	lines := json.NewEncoder(std.out)
	for i := range r.Len() {
		info := r.Info(i)
		if c.Changed && len(info.Changed) == 0 {
			continue
		}
		f := reelFrame{
			Frame: i, Seq: info.Seq, Flags: info.Flags, Sum: fmt.Sprintf("%016x", r.Sum(i)),
			TimeMS: info.Time.Sub(r.Info(0).Time).Seconds() * 1e3, Within: info.Uncertainty.Seconds() * 1e3,
			Changed: []map[string]int{},
		}
		var where []string
		for _, q := range info.Changed {
			f.Changed = append(f.Changed, map[string]int{"x": q.Min.X, "y": q.Min.Y, "w": q.Dx(), "h": q.Dy()})
			where = append(where, fmt.Sprintf("%dx%d+%d+%d", q.Dx(), q.Dy(), q.Min.X, q.Min.Y))
		}
		if c.JSON {
			if err := lines.Encode(f); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%d\t%d\t%.3f\t%.3f\t%s\t%s\n", i, f.Seq, f.TimeMS, f.Within, f.Sum, strings.Join(where, " "))
	}
	return w.Flush()
}

// openReel opens a reel that the command line names.
func openReel(path string) (*reel.Reader, error) {
	r, err := reel.Open(path)
	if err != nil {
		return nil, badFile(err)
	}
	return r, nil
}

// ofReel names a reel that is damaged, and what helps, where an error is of one of its frames.
func ofReel(err error) error {
	var damaged *reel.FrameError
	if !errors.As(err, &damaged) {
		return err
	}
	return usage(fmt.Errorf("%s is damaged: %w; appliance reel verify lists all damage, and appliance "+
		"reel recover saves the whole frames",
		damaged.File, damaged))
}

// badFile gives an error about a file that the command line names its exit status.
// A file that is missing, exists already or is not a reel means a wrong command line.
func badFile(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, video.ErrNoEncoder) || errors.Is(err, context.Canceled) {
		return cannot(err)
	}
	return usage(err)
}
