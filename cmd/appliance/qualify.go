package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"eidetic/capture/qualify"
)

// CaptureGroup groups what is done with sources. Recording is the default command.
type CaptureGroup struct {
	Film    CaptureCmd `cmd:"" default:"withargs" help:"Record a screen, losslessly." example:"appliance capture film --source x11::99 --out screen.reel --duration 10s"`
	Qualify QualifyCmd `cmd:"" help:"Find out what a grabber loses, delays and alters."`
}

// Help is shown by appliance capture --help, before that of film.
func (CaptureGroup) Help() string {
	return "Without a command of its own, appliance capture films: its flags are those of appliance capture film, below."
}

// QualifyCmd tests a grabber.
type QualifyCmd struct {
	sourceFlags
	Screen   string        `placeholder:"DISPLAY" help:"The X display that the grabber sees, where the test picture is shown (:0); default $$DISPLAY."`
	ShowRate float64       `placeholder:"RATE" help:"Pictures shown per second; default half the grabber's rate, so that each must be seen."`
	Duration time.Duration `default:"30s" help:"How long."`
	JSON     bool          `name:"json" help:"Print JSON."`
}

// Help is shown by appliance capture qualify --help.
func (QualifyCmd) Help() string {
	return `Connect the grabber to a screen of this machine, set that screen to the
grabber's size, and switch its blanking off. A picture with a number that
changes fills the screen; what the grabber delivers is compared with it.

Example:

  appliance capture qualify --source v4l2:/dev/video0 --screen :0

Exit status 1 when the grabber lost, tore or altered a picture.`
}

// Run shows, films and judges.
func (c *QualifyCmd) Run(ctx context.Context, std *streams) error {
	screen, err := qualify.OpenXScreen(c.Screen)
	if err != nil {
		return cannot(err)
	}
	defer screen.Close()
	src, err := c.open(ctx)
	if err != nil {
		return err
	}
	report, err := qualify.Run(ctx, src, screen, qualify.Options{Duration: c.Duration, Rate: c.ShowRate})
	if err != nil {
		return cannot(err)
	}
	if c.JSON {
		err = printJSON(std.out, report)
	} else {
		err = printQualification(std, report)
	}
	if err == nil && !report.Good {
		err = failed(fmt.Errorf("%s is not good enough: %s", c.Source, report.Problems[0]))
	}
	return err
}

// printQualification prints a grabber's qualification for people.
func printQualification(std *streams, r qualify.Report) error {
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "pictures\t%d shown, %d never arrived, %d frames torn or damaged, %d older than the one before\n", r.Shown,
		r.Missing, r.Torn, r.Back)
	fmt.Fprintf(w, "frames\t%d in %.1f s, %d lost, %d damaged; %d to %d a picture, %.1f expected\n",
		r.Capture.Frames, r.Capture.Elapsed, r.Capture.Lost, r.Capture.Corrupt, r.FewestFrames, r.MostFrames, r.ExpectedFrames)
	if n := r.Capture.MissedProven + r.Capture.MissedDrawn; n > 0 {
		fmt.Fprintf(w, "looks\t%d missed, %d of them with something drawn; changes are known to within %.1f ms\n", n,
			r.Capture.MissedDrawn, r.Capture.WorstBound)
	}
	fmt.Fprintf(w, "rate\t%.3f/s measured; interval p50 %.2f, p99 %.2f, longest %.2f ms; jitter %.2f ms; %d irregular timestamps\n",
		r.Capture.Rate, r.Capture.IntervalP50, r.Capture.IntervalP99, r.Capture.IntervalMax, r.Capture.Jitter, r.Capture.Irregular)
	fmt.Fprintf(w, "latency\t%.1f ms median, %.1f to %.1f, each known to within ± %.1f\n", r.LatencyMedian, r.LatencyMin, r.LatencyMax,
		r.LatencyBound/2)
	fmt.Fprintf(w, "pixels\t%s (%.3f %% differ, by up to %d levels; %d frames compared)\n", r.Fidelity.Words, r.Fidelity.Different,
		r.Fidelity.Worst, r.Fidelity.Compared)
	fmt.Fprintf(w, "noise\t%s; seen for certain is a change %s\n", r.Noise.Floor(), r.Noise.Sees())
	for _, e := range r.Events {
		fmt.Fprintf(w, "event\t%v\n", e)
	}
	if r.Good {
		fmt.Fprintln(w, "verdict\tgood: nothing lost, nothing altered")
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "problem\t%s\n", p)
	}
	return w.Flush()
}
