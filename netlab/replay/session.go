package replay

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
	"eidetic/netlab/replay/match"
)

// Miss says what is done with a request that no recorded one is similar to.
type Miss string

// The policies.
const (
	Miss404  Miss = "404"  // answer 404
	MissFail Miss = "fail" // answer 404 and mark the session as failed
	// MissLive fetches from the origin through Options.Live. Nothing is guessed: the policy
	// match.Loose is match.Normal then.
	MissLive Miss = "live"
	// MissFill does the same, keeps the answer in Options.Fill, and answers from there
	// from then on: one view of the back end for all devices, and for all sessions
	// with this view.
	MissFill Miss = "fill"
)

// Options of a Session. Clock is required.
type Options struct {
	// Seed is the trial's; it replaces Inject.Seed. When both are 0 the
	// recording's own is used, so that pages ask for what was recorded.
	Seed   uint64
	Timing Timing
	Match  match.Policy // default match.Normal
	Miss   Miss         // default Miss404
	// Live fetches misses under MissLive and MissFill; see NewRecorder.
	Live http.RoundTripper
	// Protocols tells what to offer to the device for hosts that are not recorded,
	// under MissLive and MissFill; nil offers http/1.1.
	Protocols func(host string) []string
	// Fill is what MissFill has fetched and will fetch.
	Fill  *View
	Clock lab.Clock
	// Wall is now, for Date, Expires and cookies; zero leaves them as recorded.
	Wall time.Time
	// Inject is the script's; a zero Date means the recording's own.
	Inject inject.Options
	// Rest is when the recorded page came to rest, by Exchange.Start: later exchanges do not count
	// for Stats.Asked. 0 counts all.
	Rest time.Duration
	// Log gets one line per request when its answer has ended. It is called
	// from many goroutines and must not block.
	Log func(lab.Served)
	// Others says that other programs run on the device than the browser that is tried. What they ask for, and nobody
	// recorded, is no miss, and does not count for Stats.Asked.
	Others bool
	// Device names the device that has an address, since one with IPv6 has several; nil: each address is a device.
	Device func(netip.Addr) string
	// Annotate gets what pages tell the box, such as lab.done(). May be nil.
	Annotate func(Annotation)
}

// Annotation is what a page told the box at a path under inject.BoxPath.
type Annotation struct {
	Time   lab.Time // arrival
	Client netip.Addr
	URL    string // where it was posted: tells the origin
	Name   string // the rest of the path: "done"
	Body   []byte // JSON of the page, at most 64 KiB, not checked
}

// Stats are counts of a Session or Recorder since it began.
type Stats struct {
	Requests     int
	Misses       int
	Live         int // fetched from origins: all of a Recorder, the misses of MissLive and MissFill
	InFlight     int
	LastActivity lab.Time // the last arrival or end of a request
	// Asked is how many exchanges of the archive answered a request, of a Session; without CORS preflights and
	// what came after Options.Rest.
	Asked   int
	Workers int  // scripts of service workers that were asked for
	Unseen  bool // the latest navigation got what no browser shows, of a Recorder
	Failed  bool // a miss under MissFail
}

// noteWorker counts a request for the script of a service worker (Service Workers, Update algorithm).
func (s *Stats) noteWorker(r *http.Request) {
	if r.Header.Get("Service-Worker") == "script" {
		s.Workers++
	}
}

// Session replays one archive for one trial with fresh match state.
type Session struct {
	p     *Prepared
	o     Options
	start lab.Time // of the session, when the wall clock showed o.Wall

	live *Recorder // for misses; nil unless the policy asks for it

	mu      sync.Mutex
	clients map[string]*match.Client // by device
	devices map[netip.Addr]string    // that have asked
	asked   map[any]bool             // by askedKey
	filled  *Prepared                // what MissFill fetched, as far as this session has asked
	stats   Stats
}

// InjectOptions returns what sessions of a put into pages: o, with the seed
// and date of the recording where o has none. An import has no date of its own; it gets that of its
// first request.
func InjectOptions(a *archive.Archive, o inject.Options) inject.Options {
	made := a.Options()
	o.Seed = cmp.Or(o.Seed, made.Seed)
	if o.Date.IsZero() {
		if o.Date = made.PageDate; o.Date.IsZero() {
			o.Date = made.Wall
		}
	}
	return o
}

// PolicyOf is the matching policy for an archive where a person chooses none. The pages of an import were not
// seeded, so some of their requests differ in each replay: the most similar recorded one answers them.
func PolicyOf(a *archive.Archive) match.Policy {
	if a.IsSeeded() {
		return match.Normal
	}
	return match.Loose
}

// NewSession prepares a and returns a handler that is ready. For many sessions of
// one archive, call [Prepare] once and [Prepared.Session] for each.
func NewSession(a *archive.Archive, o Options) (*Session, error) {
	o.Inject.Seed = cmp.Or(o.Seed, o.Inject.Seed)
	p, err := Prepare(a, InjectOptions(a, o.Inject))
	if err != nil {
		return nil, err
	}
	return p.Session(o)
}

