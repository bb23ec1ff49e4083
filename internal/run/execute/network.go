package execute

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
	"eidetic/netlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
	"eidetic/netlab/replay"
	"eidetic/netlab/replay/match"
)

// The adapters from the instruments to the interfaces of package experiment.

// servedLog collects a session's replay log.
type servedLog struct {
	mu    sync.Mutex
	lines []lab.Served
}

func (l *servedLog) add(s lab.Served) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, s)
}

// sorted returns the lines in order of arrival.
func (l *servedLog) sorted() []lab.Served {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := slices.Clone(l.lines)
	slices.SortStableFunc(out, func(a, b lab.Served) int { return int(a.Time - b.Time) })
	return out
}

// counted is the common part of a Recorder and a Session.
type counted interface{ Stats() replay.Stats }

// armed is a session of the network.
type armed struct {
	network *netlab.Network
	core    counted
	log     *servedLog
	done    *atomic.Pointer[lab.Event] // the page's first call of lab.done()
	marks   markLog
	page    pageMarks
	notes   pageNotes
	asked   dialogues
	finish  func() error
	// fills is set if what the recording lacks is fetched.
	fills bool
	// recorded is how many exchanges of the page the recording has, 0 if unknown.
	recorded int
	waits    func() []experiment.Wait // of a page that is being recorded; nil for a replay
}

func (a *armed) Traffic() experiment.Traffic {
	s := a.core.Stats()
	t := experiment.Traffic{
		Requests: s.Requests, Misses: s.Misses, InFlight: s.InFlight, LastActivity: s.LastActivity, Done: a.done.Load(),
		Marks: a.marks.all(), Workers: s.Workers, Unseen: s.Unseen,
	}
	if a.fills {
		t.Filled = s.Live
	}
	if a.recorded > 0 {
		t.Recorded, t.Asked = a.recorded, s.Asked
	}
	if a.waits != nil {
		t.Waits = a.waits()
	}
	return t
}

// annotate handles what pages report to the box. The first lab.done() ends a trial; its time
// is that of its arrival.
func (a *armed) annotate(n replay.Annotation) {
	switch n.Name {
	case "done":
		e := lab.Event{Name: "done", Detail: n.Label(), Earliest: n.Time, Latest: n.Time}
		a.done.CompareAndSwap(nil, &e)
		a.marks.add(e)
	case pageAnnotation:
		a.page.add(n)
	case noteAnnotation:
		a.notes.add(n)
	case dialogueAnnotation:
		a.asked.add(n)
	}
}

// Told is what pages said of themselves so far, with times on the box's clock.
func (a *armed) Told() experiment.Told {
	return experiment.Told{Marks: a.page.all(), Annotations: a.notes.all(), Dialogues: a.asked.all()}
}

// PageMeter implements experiment.Metered.
func (a *armed) PageMeter() (ms float64, ok bool) { return a.network.PageMeter() }

func (a *armed) Disarm() ([]lab.Served, error) {
	a.network.Disarm()
	var err error
	if a.finish != nil {
		err = a.finish()
	}
	return a.log.sorted(), err
}

// recording arms the network to record a page into an archive.
type recording struct {
	network *netlab.Network
	path    string
	page    string
	seed    uint64
	wall    time.Time
	by      string // name and version of the appliance
	plain   bool   // do not modify pages, and discard the recording afterwards
	script  string // that of replaying
	dialog  string // the plan's answer to dialogues
	traced  bool   // requests get a traceparent

	problems OriginProblems
}

// recordingSession is the session of a page that is being recorded.
type recordingSession struct {
	*armed
	recorder *replay.Recorder
	isApp    bool          // that asks for nothing, perhaps
	rest     time.Duration // when the page came to rest, since the start; 0 if it did not
}

// firstRequest is how long a device may take until it asks for the page: it has to look up the name and to
// connect first. The time counts from the beginning of the recording, before the device is made fresh. After it
// the page counts as at rest, and the recording says what has failed.
const firstRequest = 45 * time.Second

// Traffic implements experiment.Session: until it was asked for, the page itself is in flight.
func (s *recordingSession) Traffic() experiment.Traffic {
	t := s.armed.Traffic()
	if t.Requests == 0 && !s.isApp && s.recorder.Since(clock()) < firstRequest {
		t.InFlight = 1
	}
	return t
}

// AtRest implements experiment.RestNoter.
func (s *recordingSession) AtRest(at lab.Time) { s.rest = s.recorder.Since(at) }

