package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/sandbox"
	"eidetic/internal/tell/terminal"
	"eidetic/netlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
	"eidetic/netlab/replay"
)

// RecordCmd records pages, or what comes to a proxy, into an archive.
type RecordCmd struct {
	Archive string   `required:"" type:"path" placeholder:"A.wacz" help:"The file to make."`
	URL     []string `arg:"" optional:"" help:"Pages to open one after the other, each in a fresh browser in namespaces of its own."`
	Force   bool     `help:"Replace an archive that is there."`

	HTTP3       bool   `name:"http3" help:"Record over HTTP/3 where origins speak it: each page is opened once before, to find the hosts that offer it."`
	Proxy       string `placeholder:"IP:PORT" help:"Instead of opening pages: be an explicit proxy, and record what comes to it until Ctrl-C."`
	Traceparent bool   `help:"Give each request that has none a field traceparent, so that the spans of the back end can be put onto timelines (appliance annotate --otlp)."`
	authorityFlags
	pageFlags
	sandboxFlags

	Still    time.Duration `default:"2s" help:"A page is recorded when it has asked for nothing for this long (${default})."`
	Limit    time.Duration `default:"60s" help:"A page that goes on asking is left after this long (${default})."`
	Seed     uint64        `default:"1" help:"Seed of the pages' random numbers; kept in the archive, and used again on replay (${default})."`
	MinScore float64       `default:"0.95" help:"The least quality score that is good (${default}); see appliance archive verify."`
}

// Help is shown by appliance record --help.
func (RecordCmd) Help() string {
	return `Opens pages in a fresh Chromium whose only network is the box, and records every exchange with the origins.
With --proxy, any browser or program that is told to use the proxy, and trusts its certificate, is recorded.
The status is 1 if the recording is unfit to be replayed.

Example:
  appliance record --archive shop.wacz https://shop.example/ https://shop.example/cart
  appliance record --archive shop.wacz --proxy 127.0.0.1:8080`
}

// Validate checks what kong cannot.
func (c *RecordCmd) Validate() error {
	if len(c.URL) == 0 && c.Proxy == "" {
		return errors.New("say what to record: the URL of a page, or --proxy IP:PORT for what comes to a proxy")
	}
	if len(c.URL) > 0 && c.Proxy != "" {
		return errors.New("--proxy and a URL exclude each other: with --proxy a browser of yours opens the pages")
	}
	if c.HTTP3 && c.Proxy != "" {
		return errors.New("--http3 and --proxy exclude each other: explicit proxies have no HTTP/3")
	}
	if err := checkScore(c.MinScore); err != nil {
		return err
	}
	for i, u := range c.URL {
		c.URL[i] = c.withoutUser(u)
		if err := plan.CheckPage(c.URL[i]); err != nil {
			return err
		}
	}
	if c.Still < 100*time.Millisecond || c.Limit < c.Still {
		return fmt.Errorf("--still %v and --limit %v: at least 100ms, and the limit no shorter", c.Still, c.Limit)
	}
	return validAddress("--proxy", c.Proxy)
}

// Run records, and judges the recording.
func (c *RecordCmd) Run(ctx context.Context, std *streams) error {
	if err := c.checkArchive(); err != nil {
		return usage(err)
	}
	// An archive that replaces another one is made beside it, so that a recording
	// that failed, or is unfit, leaves the old one.
	path := c.Archive
	if _, err := os.Lstat(path); err == nil {
		path = filepath.Join(filepath.Dir(path), ".new-"+filepath.Base(path))
		for _, old := range []string{path, path + archive.WorkingSuffix} {
			if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return cannot(err)
			}
		}
	}
	var err error
	if c.Proxy != "" {
		err = c.proxy(ctx, std, path)
	} else {
		err = c.pages(ctx, path)
	}
	if err != nil {
		return err
	}
	if path == c.Archive {
		return c.judge(std, path)
	}
	if err := c.judge(std, path); err != nil {
		if _, gone := os.Lstat(path); errors.Is(gone, fs.ErrNotExist) {
			return &exitError{statusOf(err), fmt.Errorf("%w; %s is as it was", err, c.Archive)}
		}
		return &exitError{statusOf(err), fmt.Errorf("%w; %s is as it was, and the new recording is in %s", err, c.Archive, path)}
	}
	return cannot(os.Rename(path, c.Archive))
}

