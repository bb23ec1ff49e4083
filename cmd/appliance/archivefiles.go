package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/tell/terminal"
	"eidetic/netlab/archive"
)

// maxRatio is what no compression exceeds by far.
const maxRatio = 1_000_000

// ArchiveImportCmd makes an archive of another tool's file.
type ArchiveImportCmd struct {
	Out string `arg:"" help:"The new archive; it must not exist."`
	In  string `arg:"" help:"A WARC (plain, gzip, zstd), WACZ, HAR 1.2 (also .har.gz), with the files beside it that Playwright makes (also .har.zip), an archive of Web Page Replay (.wprgo), or what a proxy saved: flows of mitmproxy, Fiddler's .saz, Charles' .chlsj."`

	partial
	Ratio int `placeholder:"N" help:"Read a file that takes up to N times its size of memory, if you trust where it comes from (without it 32 times, and 64 MB)."`
}

// Run writes the new archive.
func (c *ArchiveImportCmd) Run(std *streams) error {
	if c.Ratio < 0 || c.Ratio > maxRatio {
		return usage(fmt.Errorf("--ratio %d: a number from 1 to %d", c.Ratio, maxRatio))
	}
	a, err := readWith(archive.OpenWithFiles, std, c.In, archive.Limits{Ratio: c.Ratio})
	if err != nil {
		return err
	}
	made, err := a.Import()
	switch {
	case err != nil:
		return failed(fmt.Errorf("%s: %w", c.In, err))
	case a.Lost() > 0 && !c.Partial:
		return c.lost(c.In, a)
	}
	a = made
	return saveNew(std, c.Out, a)
}

// ArchiveExportCmd writes other formats.
type ArchiveExportCmd struct {
	File   string `arg:"" help:"The archive."`
	Out    string `required:"" help:"The new file; it must not exist." placeholder:"FILE"`
	Format string `enum:"auto,warc,har,wprgo,wacz" default:"auto" help:"warc, har, wprgo (Web Page Replay), wacz, or auto: by the file's name."`
	partial
}

// Run writes the file.
func (c *ArchiveExportCmd) Run(std *streams) error {
	format := c.Format
	if format == "auto" {
		switch name := strings.ToLower(filepath.Base(c.Out)); {
		case strings.HasSuffix(name, ".warc.gz"):
			format = "warc"
		case strings.HasSuffix(name, ".har"):
			format = "har"
		case strings.HasSuffix(name, ".wprgo"):
			format = "wprgo"
		case strings.HasSuffix(name, ".wacz"):
			format = "wacz"
		default:
			return usage(fmt.Errorf("%s ends in none of .warc.gz, .har, .wprgo, .wacz: say --format", c.Out))
		}
	}
	a, err := c.read(std, c.File, archive.Limits{})
	if err != nil {
		return err
	}
	if format == "wacz" {
		return saveNew(std, c.Out, a)
	}
	if err := isNew(c.Out); err != nil {
		return err
	}
	switch format {
	case "har":
		return c.write(std, a, archive.ExportHAR)
	case "wprgo":
		return c.write(std, a, archive.ExportWPR)
	}
	if err := archive.WriteWARC(c.Out, a); err != nil {
		return cannot(err)
	}
	_, err = fmt.Fprintf(std.out, "%s: %d exchanges\n", c.Out, len(a.Exchanges()))
	return err
}

// write writes the file, unless other readers would lack something of it.
func (c *ArchiveExportCmd) write(std *streams, a *archive.Archive, export func(io.Writer, *archive.Archive) ([]string, error)) error {
	f, err := atomicfile.Output(c.Out)
	if err != nil {
		return cannot(err)
	}
	defer f.Discard()
	lost, err := export(f, a)
	if err := errors.Join(err, f.Chmod(0o644)); err != nil {
		return cannot(err)
	}
	for _, line := range lost {
		fmt.Fprintf(std.err, "appliance: %s: %s\n", c.Out, terminal.OneLine(line))
	}
	if len(lost) > 0 && !c.Partial {
		return failed(fmt.Errorf("%s: %d exchanges, bodies or messages cannot be written (above): nothing is written; --partial goes on without them", c.File, len(lost)))
	}
	if err := f.Commit(); err != nil {
		return cannot(err)
	}
	_, err = fmt.Fprintf(std.out, "%s: %d exchanges\n", c.Out, len(a.Exchanges()))
	return err
}