func (r *recording) Arm(ctx context.Context) (experiment.Session, error) {
	w, err := archive.Create(r.path, archive.CreateOptions{
		Software: r.by, Wall: r.wall, Seed: r.seed, PageDate: r.wall,
	})
	if err != nil {
		return nil, err
	}
	a := &armed{network: r.network, log: &servedLog{}, done: &atomic.Pointer[lab.Event]{}}
	recorder, err := r.network.Record(ctx, w, replay.RecordOptions{
		Clock: clock, Wall: time.Now, Annotate: a.annotate,
		Log: func(s lab.Served) { a.log.add(s); r.problems.Add(s) }, Traceparent: r.traced,
		Inject: inject.Options{Seed: r.seed, Date: r.wall, Off: r.plain, More: r.script, Dialog: r.dialog},
	})
	if err != nil {
		w.Discard()
		return nil, err
	}
	session := &recordingSession{armed: a, recorder: recorder, isApp: lab.IsAppPage(r.page)}
	a.core = recorder
	a.waits = func() (list []experiment.Wait) {
		for number, heard := range recorder.Waits() {
			list = append(list, experiment.Wait{Request: number, Heard: heard})
		}
		return list
	}
	a.finish = func() error {
		if err := recorder.Wait(); err != nil || r.plain {
			return errors.Join(err, w.Discard())
		}
		if err := w.AddPage(archive.Page{URL: r.page, Wall: r.wall, Rest: session.rest.Seconds() * 1e3}); err != nil {
			return err
		}
		return w.Close()
	}
	return session, nil
}

// replaying arms the network to replay an archive.
type replaying struct {
	network *netlab.Network
	page    string
	archive *archive.Archive
	timing  replay.Timing
	match   match.Policy
	view    *replay.View // gets what the archive lacks; nil answers 404
	keeps   bool         // the browser begins with what it has loaded before, and need not ask for that
	inject  inject.Options
	local   bool // the device is this machine
	others  bool // other programs than the browser may ask for something
}

func (r *replaying) Arm(ctx context.Context) (experiment.Session, error) {
	a := &armed{network: r.network, log: &servedLog{}, done: &atomic.Pointer[lab.Event]{}}
	a.page.local, a.notes.local = r.local, r.local
	o := replay.Options{
		Timing: r.timing, Match: r.match, Miss: replay.Miss404, Clock: clock, Wall: time.Now(), Log: a.log.add, Annotate: a.annotate,
		Inject: r.inject, Others: r.others,
	}
	expected, rest := recordedOf(r.archive, r.page, r.others)
	o.Rest = rest
	if r.view != nil {
		o.Miss, o.Fill, a.fills = replay.MissFill, r.view, true
	}
	session, err := r.network.Replay(ctx, r.archive, o)
	if err != nil {
		return nil, err
	}
	a.core = session
	if !r.keeps {
		a.recorded = expected
	}
	a.finish = session.Wait
	return a, nil
}

// recordedOf counts the exchanges that an archive has of a page, up to the time at which the page came to
// rest. It returns 0 if another program made the archive or it has several pages: then the page of an
// exchange is unknown. Of a device with other programs those of a browser count.
func recordedOf(a *archive.Archive, page string, others bool) (n int, rest time.Duration) {
	pages := a.Pages()
	if !a.IsSeeded() || len(pages) != 1 || lab.ParseURL(pages[0].URL).Sent() != lab.ParseURL(page).Sent() {
		return 0, 0
	}
	rest = pages[0].RestTime()
	isOfBrowser := func(e *lab.Exchange) bool { return replay.IsOfBrowser(&e.Request) }
	others = others && slices.ContainsFunc(a.Exchanges(), isOfBrowser)
	ranges := map[string]bool{} // of one address count once: a player asks for more or fewer of them
	for _, e := range a.Exchanges() {
		if e.Method == http.MethodOptions || rest > 0 && e.Start > rest || others && !isOfBrowser(e) {
			continue
		}
		if e.Status == http.StatusPartialContent || e.Request.Get("Range") != "" {
			if ranges[e.URL] {
				continue
			}
			ranges[e.URL] = true
		}
		n++
	}
	return n, rest
}

// cameLate counts what a page asked for first after it had come to rest, and says how long after the request before. What
// it sends, what its service worker keeps for later and what another program asks for does not belong to a load.
func cameLate(a *archive.Archive, page string) (n int, pause time.Duration) {
	_, rest := recordedOf(a, page, true)
	if rest == 0 {
		return 0, 0
	}
	var before time.Duration
	asked, workers := map[string]bool{}, map[string]bool{}
	for _, e := range a.Exchanges() {
		if e.Request.Get("Service-Worker") != "" {
			workers[withoutQuery(e.URL)] = true
		}
		if e.Start <= rest {
			before, asked[withoutQuery(e.URL)] = max(before, e.Start), true
		}
	}
	first := time.Duration(math.MaxInt64)
	for _, e := range a.Exchanges() {
		isNew := e.Start > rest && e.Method == http.MethodGet && !asked[withoutQuery(e.URL)] && !strings.HasSuffix(e.URL, "/favicon.ico")
		if isNew && replay.IsOfBrowser(&e.Request) && !workers[withoutQuery(e.Request.Get("Referer"))] {
			n, first = n+1, min(first, e.Start)
		}
	}
	return n, first - before
}

func withoutQuery(url string) string {
	url, _, _ = strings.Cut(url, "?")
	return url
}

// emulated is the link of the network.
type emulated struct{ network *netlab.Network }

func (e emulated) Restart() { e.network.RestartLink() }

func (e emulated) Report() experiment.LinkReport {
	r := e.network.LinkReport()
	return experiment.LinkReport{Kept: r, Invalid: r.Invalid(), Late: r.Late}
}
