package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// ArchiveCmd looks into recordings of the network and changes them.
type ArchiveCmd struct {
	Ls     ArchiveLsCmd     `cmd:"" help:"List the exchanges. Example: appliance archive ls --url '*.js' shop.wacz"`
	Cat    ArchiveCatCmd    `cmd:"" help:"Print one body, decoded, or the headers. Example: appliance archive cat shop.wacz 12 --headers"`
	Verify ArchiveVerifyCmd `cmd:"" help:"Check hashes and judge the recording's quality. Exit status 1 when it is unfit. Example: appliance archive verify shop.wacz"`
	Rm     ArchiveRmCmd     `cmd:"" help:"Remove exchanges. Example: appliance archive rm shop.wacz --url '*://ads.example/*'"`
	Edit   ArchiveEditCmd   `cmd:"" help:"Change answers: status, header fields, body, delay. Example: appliance archive edit shop.wacz --url '*/hero.jpg' --first-byte 2s"`
	Trim   ArchiveTrimCmd   `cmd:"" help:"Keep only what is asked for or was used. Example: appliance archive trim shop.wacz --used trials/001/replay.jsonl"`
	Merge  ArchiveMergeCmd  `cmd:"" help:"Join recordings into a new one. Example: appliance archive merge all.wacz a.wacz b.wacz"`
	Import ArchiveImportCmd `cmd:"" help:"Make an archive from a WARC, a WACZ, a HAR or a cut-off recording. Example: appliance archive import shop.wacz shop.har"`
	Export ArchiveExportCmd `cmd:"" help:"Write a WARC, a HAR or a WACZ. Example: appliance archive export shop.wacz --out shop.har"`
}

// selection chooses exchanges.
type selection struct {
	URL []string `name:"url" help:"Exchanges whose URL has this text, or matches it if it has a *. Repeatable." placeholder:"PATTERN"`
	ID  []string `name:"id" help:"The exchange with this number, or whose ID ends so. Repeatable." placeholder:"N|ID"`
}

// named tells whether anything was chosen.
func (s selection) named() bool { return len(s.URL)+len(s.ID) > 0 }

// has tells whether e is chosen.
func (s selection) has(e *lab.Exchange) bool {
	for _, p := range s.URL {
		if matchURL(p, e.URL) {
			return true
		}
	}
	for _, id := range s.ID {
		if id == strconv.Itoa(e.Order) || len(id) >= 4 && strings.HasSuffix(e.ID, id) {
			return true
		}
	}
	return false
}

// matchURL matches a pattern in which * stands for anything; without one the
// text may stand anywhere.
func matchURL(pattern, url string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return strings.Contains(url, pattern)
	}
	last := parts[len(parts)-1]
	rest, ok := strings.CutPrefix(url, parts[0])
	if !ok || len(rest) < len(last) || !strings.HasSuffix(rest, last) {
		return false
	}
	rest = rest[:len(rest)-len(last)]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, p)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return true
}

// readArchive reads a recording for a command; warnings go to the person.
func readArchive(std *streams, path string) (*archive.Archive, error) {
	a, err := archive.Open(path)
	if err != nil {
		return nil, usage(err)
	}
	for _, w := range a.Warnings() {
		fmt.Fprintf(std.err, "appliance: %s: %s\n", path, w)
	}
	return a, nil
}

// ArchiveLsCmd lists exchanges.
type ArchiveLsCmd struct {
	File string `arg:"" help:"The archive."`
	selection
	JSON bool `name:"json" help:"Print JSON, one array."`
}

// listed is what ls prints of an exchange.
type listed struct {
	Order     int     `json:"order"`
	ID        string  `json:"id"`
	Method    string  `json:"method"`
	URL       string  `json:"url"`
	Status    int     `json:"status"`
	Protocol  string  `json:"protocol"`
	Server    string  `json:"server,omitempty"`
	Type      string  `json:"type"`
	Bytes     int     `json:"bytes"` // of the body on the wire
	Start     float64 `json:"start_ms"`
	FirstByte float64 `json:"first_byte_ms"`
	End       float64 `json:"end_ms"` // since the request
	Chunks    int     `json:"chunks"`
	Truncated string  `json:"truncated,omitempty"`
}

func listedOf(e *lab.Exchange) listed {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	kind, _, _ := strings.Cut(e.Response.Get("Content-Type"), ";")
	l := listed{
		Order: e.Order, ID: e.ID, Method: e.Method, URL: e.URL, Status: e.Status, Protocol: e.Protocol, Type: kind,
		Bytes: len(e.Response.Body), Start: ms(e.Start), FirstByte: ms(e.FirstByte), End: ms(e.FirstByte), Chunks: len(e.Chunks), Truncated: e.Truncated,
	}
	if n := len(e.Chunks); n > 0 {
		l.End = ms(e.Chunks[n-1].At)
	}
	if e.Server.IsValid() {
		l.Server = e.Server.String()
	}
	return l
}

