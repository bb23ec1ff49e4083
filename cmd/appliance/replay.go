package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/sandbox"
	"eidetic/internal/tell/terminal"
	"eidetic/netlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/link"
	"eidetic/netlab/proxy"
	"eidetic/netlab/replay"
	"eidetic/netlab/replay/match"
)

// ReplayCmd answers from an archive.
type ReplayCmd struct {
	Archive string   `required:"" type:"existingfile" placeholder:"A.wacz" help:"The recording."`
	URL     []string `arg:"" optional:"" help:"Instead of listening: open these pages, each in a fresh browser in namespaces of its own, and say how they were answered."`

	Proxy   string     `placeholder:"IP:PORT" help:"Be an explicit proxy here; 127.0.0.1:8080 when nothing else is asked for."`
	HTTP    string     `name:"http" placeholder:"IP:PORT" help:"Take transparent connections of HTTP here."`
	HTTPS   string     `name:"https" placeholder:"IP:PORT" help:"Take transparent connections of HTTPS here."`
	HTTP3   bool       `name:"http3" help:"Take QUIC on the port of --https too, for hosts that were recorded over HTTP/3."`
	DNS     string     `name:"dns" placeholder:"IP:PORT" help:"Be a name server here. Names lead to addresses of 198.18.0.0/15, which are routed to this process (needs root, best in a network namespace of one's own)."`
	Gateway netip.Addr `default:"192.168.77.1" placeholder:"IP" help:"This machine's address on the device's side, which box.test leads to (${default})."`
	Link    string     `default:"native" help:"Delay and pace connections as this access network does (see appliance link names); not HTTP/3."`

	Timing string `default:"recorded" help:"When answers come: recorded, none, or fixed:20ms (${default})."`
	Match  string `default:"" enum:",strict,normal,loose" placeholder:"POLICY" help:"How far a request may differ from the recorded one that answers it: strict, not at all; normal, not in what can change the answer; loose, the most similar one is taken. Without it normal, and loose for a recording that another program made."`
	Miss   string `default:"404" enum:"404,fail,live,fill" help:"What is done with a request that was not recorded: 404; fail, with status 1 at the end; live, ask the origin; fill, ask and record into --fill (${default})."`
	Fill   string `type:"path" placeholder:"B.wacz" help:"With --miss fill: the archive to make of what was missing."`
	Seed   uint64 `help:"Seed of the pages' random numbers; the recording's own when 0."`
	Log    string `type:"path" placeholder:"FILE" help:"Write a line of JSON for every request: how it matched, with which score, what differed, and the runner-up."`
	JSON   bool   `name:"json" help:"Print the summary as JSON."`
	authorityFlags
	originFlags
	sandboxFlags

	Still time.Duration `default:"2s" help:"With a URL: a page has loaded when it has asked for nothing for this long (${default})."`
	Limit time.Duration `default:"60s" help:"With a URL: a page that goes on asking is left after this long (${default})."`
}

// Help is shown by appliance replay --help.
func (ReplayCmd) Help() string {
	return `Answers every request from the recording and contacts nobody, until Ctrl-C; then says how requests were matched.
With a URL it opens the page itself, in a browser whose only network is the recording; the status is 1 if a request was missing.
With --miss live or fill, what the recording lacks comes from its origin.

Example:
  appliance replay --archive shop.wacz https://shop.example/
  appliance replay --archive shop.wacz --miss fill --fill more.wacz https://shop.example/
  appliance replay --archive shop.wacz --proxy 127.0.0.1:8080 --timing none --log requests.jsonl`
}

// Validate checks what kong cannot.
func (c *ReplayCmd) Validate() error {
	for _, l := range []struct{ flag, addr string }{{"--proxy", c.Proxy}, {"--http", c.HTTP}, {"--https", c.HTTPS}, {"--dns", c.DNS}} {
		if err := validAddress(l.flag, l.addr); err != nil {
			return err
		}
		if l.addr != "" && len(c.URL) > 0 {
			return fmt.Errorf("%s and a URL exclude each other: pages are opened in a network of their own", l.flag)
		}
	}
	for _, u := range c.URL {
		if err := plan.CheckPage(u); err != nil {
			return err
		}
	}
	if _, err := replay.ParseTiming(c.Timing); err != nil {
		return fmt.Errorf("--timing: %w", err)
	}
	if _, err := link.Parse(c.Link); err != nil {
		return fmt.Errorf("--link: %w", err)
	}
	switch {
	case (c.Miss == "fill") != (c.Fill != ""):
		return errors.New("--miss fill and --fill B.wacz go together")
	case c.HTTP3 && c.HTTPS == "":
		return errors.New("--http3 needs --https, whose port it shares")
	case c.HTTP3 && c.Link != "native":
		return errors.New("--link shapes connections, and HTTP/3 has none: leave one of the two out")
	case c.Still < 100*time.Millisecond || c.Limit < c.Still:
		return fmt.Errorf("--still %v and --limit %v: at least 100ms, and the limit no shorter", c.Still, c.Limit)
	}
	return nil
}

