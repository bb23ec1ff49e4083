package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/base/atomicfile"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/export"
	"eidetic/internal/tell/terminal"
)

// ExportCmd writes a run in a format of other programs.
type ExportCmd struct {
	boxFlags
	Source  string `arg:"" name:"run" help:"The run: its folder, run.json or report.json, or the ID of a run on a box."`
	Format  string `required:"" placeholder:"NAME" help:"The format, see above."`
	Trial   int    `placeholder:"N" help:"With trace, har, spans and memory: this trial alone; without it all."`
	Report  string `placeholder:"URL" help:"Address of the run's report, for a link to it; of a run on a box the box's own."`
	Picture string `placeholder:"FILE" help:"With markdown: put the picture of both arms into this PNG, and show it."`
	Link    string `placeholder:"URL" help:"With --picture: the picture's address in the summary; without it FILE, as it was given."`

	Addresses bool `help:"Of a run in files: keep users, queries and fragments of addresses, and what a journey types, which may be secrets and are removed without it."`
}

// Help lists the formats.
func (ExportCmd) Help() string {
	var b strings.Builder
	b.WriteString("Writes what a run found to standard output, in a format that other programs read:\n\n")
	for _, f := range export.Formats() {
		fmt.Fprintf(&b, "  %-10s  %s\n", f.Name, f.Says)
	}
	b.WriteString(`
The status is 0 when the document was written, whatever the run found. It is 2 when the command line or the file is wrong, and 3 when the
box does not answer, or the run lacks what the format needs.

Examples:
  appliance export --format junit out/checkout > junit.xml
  appliance export --format markdown out/checkout --picture out/checkout.png > summary.md
  appliance export --format trace --trial 3 out/checkout > trial3.json
  appliance export --format csv --box https://box.local:8080 20261122-091400-checkout > checkout.csv`)
	return b.String()
}

// Validate checks what kong cannot.
func (c *ExportCmd) Validate() error {
	if _, err := export.Find(c.Format); err != nil {
		return err
	}
	if c.Trial < 0 || c.Trial > 0 && c.Format != "trace" && c.Format != "har" && c.Format != "spans" && c.Format != "memory" {
		return errors.New("--trial names a trial, with --format trace, har, spans or memory")
	}
	if c.Picture != "" && c.Format != "markdown" {
		return errors.New("--picture goes with --format markdown; the picture alone is --format picture")
	}
	if c.Link != "" && c.Picture == "" {
		return errors.New("--link says where the picture is that --picture makes")
	}
	return nil
}

// Run writes the document, as a whole or not at all.
func (c *ExportCmd) Run(ctx context.Context, std *streams) error {
	format, err := export.Find(c.Format)
	if err != nil {
		return usage(err)
	}
	_, err = os.Stat(c.Source)
	switch {
	case err == nil:
		return c.local(std, format)
	case errors.Is(err, fs.ErrNotExist) && store.ValidID(c.Source):
		named := c.named()
		if c.Addresses {
			return usage(errors.New("--addresses is for a run in files here: appliance run --out, or its run.json, brings one"))
		}
		if err := c.check(); err != nil {
			return usage(err)
		}
		if !named {
			return usage(fmt.Errorf("%s: there is no such file or folder; for a run on a box name the box with --box", terminal.Visible(c.Source)))
		}
		return c.remote(ctx, std, format)
	}
	return usage(err)
}

// link is where the picture is found.
func (c *ExportCmd) link() string {
	if c.Picture == "" || c.Link != "" {
		return c.Link
	}
	return filepath.ToSlash(c.Picture)
}

// local exports a run that is in files here.
func (c *ExportCmd) local(std *streams, format export.Format) error {
	run, files, err := openRun(c.Source)
	if err != nil {
		return usage(err)
	}
	if files != nil {
		defer files.Close()
	}
	source := &export.Source{Run: run, Files: files, Report: c.Report, Picture: c.link(), Trial: c.Trial, Addresses: c.Addresses}
	var text bytes.Buffer
	if c.Picture != "" {
		picture, err := export.Find("picture")
		if err == nil {
			err = picture.WriteTo(&text, source)
		}
		if err == nil {
			err = atomicfile.WriteOutput(c.Picture, text.Bytes(), 0o644)
		}
		if err != nil {
			return cannot(err)
		}
		text.Reset()
	}
	if err := format.WriteTo(&text, source); err != nil {
		return cannot(err)
	}
	return writeOut(std.out, text.Bytes())
}

// openRun reads a run from its folder, or from one of its files.
func openRun(path string) (run *lab.Run, files *os.Root, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		run, err = openResult(path)
		return run, nil, err
	}
	if run, err = openResult(path); err != nil {
		return nil, nil, err
	}
	// What appliance run --out leaves at its top is a copy; the run itself is below.
	if below := filepath.Join(path, "runs", run.ID); store.ValidID(run.ID) {
		if info, err := os.Stat(below); err == nil && info.IsDir() {
			path = below
		}
	}
	files, err = os.OpenRoot(path)
	return run, files, err
}

// remote has the box export one of its runs.
func (c *ExportCmd) remote(ctx context.Context, std *streams, format export.Format) error {
	box, err := c.client(std, 0)
	if err != nil {
		return err
	}
	defer box.Close()
	if c.Picture != "" {
		picture, err := box.Export(ctx, c.Source, client.Export{Format: "picture"})
		if err != nil {
			return boxError(err)
		}
		if err := atomicfile.WriteOutput(c.Picture, picture, 0o644); err != nil {
			return cannot(err)
		}
	}
	text, err := box.Export(ctx, c.Source, client.Export{
		Format: format.Name, Report: cmp.Or(c.Report, box.ReportURL(c.Source)), Picture: c.link(), Trial: c.Trial,
	})
	if err != nil {
		return boxError(err)
	}
	return writeOut(std.out, text)
}

func writeOut(w io.Writer, text []byte) error {
	if _, err := w.Write(text); err != nil {
		return cannot(err)
	}
	return nil
}