// checkArchive checks that the archive can be made, before anything is started.
func (c *RecordCmd) checkArchive() error {
	_, err := os.Stat(c.Archive)
	switch {
	case err == nil && !c.Force:
		return fmt.Errorf("--archive %s exists: choose another name, or replace it with --force", c.Archive)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--archive: %w", err)
	}
	dir := filepath.Dir(c.Archive)
	if info, err := os.Stat(dir); err != nil {
		return fmt.Errorf("--archive: its folder: %w; make it with mkdir", err)
	} else if !info.IsDir() {
		return fmt.Errorf("--archive: %s is not a folder", dir)
	}
	return nil
}

// judge prints what was recorded, and returns an error if it is unfit.
func (c *RecordCmd) judge(std *streams, path string) error {
	a, err := archive.Open(path)
	if err != nil {
		return cannot(err)
	}
	i := a.Info()
	if i.Exchanges == 0 {
		if err := os.Remove(path); err != nil {
			return cannot(err)
		}
		return failed(errors.New("nothing was recorded, and no file is left: the page asked its origins for nothing that they answered"))
	}
	fmt.Fprintf(std.out, "%s: %d exchanges, %.1f MB, of %d hosts\n", c.Archive, i.Exchanges, float64(i.BodyBytes)/1e6, len(i.Hosts))
	q := archive.Assess(a)
	if err := printQuality(std.out, a, q); err != nil {
		return err
	}
	for _, page := range c.URL {
		note, problem := execute.Document(a, page)
		if problem != nil {
			return failed(problem)
		}
		if note != "" {
			fmt.Fprintf(std.out, "note  %s\n", terminal.OneLine(note))
		}
	}
	if err := q.Unfit(c.MinScore); err != nil {
		return failed(fmt.Errorf("the recording %w", err))
	}
	return nil
}

// pages records with a virtual device.
func (c *RecordCmd) pages(ctx context.Context, path string) error {
	reach, err := c.reach(ctx, c.URL...)
	if err != nil {
		return usage(err)
	}
	return visitPages(ctx, sandbox.Visit{
		Record: true, Archive: path, Pages: c.URL, Still: c.Still, Limit: c.Limit, Seed: c.Seed, HTTP3: c.HTTP3, Reach: reach,
		Traceparent: c.Traceparent,
		NoSandbox:   c.NoSandbox,
	})
}

// proxy records what comes to an explicit proxy until ctx ends.
func (c *RecordCmd) proxy(ctx context.Context, std *streams, path string) error {
	authority, err := c.load()
	if err != nil {
		return cannot(err)
	}
	reach, err := c.reach(ctx)
	if err != nil {
		return usage(err)
	}
	upstream, err := reach.Upstream()
	if err != nil {
		return usage(err)
	}
	network, err := netlab.Start(ctx, netlab.Config{
		Gateway: ownGateway(), ProxyAddr: c.Proxy, CA: authority, Upstream: upstream, Clock: lab.Monotonic, Waits: true,
		Log: slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return cannot(err)
	}
	defer network.Close()
	wall := time.Now()
	w, err := archive.Create(path,
		archive.CreateOptions{Software: versionLine(), Wall: wall, Seed: c.Seed, PageDate: wall, Title: filepath.Base(c.Archive)})
	if err != nil {
		return cannot(err)
	}
	bar := terminal.NewProgress(std.out)
	defer bar.Close()
	recorder, err := network.Record(ctx, w, replay.RecordOptions{
		Wall: time.Now, Traceparent: c.Traceparent, Inject: inject.Options{Seed: c.Seed, Date: wall}, Pages: true, Log: func(s lab.Served) {
			if s.Error != "" {
				bar.Say("%s %s: %s", s.Method, s.URL, s.Error)
			}
		},
	})
	if err != nil {
		_ = w.Discard()
		return cannot(err)
	}
	bar.Say("Recording into %s what comes to the proxy, until you press Ctrl-C.", c.Archive)
	bar.Say("%s", c.usage(network.Addrs().Proxy, authority))
	<-ctx.Done()
	network.Disarm()
	bar.Say("%d requests", recorder.Stats().Requests)
	return cannot(errors.Join(recorder.Wait(), w.Close()))
}
