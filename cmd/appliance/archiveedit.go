package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/tell/terminal"
	"eidetic/netlab/archive"
)

// ArchiveRmCmd removes exchanges.
type ArchiveRmCmd struct {
	File string `arg:"" help:"The archive; it is replaced only when the new one is whole."`
	selection
	partial
	DryRun bool `help:"Say what would be removed, and leave the file."`
}

// Run rewrites the archive without them.
func (c *ArchiveRmCmd) Run(std *streams) error {
	if c.chosen().Empty() {
		return usage(errors.New("say what to remove, with --url or --id"))
	}
	return rewrite(std, c.partial, c.File, c.DryRun, "removed", nil, func(e *lab.Exchange) bool { return !c.chosen().Has(e) })
}

// dropped is what becomes of what a trimmed archive lacks. That it lacks nothing is no mistake: a script trims whatever
// it has recorded.
const dropped = "dropped"

// rewrite keeps the exchanges of these pages, or of all, for which keep is true, and prints the others.
func rewrite(std *streams, may partial, path string, dry bool, verb string, pages []string, keep func(*lab.Exchange) bool) error {
	a, err := may.read(std, path, archive.Limits{})
	if err != nil {
		return err
	}
	ofPages := func(*lab.Exchange) bool { return true }
	if len(pages) > 0 {
		if ofPages, err = a.OfPages(pages); err != nil {
			return usage(fmt.Errorf("%s: %w", path, err))
		}
	}
	kept, others := a.Split(func(e *lab.Exchange) bool { return ofPages(e) && keep(e) })
	if len(others) == 0 && verb == dropped {
		_, err = fmt.Fprintf(std.out, "All %d exchanges of %s are kept: there is nothing to drop.\n", len(kept), path)
		return err
	}
	if len(others) == 0 {
		return usage(fmt.Errorf("%s: no exchange matches, so nothing is changed", path))
	}
	for _, e := range others {
		fmt.Fprintf(std.out, "%d %s %s\n", e.Order, terminal.OneLine(e.Method), terminal.OneLine(e.URL))
	}
	if dry {
		_, err = fmt.Fprintf(std.out, "%d of %d exchanges would be %s\n", len(others), len(a.Exchanges()), verb)
		return err
	}
	if err := archive.Save(path, a.With(kept).WithPages(pages)); err != nil {
		return cannot(err)
	}
	_, err = fmt.Fprintf(std.out, "%d of %d exchanges %s\n", len(others), len(a.Exchanges()), verb)
	return err
}

// ArchiveEditCmd changes answers.
type ArchiveEditCmd struct {
	File string `arg:"" help:"The archive; it is replaced only when the new one is whole."`
	selection
	Status    int           `help:"Set the status." placeholder:"N"`
	Set       []string      `help:"Set a response header field. Repeatable." placeholder:"'Name: value'"`
	Drop      []string      `help:"Drop a response header field. Repeatable." placeholder:"NAME"`
	Body      string        `help:"Put this file's bytes in place of the body; its content coding is dropped." placeholder:"FILE"`
	FirstByte time.Duration `help:"Set the time to first byte; later pieces move along." placeholder:"20ms"`
	Ignore    []string      `help:"Ignore this parameter, form field, JSON member or segment of the path (/2) when requests to --url are matched; * stands for anything. Repeatable." placeholder:"NAME"`
	partial
}

// Run rewrites the archive.
func (c *ArchiveEditCmd) Run(std *streams) error {
	if c.chosen().Empty() {
		return usage(errors.New("say what to edit, with --url or --id"))
	}
	edit := archive.Edit{Status: c.Status, Set: c.Set, Drop: c.Drop, FirstByte: c.FirstByte}
	if c.Body != "" {
		const most = 1 << 30 // as of any body
		body, err := readNamed(c.Body, most)
		if err != nil {
			return usage(fmt.Errorf("--body: %w", err))
		}
		edit.Body = append([]byte{}, body...) // an empty file is an empty body
	}
	if err := edit.Validate(); err != nil {
		return usage(err)
	}
	switch {
	case edit.Empty() && len(c.Ignore) == 0:
		return usage(errors.New("say what to change: --status, --set, --drop, --body, --first-byte or --ignore"))
	case len(c.Ignore) == 0:
		return c.edit(std, edit)
	case !edit.Empty() || len(c.ID) > 0:
		return usage(errors.New("--ignore is about requests that are still to come: it goes with --url alone"))
	}
	return c.addRules(std)
}

