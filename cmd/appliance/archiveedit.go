package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// ArchiveRmCmd removes exchanges.
type ArchiveRmCmd struct {
	File string `arg:"" help:"The archive; it is replaced only when the new one is whole."`
	selection
	DryRun bool `help:"Say what would be removed, and leave the file."`
}

// Run rewrites the archive without them.
func (c *ArchiveRmCmd) Run(std *streams) error {
	if !c.named() {
		return usage(errors.New("say what to remove, with --url or --id"))
	}
	return rewrite(std, c.File, c.DryRun, "removed", func(e *lab.Exchange) bool { return !c.has(e) })
}

// rewrite keeps the exchanges that keep says, and tells of the others.
func rewrite(std *streams, path string, dry bool, verb string, keep func(*lab.Exchange) bool) error {
	a, err := readArchive(std, path)
	if err != nil {
		return err
	}
	var kept []*lab.Exchange
	gone := 0
	for _, e := range a.Exchanges() {
		if keep(e) {
			kept = append(kept, e)
			continue
		}
		gone++
		fmt.Fprintf(std.out, "%d %s %s\n", e.Order, e.Method, e.URL)
	}
	if gone == 0 {
		return usage(fmt.Errorf("%s: no exchange matches, so nothing is changed", path))
	}
	if dry {
		_, err = fmt.Fprintf(std.out, "%d of %d exchanges would be %s\n", gone, len(a.Exchanges()), verb)
		return err
	}
	if err := archive.Save(path, a.With(kept)); err != nil {
		return cannot(err)
	}
	_, err = fmt.Fprintf(std.out, "%d of %d exchanges %s\n", gone, len(a.Exchanges()), verb)
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
	Ignore    []string      `help:"Let this parameter, form field or JSON member mean nothing when requests to --url are matched; * stands for anything. Repeatable." placeholder:"NAME"`
}

