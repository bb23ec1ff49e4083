package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/streamline"
	"eidetic/internal/tell/terminal"
	"eidetic/internal/web/panel"
)

// AnnotateCmd puts notes onto a run's timeline.
type AnnotateCmd struct {
	boxFlags
	Text   string   `arg:"" optional:"" help:"The note; without it the group's note before ends."`
	To     string   `name:"run" placeholder:"RUN" help:"The run, while it is in progress: its folder, such as out/latest, that of --out, whose newest run is meant, or with --box its ID."`
	Group  string   `placeholder:"NAME" help:"The note's row on the timeline; without it, how it came."`
	Colour string   `placeholder:"#RRGGBB" help:"Its colour."`
	Mark   bool     `xor:"op" help:"An instant instead of an interval."`
	Begin  bool     `xor:"op" help:"Begin an interval, which --end with the same text ends; such intervals may be nested."`
	End    bool     `xor:"op" help:"End the newest interval of that text; without a text, of any."`
	Pause  bool     `xor:"op" help:"Pause the newest such interval until --resume: the time in between does not count."`
	Resume bool     `xor:"op" help:"Let a paused interval go on."`
	FIFO   []string `name:"fifo" type:"path" placeholder:"FILE" help:"Take notes from a named pipe, which is made, until Ctrl-C: in the byte format of ARM's Streamline, or from --code's functions. May be repeated: plain programs need a pipe each, as a pipe does not say who wrote."`
	Socket string   `type:"path" placeholder:"FILE" help:"Take them from a Unix socket, which is made, in the same formats; each connection is a row of its own, named by its process."`
	Listen string   `placeholder:"ADDR" help:"Take them on a TCP port, such as :8088, in the same formats; each connection is a row of its own. Whoever reaches the port can annotate."`
	logFlags
	OTLP string `name:"otlp" type:"existingfile" placeholder:"FILE" help:"Put the spans of a back end onto the requests that they served, also after the run: a file of OpenTelemetry's protocol, JSON or protobuf. The requests are those that were recorded with a traceparent (record --traceparent, or the page's own)."`
	Code string `enum:",c,sh" default:"" placeholder:"LANGUAGE" help:"Print the functions by which programs in C (c) or shell scripts (sh) annotate through --fifo and --socket; nothing else is done."`
}

// Help shows the command at work.
func (AnnotateCmd) Help() string {
	return `A note is an interval on the timeline of the trial during which it arrives; the next note of its group ends it, and so does one without
a text. In pages, window.Gator.annotate(text, colour) and lab.annotate(text) do the same, with the page's own time
(docs/timeline.md).

Examples:
  appliance annotate --run out/latest "cache is warm" --colour "#800000"
  appliance annotate --run out/latest --mark "deployed" --group server
  appliance annotate --run out/latest --fifo /tmp/annotate --listen :8088
  printf '\033\200\0\0Hello, Streamline.\0' > /tmp/annotate
  appliance annotate --run out/latest --marker logger
  journalctl -o json --since today > today.json
  appliance annotate --run out/latest --log today.json --rules rules.yaml
  appliance annotate --run out/latest --otlp traces.json
  appliance annotate --code c > eidetic.h
  appliance annotate --code sh > eidetic.sh`
}

// Validate checks what kong cannot.
func (c *AnnotateCmd) Validate() error {
	switch {
	case c.Code != "":
		return nil
	case c.To == "":
		return errors.New("--run: name the run that is in progress, such as out/latest")
	}
	if alone := given(c.Log, c.Marker, c.OTLP); alone > 0 {
		if c.Text != "" || c.streams() || c.Mark || c.Begin || c.End || c.Pause || c.Resume || alone > 1 {
			return errors.New("give one of --log, --otlp and --marker alone: without a note, and without --fifo, --socket and --listen")
		}
		if c.Marker != "" && len(strings.Fields(c.Marker)) == 0 {
			return errors.New("--marker: name the command that writes into the log, such as logger")
		}
		return nil
	}
	if c.streams() {
		if c.Text != "" || c.Mark || c.Begin || c.End || c.Pause || c.Resume || c.Group != "" || c.Colour != "" {
			return errors.New("--fifo, --socket and --listen take notes from programs: leave out the text, --group, --colour, and --mark, --begin and the like")
		}
		return nil
	}
	if err := c.note().Check(); err != nil {
		return err
	}
	return nil
}

// given is how many of the texts are not empty.
func given(texts ...string) (n int) {
	for _, text := range texts {
		if text != "" {
			n++
		}
	}
	return n
}

func (c *AnnotateCmd) streams() bool { return len(c.FIFO) > 0 || c.Socket != "" || c.Listen != "" }

// note is the note of the command line.
func (c *AnnotateCmd) note() lab.Annotation {
	op := lab.AnnotateSet
	switch {
	case c.Mark:
		op = lab.AnnotateMark
	case c.Begin:
		op = lab.AnnotateBegin
	case c.End:
		op = lab.AnnotateEnd
	case c.Pause:
		op = lab.AnnotatePause
	case c.Resume:
		op = lab.AnnotateResume
	}
	return lab.Annotation{Op: op, Text: c.Text, Group: c.Group, Colour: c.Colour, Source: "command"}
}