// edit changes the exchanges that are chosen.
func (c *ArchiveEditCmd) edit(std *streams, edit archive.Edit) error {
	a, err := c.read(std, c.File, archive.Limits{})
	if err != nil {
		return err
	}
	list := slices.Clone(a.Exchanges())
	changed := 0
	for i, e := range list {
		if !c.chosen().Has(e) {
			continue
		}
		changed++
		if list[i], err = edit.Apply(e); err != nil {
			return usage(err)
		}
		fmt.Fprintf(std.out, "%d %s %s\n", e.Order, terminal.OneLine(e.Method), terminal.OneLine(e.URL))
	}
	if changed == 0 {
		return usage(fmt.Errorf("%s: no exchange matches, so nothing is changed", c.File))
	}
	if err := archive.Save(c.File, a.With(list)); err != nil {
		return cannot(err)
	}
	_, err = fmt.Fprintf(std.out, "%d of %d exchanges edited\n", changed, len(list))
	return err
}

// addRules adds matching rules to the archive.
func (c *ArchiveEditCmd) addRules(std *streams) error {
	a, err := c.read(std, c.File, archive.Limits{})
	if err != nil {
		return err
	}
	rules := slices.Clone(a.Options().Rules)
	for _, url := range c.URL {
		r := archive.Rule{URL: url, Ignore: c.Ignore}
		if err := r.Validate(); err != nil {
			return usage(err)
		}
		rules = append(rules, r)
	}
	if err := archive.Save(c.File, a.WithRules(rules)); err != nil {
		return cannot(err)
	}
	_, err = fmt.Fprintf(std.out, "%d matching rules\n", len(rules))
	return err
}

// ArchiveTrimCmd keeps a part.
type ArchiveTrimCmd struct {
	File string `arg:"" help:"The archive; it is replaced only when the new one is whole."`
	selection
	Used  []string      `help:"Keep what this replay log says was served. Repeatable." placeholder:"replay.jsonl"`
	Page  []string      `help:"Keep the requests of this page of the recording: from its document to that of the next page. Repeatable." placeholder:"URL"`
	Until time.Duration `help:"Keep what was requested in the first TIME of the recording." placeholder:"30s"`
	partial
	DryRun bool `help:"Say what would be dropped, and leave the file."`
}

// Run rewrites the archive with what is kept.
func (c *ArchiveTrimCmd) Run(std *streams) error {
	if c.chosen().Empty() && len(c.Used)+len(c.Page) == 0 && c.Until <= 0 {
		return usage(errors.New("say what to keep, with --url, --id, --page, --used or --until"))
	}
	used := map[string]bool{}
	for _, path := range c.Used {
		if err := archive.ReadServed(path, used); err != nil {
			return usage(err)
		}
	}
	return rewrite(std, c.partial, c.File, c.DryRun, dropped, c.Page, func(e *lab.Exchange) bool {
		return (c.chosen().Empty() || c.chosen().Has(e)) && (len(c.Used) == 0 || used[e.ID]) && (c.Until <= 0 || e.Start <= c.Until)
	})
}

// ArchiveMergeCmd joins recordings.
type ArchiveMergeCmd struct {
	Out string   `arg:"" help:"The new archive; it must not exist."`
	In  []string `arg:"" help:"The archives, in the order of their requests."`
	partial
}

// Run writes the new archive.
func (c *ArchiveMergeCmd) Run(std *streams) error {
	var list []*archive.Archive
	for _, path := range c.In {
		a, err := c.read(std, path, archive.Limits{})
		if err != nil {
			return err
		}
		list = append(list, a)
	}
	return saveNew(std, c.Out, archive.Merge(list...))
}

// isNew returns an error if there is a file of a name.
func isNew(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return usage(fmt.Errorf("%s exists; choose another name or remove it", path))
	}
	return nil
}

// saveNew writes an archive where there is none.
func saveNew(std *streams, path string, a *archive.Archive) error {
	if err := isNew(path); err != nil {
		return err
	}
	if err := archive.Save(path, a); err != nil {
		return cannot(err)
	}
	_, err := fmt.Fprintf(std.out, "%s: %d exchanges\n", path, len(a.Exchanges()))
	return err
}