// Run replays.
func (c *ReplayCmd) Run(ctx context.Context, std *streams) error {
	a, err := archive.Open(c.Archive)
	if err != nil {
		return usage(fmt.Errorf("--archive: %w", err))
	}
	for _, w := range a.Warnings() {
		fmt.Fprintln(std.err, "appliance:", terminal.OneLine(w))
	}
	if c.Match == "" {
		if c.Match = string(replay.PolicyOf(a)); c.Match == lab.LooseMatch {
			fmt.Fprintln(std.err, "appliance: the recording was imported: a request that differs gets the most similar recorded answer; "+
				"with --match normal it is a miss")
		}
	}
	if err := c.checkHosts(a); err != nil {
		return usage(err)
	}
	requests, err := openLog(c.Log)
	if err != nil {
		return usage(err)
	}
	if len(c.URL) > 0 {
		err = c.pages(ctx, requests)
	} else {
		err = c.listen(ctx, std, a, requests)
	}
	if err := errors.Join(err, requests.close()); err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(std.out, requests.Matches())
	} else {
		_, err = fmt.Fprintln(std.out, requests.Matches())
	}
	if err != nil {
		return err
	}
	for _, rule := range requests.Rules() {
		fmt.Fprintf(std.err, "If what differs cannot change the answer, this lets it match: appliance archive edit %s %s\n", shellWord(c.Archive), rule)
	}
	if misses, first := requests.Misses(); misses > 0 && (c.Miss == "fail" || len(c.URL) > 0) {
		return failed(fmt.Errorf("%d requests are not in %s; the first was %s", misses, c.Archive, first))
	}
	if failures, first := requests.Failures(); failures > 0 && len(c.URL) > 0 {
		return failed(fmt.Errorf("%d requests that are not in %s could not be fetched; the first was %s", failures, c.Archive, first))
	}
	return nil
}

// shellWord quotes a text for a shell.
func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// pages opens the pages in a virtual device.
func (c *ReplayCmd) pages(ctx context.Context, requests *requestLog) error {
	v := sandbox.Visit{
		Archive: c.Archive, Pages: c.URL, Still: c.Still, Limit: c.Limit, Seed: c.Seed, Timing: c.Timing, Link: c.Link, Match: c.Match,
		Miss: replay.Miss(c.Miss), Fill: c.Fill, Served: requests.Add, NoSandbox: c.NoSandbox,
	}
	if c.asksOrigins() {
		var err error
		if v.Reach, err = c.reach(ctx, c.URL...); err != nil {
			return usage(err)
		}
	}
	return visitPages(ctx, v)
}

// checkHosts returns an error for a page of a host that the recording lacks: its name does not exist in a replay, and the
// browser would ask for nothing. Names that browsers write in another way are left to them.
func (c *ReplayCmd) checkHosts(a *archive.Archive) error {
	if c.asksOrigins() {
		return nil
	}
	hosts := map[string]bool{}
	for _, e := range a.Exchanges() {
		hosts[lab.ParseURL(e.URL).Host] = true
	}
	for _, page := range c.URL {
		host := lab.ParseURL(page).Host
		if hosts[host] || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-.:") != "" {
			continue
		}
		known := ""
		if p := a.Pages(); len(p) > 0 {
			known = ", whose first page is " + p[0].URL
		}
		return fmt.Errorf("%s: nothing of %s is in %s%s", page, host, c.Archive, known)
	}
	return nil
}

// asksOrigins tells whether the policy asks origins for what the recording lacks.
func (c *ReplayCmd) asksOrigins() bool { return c.Miss == "live" || c.Miss == "fill" }

