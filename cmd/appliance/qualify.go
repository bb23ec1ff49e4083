package main

import (
	"context"
	"fmt"
	"time"

	"eidetic/capture/qualify"
	"eidetic/internal/tell/terminal"
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
		err = failed(fmt.Errorf("%s is %s", c.Source, report.Verdict()))
	}
	return err
}

// printQualification prints a grabber's qualification for people.
func printQualification(std *streams, r qualify.Report) error {
	var rows [][]string
	for _, l := range r.Lines() {
		rows = append(rows, []string{l.Name, l.Text})
	}
	return terminal.Rows(std.out, rows)
}