// Session starts a trial. Seed and Inject of o are not used: p has its script.
func (p *Prepared) Session(o Options) (*Session, error) {
	if o.Clock == nil {
		return nil, fmt.Errorf("new replay session: no clock was given")
	}
	switch o.Miss = cmp.Or(o.Miss, Miss404); o.Miss {
	case Miss404, MissFail:
	case MissLive, MissFill:
		if o.Live == nil || o.Miss == MissFill && o.Fill == nil {
			return nil, fmt.Errorf("new replay session: the miss policy %s needs Options.Live, and fill needs Options.Fill", o.Miss)
		}
	default:
		return nil, fmt.Errorf("new replay session: miss policy %q is none of 404, fail, live, fill", o.Miss)
	}
	switch o.Timing.Mode = cmp.Or(o.Timing.Mode, TimingRecorded); o.Timing.Mode {
	case TimingRecorded, TimingFixed, TimingNone:
	default:
		return nil, fmt.Errorf("new replay session: timing mode %q is none of recorded, fixed, none", o.Timing.Mode)
	}
	var err error
	if o.Match, err = match.ParsePolicy(string(o.Match)); err != nil {
		return nil, fmt.Errorf("new replay session: %w", err)
	}
	if o.Log == nil {
		o.Log = func(lab.Served) {}
	}
	s := &Session{p: p, o: o, start: o.Clock(), clients: map[string]*match.Client{}, devices: map[netip.Addr]string{}, asked: map[any]bool{}}
	s.stats.LastActivity = s.start
	if o.Miss == MissLive || o.Miss == MissFill {
		s.live = s.liveRecorder()
	}
	if o.Miss == MissFill {
		s.filled = newPrepared(p.archive, p.script, p.ignored)
	}
	return s, nil
}

// Protocols returns the ALPN protocols to offer for host ("www.example.com"
// or with a port), the preferred one first: as recorded. An unknown host has nil.
func (s *Session) Protocols(host string) []string {
	list := s.p.Protocols(host)
	if list == nil && s.o.Fill != nil {
		list = s.o.Fill.protocols(host)
	}
	if list == nil && s.live != nil && s.o.Protocols != nil {
		list = s.o.Protocols(host)
	}
	return list
}

// HTTP3 tells whether host was spoken to over HTTP/3.
func (s *Session) HTTP3(host string) bool { return slices.Contains(s.Protocols(host), "h3") }

// Knows tells whether the recording has a host, or at least what a name server said of it; under a policy that asks
// origins every host may be known. For an unknown one there is no answer, and whoever asks for its certificate is
// counted as a miss, unless other programs run on the device.
func (s *Session) Knows(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if s.live != nil || s.p.names[host] {
		return true
	}
	now := s.o.Clock()
	line := lab.Served{
		Time: now, Method: http.MethodConnect, URL: "https://" + host + "/", Stage: lab.StageMiss,
		Why: "the recording has nothing of this host, so the box has no certificate for it",
	}
	if s.o.Others { // a page's browser would have asked for the name, which does not exist
		line.Stage, line.Why = lab.StageBox, line.Why+"; another program of the device knows its address"
	}
	s.mu.Lock()
	s.stats.Requests++
	if line.Stage == lab.StageMiss {
		s.stats.Misses++
		s.stats.Failed = s.stats.Failed || s.o.Miss == MissFail
	}
	s.stats.LastActivity = now
	s.mu.Unlock()
	s.o.Log(line)
	return false
}

// Hosts returns the recorded host names, sorted, without ports.
func (s *Session) Hosts() []string { return s.p.hosts }

// Protocols is Session.Protocols.
func (p *Prepared) Protocols(host string) []string {
	if list, ok := p.protocols[host]; ok {
		return list
	}
	return p.protocols[bareHost(host)]
}

// Stats returns the counts so far.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	if s.live != nil {
		stats.InFlight -= s.live.resting()
	}
	return stats
}

// mostDevices bounds the devices with a state of their own; those beyond share one.
const mostDevices = 4096

// device names the device that has an address.
func (s *Session) device(from netip.Addr) string {
	s.mu.Lock()
	name, known := s.devices[from]
	isFull := len(s.devices) >= mostDevices
	s.mu.Unlock()
	switch {
	case known:
		return name
	case isFull:
		return ""
	}
	if name = from.String(); s.o.Device != nil {
		name = s.o.Device(from)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.devices[from] = name
	return name
}

// client returns the match state of a device; the caller holds the lock.
func (s *Session) client(device string) *match.Client {
	c := s.clients[device]
	if c == nil {
		c = match.NewClient()
		s.clients[device] = c
	}
	return c
}

// liveRecorder fetches what the archive lacks.
func (s *Session) liveRecorder() *Recorder {
	wall := func() time.Time {
		if now := s.now(s.o.Clock()); !now.IsZero() {
			return now
		}
		return s.p.archive.Options().Wall // without a wall clock all dates are those of the recording
	}
	var w *archive.Writer
	if s.o.Miss == MissFill {
		w = s.o.Fill.w
	}
	c := NewRecorder(w, s.o.Live, RecordOptions{Clock: s.o.Clock, Wall: wall, Log: s.o.Log})
	c.script = s.p.script
	if w != nil {
		c.order, c.start = s.o.Fill.join(c.start)
		c.added = s.o.Fill.add
	}
	return c
}

// Wait returns when what MissFill fetched is in its archive, with the first
// error of writing it. Under other policies it returns at once.
func (s *Session) Wait() error {
	if s.live == nil {
		return nil
	}
	return s.live.Wait()
}

// now is the wall clock's time at t, or zero when the session has none.
func (s *Session) now(t lab.Time) time.Time {
	if s.o.Wall.IsZero() {
		return time.Time{}
	}
	return s.o.Wall.Add(t.Sub(s.start))
}