// Run rewrites the archive.
func (c *ArchiveEditCmd) Run(std *streams) error {
	if !c.named() {
		return usage(errors.New("say what to edit, with --url or --id"))
	}
	if c.Status != 0 && (c.Status < 200 || c.Status > 599) {
		return usage(fmt.Errorf("--status %d is not a final status (200 … 599)", c.Status))
	}
	if c.FirstByte < 0 {
		return usage(fmt.Errorf("--first-byte %v is negative", c.FirstByte))
	}
	if c.unchanged() && len(c.Ignore) == 0 {
		return usage(errors.New("say what to change: --status, --set, --drop, --body, --first-byte or --ignore"))
	}
	if len(c.Ignore) > 0 {
		return c.rule(std)
	}
	var body []byte
	if c.Body != "" {
		var err error
		if body, err = os.ReadFile(c.Body); err != nil {
			return usage(err)
		}
	}
	a, err := readArchive(std, c.File)
	if err != nil {
		return err
	}
	list := make([]*lab.Exchange, 0, len(a.Exchanges()))
	changed := 0
	for _, e := range a.Exchanges() {
		if c.has(e) {
			changed++
			if e, err = c.edited(e, body); err != nil {
				return usage(err)
			}
			fmt.Fprintf(std.out, "%d %s %s\n", e.Order, e.Method, e.URL)
		}
		list = append(list, e)
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

// unchanged tells that no exchange is to be changed.
func (c *ArchiveEditCmd) unchanged() bool {
	return c.Status == 0 && len(c.Set)+len(c.Drop) == 0 && c.Body == "" && c.FirstByte == 0
}

// rule adds rules to the archive.
func (c *ArchiveEditCmd) rule(std *streams) error {
	if !c.unchanged() || len(c.ID) > 0 {
		return usage(errors.New("--ignore is about requests that are still to come: it goes with --url alone"))
	}
	a, err := readArchive(std, c.File)
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

// edited returns a changed copy.
func (c *ArchiveEditCmd) edited(old *lab.Exchange, body []byte) (*lab.Exchange, error) {
	e := *old
	drop := append([]string{}, c.Drop...)
	var add []lab.HeaderField
	for _, s := range c.Set {
		name, value, ok := strings.Cut(s, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t\r\n") {
			return nil, fmt.Errorf("--set %q is not of the form 'Name: value'", s)
		}
		drop = append(drop, name)
		add = append(add, lab.HeaderField{Name: name, Value: strings.TrimSpace(value)})
	}
	if c.Status != 0 {
		e.Status, e.Reason = c.Status, ""
	}
	if c.Body != "" {
		drop = append(drop, "Content-Encoding", "Content-Length", "ETag", "Content-MD5", "Digest")
		add = append(add, lab.HeaderField{Name: "Content-Length", Value: strconv.Itoa(len(body))})
		e.Response.Body, e.Truncated = body, ""
		e.Chunks = []lab.Chunk{{At: e.FirstByte, Bytes: len(body)}}
	}
	if c.FirstByte > 0 {
		delta := c.FirstByte - e.FirstByte
		e.FirstByte = c.FirstByte
		e.Chunks = append([]lab.Chunk{}, e.Chunks...)
		for i := range e.Chunks {
			e.Chunks[i].At = max(e.Chunks[i].At+delta, e.FirstByte)
		}
	}
	var fields []lab.HeaderField
	for _, f := range e.Response.Header {
		gone := false
		for _, name := range drop {
			gone = gone || strings.EqualFold(f.Name, name)
		}
		if !gone {
			fields = append(fields, f)
		}
	}
	e.Response.Header = append(fields, add...)
	return &e, nil
}

// ArchiveTrimCmd keeps a part.
type ArchiveTrimCmd struct {
	File string `arg:"" help:"The archive; it is replaced only when the new one is whole."`
	selection
	Used   []string      `help:"Keep what this replay log says was served. Repeatable." placeholder:"replay.jsonl"`
	Until  time.Duration `help:"Keep what was asked for in the first so long." placeholder:"30s"`
	DryRun bool          `help:"Say what would be dropped, and leave the file."`
}

// Run rewrites the archive with what is kept.
func (c *ArchiveTrimCmd) Run(std *streams) error {
	if !c.named() && len(c.Used) == 0 && c.Until <= 0 {
		return usage(errors.New("say what to keep, with --url, --id, --used or --until"))
	}
	used := map[string]bool{}
	for _, path := range c.Used {
		if err := readUsed(path, used); err != nil {
			return usage(err)
		}
	}
	return rewrite(std, c.File, c.DryRun, "dropped", func(e *lab.Exchange) bool {
		return (!c.named() || c.has(e)) && (len(c.Used) == 0 || used[e.ID]) && (c.Until <= 0 || e.Start <= c.Until)
	})
}

// readUsed collects the exchanges that a replay log names.
func readUsed(path string, used map[string]bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	for n := 1; ; n++ {
		var line lab.Served
		if err := d.Decode(&line); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		used[line.Exchange] = true
	}
}

// ArchiveMergeCmd joins recordings.
type ArchiveMergeCmd struct {
	Out string   `arg:"" help:"The new archive; it must not exist."`
	In  []string `arg:"" help:"The archives, in the order of their requests."`
}

// Run writes the new archive.
func (c *ArchiveMergeCmd) Run(std *streams) error {
	var list []*archive.Archive
	for _, path := range c.In {
		a, err := readArchive(std, path)
		if err != nil {
			return err
		}
		list = append(list, a)
	}
	return saveNew(std, c.Out, archive.Merge(list...))
}

// saveNew writes an archive where there is none.
func saveNew(std *streams, path string, a *archive.Archive) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return usage(fmt.Errorf("%s exists; choose another name or remove it", path))
	}
	if err := archive.Save(path, a); err != nil {
		return cannot(err)
	}
	_, err := fmt.Fprintf(std.out, "%s: %d exchanges\n", path, len(a.Exchanges()))
	return err
}