// listen replays until ctx ends.
func (c *ReplayCmd) listen(ctx context.Context, std *streams, a *archive.Archive, requests *requestLog) error {
	if c.Proxy == "" && c.HTTP == "" && c.HTTPS == "" && c.DNS == "" {
		c.Proxy = "127.0.0.1:8080"
	}
	authority, err := c.load()
	if err != nil {
		return cannot(err)
	}
	profile, err := link.Parse(c.Link)
	if err != nil {
		return usage(err)
	}
	options := replay.Options{Seed: c.Seed, Match: match.Policy(c.Match), Miss: replay.Miss(c.Miss), Wall: time.Now(), Log: requests.Add}
	if options.Timing, err = replay.ParseTiming(c.Timing); err != nil {
		return usage(err)
	}
	upstream, end, err := c.missPolicy(ctx, &options)
	if err != nil {
		return err
	}
	network, err := netlab.Start(ctx, netlab.Config{
		Upstream: upstream, Gateway: c.Gateway, Routes: c.DNS != "", CA: authority, Clock: lab.Monotonic, Link: profile, HTTP3: c.HTTP3,
		Waits:     true,
		ProxyAddr: c.Proxy, HTTPAddr: c.HTTP, HTTPSAddr: c.HTTPS, DNSAddr: c.DNS,
		Log: slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return cannot(errors.Join(err, end(nil)))
	}
	defer network.Close()
	session, err := network.Replay(ctx, a, options)
	if err != nil {
		return cannot(errors.Join(err, end(nil)))
	}
	i := a.Info()
	fmt.Fprintf(std.err, "Replaying %d exchanges of %d hosts, until you press Ctrl-C.\n", i.Exchanges, len(i.Hosts))
	at := network.Addrs()
	for _, l := range []struct {
		name string
		addr netip.AddrPort
	}{{"HTTP", at.HTTP}, {"HTTPS", at.HTTPS}, {"name server", at.DNS}} {
		if l.addr.IsValid() {
			fmt.Fprintf(std.err, "  %-12s %v\n", l.name, l.addr)
		}
	}
	if at.Proxy.IsValid() {
		fmt.Fprintln(std.err, c.usage(at.Proxy, authority))
	}
	<-ctx.Done()
	network.Disarm()
	return cannot(end(session))
}

// missPolicy sets up the policies for missing requests that ask origins, and returns how origins are reached. The
// function that it returns ends what was set up; its session may be nil.
func (c *ReplayCmd) missPolicy(
	ctx context.Context, o *replay.Options,
) (upstream *proxy.UpstreamConfig, end func(*replay.Session) error, err error) {
	if !c.asksOrigins() {
		return nil, func(*replay.Session) error { return nil }, nil
	}
	reach, err := c.reach(ctx)
	if err != nil {
		return nil, nil, usage(err)
	}
	if upstream, err = reach.Upstream(); err != nil {
		return nil, nil, usage(err)
	}
	if c.Miss == "live" {
		return upstream, func(*replay.Session) error { return nil }, nil
	}
	now := time.Now()
	w, err := archive.Create(c.Fill, archive.CreateOptions{Software: versionLine(), Wall: now, Seed: c.Seed})
	if err != nil {
		return nil, nil, usage(fmt.Errorf("--fill: %w", err))
	}
	o.Fill = replay.NewView(w, now)
	return upstream, func(s *replay.Session) error {
		if s == nil {
			return w.Discard()
		}
		return errors.Join(s.Wait(), w.Close())
	}, nil
}

// requestLog is the file of --log, with the tally of all requests.
type requestLog struct {
	*replay.Tally
	file *os.File // nil without a file
	out  *bufio.Writer
}

// openLog makes the file; no path makes none.
func openLog(path string) (*requestLog, error) {
	if path == "" {
		return &requestLog{Tally: replay.NewTally(nil)}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("--log: %w", err)
	}
	out := bufio.NewWriter(f)
	return &requestLog{replay.NewTally(out), f, out}, nil
}

func (l *requestLog) close() error {
	if l.file == nil {
		return nil
	}
	if err := errors.Join(l.Err(), l.out.Flush(), l.file.Close()); err != nil {
		return cannot(fmt.Errorf("--log: %w", err))
	}
	return nil
}
