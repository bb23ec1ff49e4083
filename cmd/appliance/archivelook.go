package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"eidetic/internal/lab"
	"eidetic/internal/tell/terminal"
	"eidetic/netlab/archive"
)

// ArchiveLsCmd lists exchanges.
type ArchiveLsCmd struct {
	File string `arg:"" help:"The archive."`
	selection
	JSON bool `name:"json" help:"Print JSON, one array."`
}

// Run prints the list.
func (c *ArchiveLsCmd) Run(std *streams) error {
	a, err := readArchive(std, c.File)
	if err != nil {
		return err
	}
	list := []archive.Entry{}
	for _, e := range a.Exchanges() {
		if c.chosen().Empty() || c.chosen().Has(e) {
			list = append(list, archive.EntryOf(e))
		}
	}
	if c.JSON {
		return printJSON(std.out, list)
	}
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "#\tstart ms\tfirst byte\tend\tstatus\tbytes\tprotocol\t method URL")
	for _, l := range list {
		note := ""
		if l.Truncated != "" {
			note = " (cut off: " + l.Truncated + ")"
		}
		fmt.Fprintf(w, "%d\t%.0f\t%.1f\t%.1f\t%d\t%d\t%s\t %s %s%s\n", l.Order, l.Start, l.FirstByte, l.End, l.Status, l.Bytes,
			terminal.OneLine(l.Protocol), terminal.OneLine(l.Method), terminal.OneLine(l.URL), terminal.OneLine(note))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "%d of %d exchanges, %d hosts, %d DNS answers\n", len(list), len(a.Exchanges()), len(a.Info().Hosts),
		len(a.DNS()))
	return err
}

// ArchiveCatCmd prints one exchange.
type ArchiveCatCmd struct {
	File    string `arg:"" help:"The archive."`
	ID      string `arg:"" name:"exchange" help:"Its number in ls, or the end of its ID, or a URL pattern."`
	Headers bool   `help:"Print the request's and the response's head instead."`
	Request bool   `help:"The request's body instead of the response's."`
	Raw     bool   `help:"As on the wire, with its content coding."`
}

// Run prints the body.
func (c *ArchiveCatCmd) Run(std *streams) error {
	a, err := readArchive(std, c.File)
	if err != nil {
		return err
	}
	e, err := a.Find(c.ID)
	if err != nil {
		return usage(fmt.Errorf("%s: %w", c.File, err))
	}
	if c.Headers {
		return printHeads(std.out, e)
	}
	m := &e.Response
	if c.Request {
		m = &e.Request
	}
	body := m.Body
	if !c.Raw {
		if body, err = archive.Decoded(m); err != nil {
			return failed(fmt.Errorf("%s: %w; --raw prints it as it is", e.URL, err))
		}
	}
	_, err = std.out.Write(body)
	return err
}

func printHeads(w io.Writer, e *lab.Exchange) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", terminal.OneLine(e.Method), terminal.OneLine(e.URL))
	for _, f := range e.Request.Header {
		fmt.Fprintf(&b, "%s: %s\n", terminal.OneLine(f.Name), terminal.OneLine(f.Value))
	}
	fmt.Fprintf(&b, "\n%s %d %s\n", terminal.OneLine(e.Protocol), e.Status, terminal.OneLine(e.Reason))
	for _, f := range e.Response.Header {
		fmt.Fprintf(&b, "%s: %s\n", terminal.OneLine(f.Name), terminal.OneLine(f.Value))
	}
	for _, f := range e.Response.Trailer {
		fmt.Fprintf(&b, "(trailer) %s: %s\n", terminal.OneLine(f.Name), terminal.OneLine(f.Value))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ArchiveVerifyCmd judges a recording.
type ArchiveVerifyCmd struct {
	File     string  `arg:"" help:"The archive."`
	MinScore float64 `default:"0.95" help:"The least score that is good (${default}): how much of what the page showed is there, 0 to 1."`
	JSON     bool    `name:"json" help:"Print JSON."`
}

// Validate checks what kong cannot.
func (c *ArchiveVerifyCmd) Validate() error { return checkScore(c.MinScore) }

// checkScore refuses what no score can be compared with: NaN would pass every recording.
func checkScore(least float64) error {
	if !(least >= 0 && least <= 1) {
		return fmt.Errorf("--min-score %v: from 0 to 1", least)
	}
	return nil
}

// Run prints what is wrong.
func (c *ArchiveVerifyCmd) Run(std *streams) error {
	a, err := archive.Open(c.File)
	if err != nil {
		return usage(err)
	}
	q := archive.Assess(a)
	if c.JSON {
		err = printJSON(std.out, struct {
			lab.ArchiveInfo
			archive.Quality
		}{a.Info(), q})
	} else {
		err = printQuality(std.out, a, q)
	}
	if err != nil {
		return err
	}
	if err := q.Unfit(c.MinScore); err != nil {
		return failed(fmt.Errorf("%s %w", c.File, err))
	}
	return nil
}

func printQuality(w io.Writer, a *archive.Archive, q archive.Quality) error {
	var b strings.Builder
	for _, p := range q.Problems {
		mark := "note"
		if p.Grave {
			mark = "FAIL"
		}
		fmt.Fprintf(&b, "%s  %-13s  %s  %s\n", mark, p.Kind, terminal.OneLine(p.URL), terminal.OneLine(p.What))
	}
	if len(q.Parts) > 0 {
		table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "part of the score\tweight\tcount\tlost\tfor example")
		for _, p := range q.Parts {
			fmt.Fprintf(table, "%s\t%g\t%d\t%d\t%s\n", p.Name, p.Weight, p.Count, p.Lost, terminal.OneLine(strings.Join(p.Examples, " ")))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	info := a.Info()
	fmt.Fprintf(&b, "score %.3f: %d exchanges, %d bytes of bodies, %d problems, sha256 %s\n", q.Score, info.Exchanges, info.BodyBytes,
		len(q.Problems), info.SHA256)
	_, err := io.WriteString(w, b.String())
	return err
}