// Run writes one note, or takes notes until it is interrupted.
func (c *AnnotateCmd) Run(ctx context.Context, std *streams) error {
	if c.Code != "" {
		_, err := io.WriteString(std.out, map[string]string{"c": streamline.Header, "sh": streamline.Shell}[c.Code])
		return err
	}
	if c.Log != "" {
		return c.importLog(std)
	}
	if c.OTLP != "" {
		return c.importSpans(std)
	}
	now := lab.Monotonic()
	write, done, err := c.sink(std)
	if err != nil {
		return err
	}
	defer done()
	if c.Marker != "" {
		return c.writeMarker(ctx, write)
	}
	if !c.streams() {
		a := c.note().Clean()
		a.Earliest, a.Latest = now, now
		return write(ctx, []lab.Annotation{a})
	}
	return c.take(ctx, std, write)
}

// folder reads the run that --run names here.
func (c *AnnotateCmd) folder() (dir string, run *lab.Run, err error) {
	if dir, err = newestRun(c.To); err != nil {
		return "", nil, usage(err)
	}
	if run, err = store.ReadRun(dir); err != nil {
		return "", nil, usage(err)
	}
	return dir, run, nil
}

// sink is where notes go: a folder here, or a run on a box.
func (c *AnnotateCmd) sink(std *streams) (write func(context.Context, []lab.Annotation) error, done func(), err error) {
	if info, err := os.Stat(c.To); err == nil && info.IsDir() {
		dir, run, err := c.folder()
		if err != nil {
			return nil, nil, err
		}
		if run.State != store.StateRunning {
			return nil, nil, usage(fmt.Errorf("%s: the run is %s: notes belong to the trial in which they come", terminal.Visible(c.To), run.State))
		}
		return func(_ context.Context, list []lab.Annotation) error {
			for i := range list {
				list[i].Wall = time.Now()
			}
			return cannot(store.Annotate(dir, list...))
		}, func() {}, nil
	}
	named := c.named()
	if err := c.check(); err != nil {
		return nil, nil, usage(err)
	}
	if !named || !store.ValidID(c.To) {
		return nil, nil, usage(fmt.Errorf("%s: there is no such folder; for a run on a box name the box with --box", terminal.Visible(c.To)))
	}
	box, err := c.client(std, 0)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, list []lab.Annotation) error {
		notes := make([]panel.Note, len(list))
		for i, a := range list {
			ago := lab.Monotonic().Sub(a.Earliest)
			notes[i] = panel.Note{Op: a.Op, Text: a.Text, Group: a.Group, Colour: a.Colour, Ago: min(max(ago.Seconds()*1e3, 0), 60000)}
		}
		return boxError(box.Annotate(ctx, c.To, notes))
	}, box.Close, nil
}

// batch is how many notes are written at once at most.
const batch = 100

// take takes notes from the pipe and the port, and writes them as they come.
func (c *AnnotateCmd) take(ctx context.Context, std *streams, write func(context.Context, []lab.Annotation) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	came := make(chan lab.Annotation, 10*batch) // a full channel makes the programs wait
	r := &streamline.Receiver{Clock: lab.Monotonic, Emit: func(a lab.Annotation) { came <- a }}
	parts := 0
	ended := make(chan error)
	start := func(where string, part func() error) {
		fmt.Fprintf(std.err, "Notes are taken %s.\n", where)
		parts++
		go func() { ended <- part() }()
	}
	if c.Listen != "" {
		l, err := net.Listen("tcp", c.Listen)
		if err != nil {
			return usage(fmt.Errorf("--listen: %w", err))
		}
		start("at "+l.Addr().String(), func() error { return r.Listen(ctx, l) })
	}
	for _, path := range c.FIFO {
		start("from "+terminal.Visible(path), func() error { return r.FIFO(ctx, path, c.rowOf(path)) })
	}
	if c.Socket != "" {
		start("from "+terminal.Visible(c.Socket), func() error { return r.Socket(ctx, c.Socket) })
	}
	total, failed := 0, 0
	keep := func(a lab.Annotation) {
		list := []lab.Annotation{a}
		for len(list) < batch && len(came) > 0 {
			list = append(list, <-came)
		}
		if err := write(context.WithoutCancel(ctx), list); err != nil {
			failed += len(list)
			stop(err)
			return
		}
		total += len(list)
	}
	for parts > 0 {
		select {
		case err := <-ended:
			parts--
			stop(err)
		case a := <-came:
			keep(a)
		}
	}
	for len(came) > 0 { // what came just before the end
		keep(<-came)
	}
	fmt.Fprintln(std.err, strings.TrimSpace(fmt.Sprintf("%d notes were written. %v", total, r.Losses())))
	if failed > 0 {
		fmt.Fprintf(std.err, "%d notes could not be written, and are lost.\n", failed)
	}
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return cannot(err)
	}
	return nil
}

// rowOf names the row of a pipe's plain notes: fifo for the only one, otherwise its file.
func (c *AnnotateCmd) rowOf(path string) string {
	if len(c.FIFO) == 1 {
		return "fifo"
	}
	return filepath.Base(path)
}