// Run prints the list.
func (c *ArchiveLsCmd) Run(std *streams) error {
	a, err := readArchive(std, c.File)
	if err != nil {
		return err
	}
	list := []listed{}
	for _, e := range a.Exchanges() {
		if !c.named() || c.has(e) {
			list = append(list, listedOf(e))
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
		fmt.Fprintf(w, "%d\t%.0f\t%.1f\t%.1f\t%d\t%d\t%s\t %s %s%s\n", l.Order, l.Start, l.FirstByte, l.End, l.Status, l.Bytes, l.Protocol, l.Method, l.URL, note)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "%d of %d exchanges, %d hosts, %d DNS answers\n", len(list), len(a.Exchanges()), len(a.Info().Hosts), len(a.DNS()))
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
	e, err := one(a, c.ID)
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

// one finds the exchange that a person means.
func one(a *archive.Archive, id string) (*lab.Exchange, error) {
	var found []*lab.Exchange
	for _, e := range a.Exchanges() {
		if (selection{ID: []string{id}}).has(e) {
			return e, nil
		}
		if matchURL(id, e.URL) {
			found = append(found, e)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, fmt.Errorf("no exchange is %q; appliance archive ls lists them", id)
	}
	return nil, fmt.Errorf("%d exchanges match %q, such as %d and %d: name one by its number", len(found), id, found[0].Order, found[1].Order)
}

func printHeads(w io.Writer, e *lab.Exchange) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", e.Method, e.URL)
	for _, f := range e.Request.Header {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	fmt.Fprintf(&b, "\n%s %d %s\n", e.Protocol, e.Status, e.Reason)
	for _, f := range e.Response.Header {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	for _, f := range e.Response.Trailer {
		fmt.Fprintf(&b, "(trailer) %s: %s\n", f.Name, f.Value)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ArchiveVerifyCmd judges a recording.
type ArchiveVerifyCmd struct {
	File     string  `arg:"" help:"The archive."`
	MinScore float64 `default:"0.95" help:"The least score that is good (${default})."`
	JSON     bool    `name:"json" help:"Print JSON."`
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
	for _, p := range q.Problems {
		if p.Grave {
			return failed(fmt.Errorf("%s is unfit: %s", c.File, p.What))
		}
	}
	if q.Score < c.MinScore {
		return failed(fmt.Errorf("%s has the score %.3f, below %g", c.File, q.Score, c.MinScore))
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
		fmt.Fprintf(&b, "%s  %-13s  %s  %s\n", mark, p.Kind, p.URL, p.What)
	}
	info := a.Info()
	fmt.Fprintf(&b, "score %.3f: %d exchanges, %d bytes of bodies, %d problems, sha256 %s\n", q.Score, info.Exchanges, info.BodyBytes, len(q.Problems), info.SHA256)
	_, err := io.WriteString(w, b.String())
	return err
}

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
	if c.Status == 0 && len(c.Set)+len(c.Drop) == 0 && c.Body == "" && c.FirstByte == 0 {
		return usage(errors.New("say what to change: --status, --set, --drop, --body or --first-byte"))
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

// ArchiveImportCmd makes an archive of another tool's file.
type ArchiveImportCmd struct {
	Out string `arg:"" help:"The new archive; it must not exist."`
	In  string `arg:"" help:"A WARC (plain, gzip, zstd), WACZ or HAR 1.2."`
}

// Run writes the new archive.
func (c *ArchiveImportCmd) Run(std *streams) error {
	a, err := readArchive(std, c.In)
	if err != nil {
		return err
	}
	if len(a.Exchanges()) == 0 {
		return failed(fmt.Errorf("%s has no exchange that can be replayed", c.In))
	}
	return saveNew(std, c.Out, a)
}

// ArchiveExportCmd writes other formats.
type ArchiveExportCmd struct {
	File   string `arg:"" help:"The archive."`
	Out    string `required:"" help:"The new file; it must not exist." placeholder:"FILE"`
	Format string `enum:"auto,warc,har,wacz" default:"auto" help:"warc, har, wacz, or auto: by the file's name."`
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
		case strings.HasSuffix(name, ".wacz"):
			format = "wacz"
		default:
			return usage(fmt.Errorf("%s ends in none of .warc.gz, .har, .wacz: say --format", c.Out))
		}
	}
	a, err := readArchive(std, c.File)
	if err != nil {
		return err
	}
	if format == "wacz" {
		return saveNew(std, c.Out, a)
	}
	if _, err := os.Lstat(c.Out); !errors.Is(err, fs.ErrNotExist) {
		return usage(fmt.Errorf("%s exists; choose another name or remove it", c.Out))
	}
	if format == "warc" {
		err = archive.WriteWARC(c.Out, a)
	} else {
		err = exportHAR(c.Out, a)
	}
	if err != nil {
		return cannot(err)
	}
	_, err = fmt.Fprintf(std.out, "%s: %d exchanges\n", c.Out, len(a.Exchanges()))
	return err
}

func exportHAR(path string, a *archive.Archive) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := errors.Join(archive.WriteHAR(f, a), f.Close()); err != nil {
		_ = os.Remove(path)
		return err
	}
	return nil
}
