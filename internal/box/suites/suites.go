// Package suites has suites measured. A [Machine] goes through what a suite's result lacks, and asks a [Lab] for the
// runs; a [Keeper] does so for a box or the head of a fleet: the runs go through its queue like any other, and take
// their turns.
//
// Suites that people upload, and requests to measure one, flow in; runs in the queue and results flow out. Each result
// has a folder with its request and the result's file, which is on the disk before the next step begins, and a request
// for a run has a key: a box that is killed anywhere goes on after its next start, and asks for no run twice.
package suites

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"eidetic/internal/box/ownruns"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/tell/suite"
)

// Config holds what a Keeper needs.
type Config struct {
	Dir   string // a folder for all suites and results
	Runs  ownruns.Queue
	Store *store.Store
	// Check says what is wrong with a plan, without regard to whether its device is ready now; nil checks nothing.
	Check func(context.Context, lab.Plan) error
	// Archive finds the file of a recording by its name; nil finds none.
	Archive func(name string) (file string, err error)
	// Sums are those of the files of runs; nil hashes the files of the store.
	Sums suite.Sum
	// Software is the program with its version, which results name.
	Software string
	Now      func() time.Time // the wall clock; nil is time.Now
	// Patience is how long the queue may refuse a run, as it does while a device is away; 0 is five minutes.
	Patience time.Duration
	Log      *slog.Logger // nil discards
}

// Bounds.
const (
	mostResults = 100 // that are kept
	mostGoing   = 20  // that wait or go on
	mostSuites  = 100 // that are uploaded
	mostTrials  = 10_000
	// MostSpread is how many runs of a result may be in the queue at the same time.
	MostSpread = 50
)

// Request is what somebody asks for.
type Request struct {
	Suite    string     // its name
	Browsers []string   // none: those of the suite, or Chromium
	Only     []string   // entries; none is all
	Trials   int        // of each entry and browser; 0 is as the suite says
	Seed     uint64     // 0 is 1
	Device   string     // "" is the first
	On       *lab.On    // boxes of a fleet
	Spread   int        // runs in the queue at the same time; 0 is 1
	By       string     // name of the token
	Scope    plan.Scope // of the token
	Opens    bool       // the hosts of the pages are reached wherever they are (plan.Opening)
}

// Result is what is known of a result.
type Result struct {
	ID       string     `json:"id" example:"s3k7v2m9qxab"`
	Suite    string     `json:"suite" doc:"Name of the suite" example:"eidetic-1"`
	SHA256   string     `json:"suite_sha256" doc:"Of the suite's text, which the result holds"`
	State    string     `json:"state" enum:"waiting,running,done,failed,cancelled" doc:"One result is measured at a time; done: every entry was tried, see failed"`
	Error    string     `json:"error,omitempty" doc:"Why it failed"`
	Doing    string     `json:"doing,omitempty" doc:"What it is doing, or did last, in words"`
	Made     time.Time  `json:"made"`
	Ended    *time.Time `json:"ended,omitempty"`
	By       string     `json:"by" doc:"Name of the token that asked for it"`
	Browsers []string   `json:"browsers" doc:"Those that are compared; the first is what the others are held against" example:"[\"chromium\",\"firefox-esr\"]"`
	Only     []string   `json:"only,omitempty" doc:"The entries that are measured; without it all"`
	Trials   int        `json:"trials,omitempty" doc:"Of each entry and browser; without it as the suite says"`
	Seed     uint64     `json:"seed" doc:"Of the order of the trials"`
	Device   string     `json:"device,omitempty" doc:"Name of the device"`
	Spread   int        `json:"spread" doc:"How many runs are in the queue at the same time"`
	Runs     int        `json:"runs" doc:"How many runs the result has when it is complete"`
	Done     int        `json:"done" doc:"How many of them have ended well"`
	Failed   int        `json:"failed" doc:"How many have ended otherwise: resume tries them again"`
	Now      []string   `json:"now,omitempty" doc:"The runs that wait or go on"`
	// These are of one result alone.
	Entries []Entry       `json:"entries,omitempty" doc:"The runs so far"`
	Table   *suite.Table  `json:"table,omitempty" doc:"A row for each entry that has valid trials, and all together"`
	Known   []suite.Known `json:"known,omitempty" doc:"The answers that the suite's pages know, and what was measured"`
}

// Entry is a run of a result.
type Entry struct {
	Entry  string `json:"entry" example:"load-article"`
	Run    string `json:"run" doc:"The run's identifier, in which the browsers took turns"`
	State  string `json:"state" enum:"begun,done,failed,interrupted,running" doc:"begun: the run waits or goes on"`
	Error  string `json:"error,omitempty"`
	Valid  int    `json:"valid" doc:"Valid trials"`
	Trials int    `json:"trials"`
	Films  []Film `json:"films,omitempty" doc:"For each browser the valid trial whose mark is in the middle"`
}

// Film is a trial that shows what a browser did.
type Film struct {
	Browser string `json:"browser" example:"chromium"`
	Trial   int    `json:"trial" doc:"Its number in the run: /trial?run=RUN&trial=TRIAL shows its frames"`
}

// IsGoing says whether the result has not ended.
func (r Result) IsGoing() bool { return ownruns.IsGoing(r.State) }

// Errors that callers tell apart.
var (
	ErrMany     = errors.New("there are too many: delete some that have ended, or wait for those that go on") // constant
	ErrGoing    = errors.New("it is being measured: stop it first, without files=true")                       // constant
	ErrOver     = errors.New("it has ended: files=true deletes it")                                           // constant
	ErrComplete = errors.New("nothing is left to do: it goes on by itself, or all its entries are measured")  // constant
	ErrShipped  = errors.New("a suite of this program has this name: choose another")                         // constant
	ErrExists   = errors.New("there is another suite of this name: send its ETag in If-Match, or *")          // constant
)

// WrongError says what is wrong with a request.
type WrongError = ownruns.WrongError

func wrong(format string, args ...any) error { return &WrongError{Err: fmt.Errorf(format, args...)} }

// Keeper keeps suites and results; these are measured, one at a time, while [Keeper.Work] runs.
type Keeper struct {
	Config
	line *ownruns.Line[*kept] // its lock guards what follows, too

	own map[string]*shelved // the suites that were uploaded
}

// Open reads what there is.
func Open(c Config) (*Keeper, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Sums == nil {
		c.Sums = suite.SumsIn(c.Store.Root())
	}
	c.Patience = cmp.Or(c.Patience, 5*time.Minute)
	k := &Keeper{Config: c, line: ownruns.NewLine[*kept](), own: map[string]*shelved{}}
	for _, dir := range []string{k.results(), k.shelf()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("open suites: %w", err)
		}
	}
	if err := k.readShelf(); err != nil {
		return nil, fmt.Errorf("open suites: %w", err)
	}
	err := k.line.Read(k.results(), readKept, func(name string, err error) {
		c.Log.Error("the result of a suite cannot be read, and is left out", "result", name, "error", err)
	})
	if err != nil {
		return nil, fmt.Errorf("open suites: %w", err)
	}
	return k, nil
}

// ResultsDir and ShelfDir are the folders of results and of uploaded suites in that of a Keeper.
const (
	ResultsDir = "results"
	ShelfDir   = "own"
)

func (k *Keeper) results() string { return filepath.Join(k.Dir, ResultsDir) }

// Measure keeps a request for a result, which is measured when the others have ended.
func (k *Keeper) Measure(ctx context.Context, q Request) (Result, error) {
	s, scope, err := k.find(q.Suite)
	if err != nil {
		return Result{}, err
	}
	q.Scope = min(q.Scope, scope) // an admin does not lend its rights to a suite of somebody else
	q.Opens = q.Opens && scope >= plan.ScopeAdmin
	if len(q.Browsers) == 0 {
		q.Browsers = s.Browsers
	}
	if len(q.Browsers) == 0 {
		q.Browsers = []string{lab.Chromium}
	}
	q.Seed, q.Spread = cmp.Or(q.Seed, 1), cmp.Or(q.Spread, 1)
	b := &kept{Result: Result{
		ID: "s" + strings.ToLower(rand.Text()[:12]), Suite: s.Name, SHA256: s.SHA256(), State: ownruns.StateWaiting,
		Made: k.Now().UTC(), By: q.By, Browsers: q.Browsers, Only: q.Only, Trials: q.Trials, Seed: q.Seed, Device: q.Device, Spread: q.Spread,
	}, request: q, suite: s, found: suite.New(s, k.Software, q.Browsers, q.Trials, q.Seed, k.Now().UTC())}
	b.Dir = filepath.Join(k.results(), b.ID)
	if err := k.check(ctx, b); err != nil {
		return Result{}, err
	}
	made := b.Result
	save := func() error { return errors.Join(b.saveFound(), b.save()) }
	if err := k.line.Put(b, mostResults, mostGoing, ErrMany, save); err != nil {
		return Result{}, err
	}
	return made, nil
}

// check returns an error for a request that cannot be carried out, and counts its runs.
func (k *Keeper) check(ctx context.Context, b *kept) error {
	q := b.request
	if err := suite.CheckBrowsers(q.Browsers); err != nil {
		return wrong("browsers: %w", err)
	}
	for _, name := range q.Only {
		if b.suite.Index(name) < 0 {
			return wrong("only: %s has no entry %.60q", b.suite.Name, name)
		}
	}
	switch {
	case q.Trials < 0 || q.Trials > 5000:
		return wrong("trials: %d: from 1 to 5000", q.Trials)
	case q.Spread < 0 || q.Spread > MostSpread:
		return wrong("spread: %d: from 1 to %d", q.Spread, MostSpread)
	}
	jobs, err := k.machine(ctx, b).Jobs()
	if err != nil {
		return &WrongError{Err: err}
	}
	b.Runs = len(jobs)
	trials := 0
	for _, j := range jobs {
		trials += j.Plan.WithDefaults().Total()
	}
	if trials > mostTrials {
		return wrong("trials: %d together; at most %d: measure fewer entries (only), or fewer trials", trials, mostTrials)
	}
	return nil
}

// List lists the results, the newest first, without what only one has.
func (k *Keeper) List() []Result {
	k.line.Lock()
	defer k.line.Unlock()
	all := []Result{}
	for _, b := range k.line.All {
		all = append(all, b.Result)
	}
	slices.SortFunc(all, func(a, b Result) int { return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(b.ID, a.ID)) })
	return all
}

// Get returns a result with its table, or store.ErrNotFound.
func (k *Keeper) Get(id string) (Result, error) {
	k.line.Lock()
	defer k.line.Unlock()
	b := k.line.All[id]
	if b == nil {
		return Result{}, store.ErrNotFound
	}
	return b.whole()
}

// Releases is the series of each browser's releases, from the results of a suite as it is now that have ended. It is
// empty if none of them has a geometric mean; the error is store.ErrNotFound if there is no such suite. It reads up to a
// hundred files, until ctx is done.
func (k *Keeper) Releases(ctx context.Context, name string) ([]suite.Release, error) {
	s, _, err := k.find(name)
	if err != nil {
		return nil, err
	}
	var dirs []string
	k.line.Lock()
	for _, b := range k.line.All {
		if b.SHA256 == s.SHA256() && !b.IsGoing() {
			dirs = append(dirs, b.Dir)
		}
	}
	k.line.Unlock()
	slices.Sort(dirs)
	var all []*suite.Result
	for _, dir := range dirs {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r, err := suite.ReadResult(dir)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
				continue
			}
			return nil, err
		}
		all = append(all, r)
	}
	series, err := suite.Releases(all)
	if errors.Is(err, suite.ErrNoScore) {
		return []suite.Release{}, nil
	}
	return series, err
}

// File returns the name of a result's file, which is replaced as a whole, or store.ErrNotFound.
func (k *Keeper) File(id string) (string, error) {
	k.line.Lock()
	defer k.line.Unlock()
	b := k.line.All[id]
	if b == nil {
		return "", store.ErrNotFound
	}
	return filepath.Join(b.Dir, suite.ResultFile), nil
}

// Cancel ends the measuring of a result, and cancels its runs in the queue. The error is store.ErrNotFound, or
// [ErrOver].
func (k *Keeper) Cancel(id string) error {
	return k.line.Cancel(id, ErrOver, func(b *kept) error { return k.end(b, ownruns.StateCancelled, "") })
}

// Resume goes on with a result that failed or was stopped, and tries its entries again that did. The error is
// store.ErrNotFound, [ErrMany], [lab.ErrShare], or [ErrComplete].
func (k *Keeper) Resume(id string) (Result, error) {
	k.line.Lock()
	defer k.line.Unlock()
	b := k.line.All[id]
	switch {
	case b == nil:
		return Result{}, store.ErrNotFound
	case b.IsGoing() || b.Cancel != nil || b.State == ownruns.StateDone && b.Done == b.Runs:
		return Result{}, ErrComplete
	}
	if err := k.line.RoomToGo(b.By, mostGoing, ErrMany); err != nil {
		return Result{}, err
	}
	b.State, b.Error, b.Ended = ownruns.StateWaiting, "", nil
	k.line.Stir()
	return b.Result, b.save()
}

// Remove removes a result that has ended. Its runs stay. The error is store.ErrNotFound, or [ErrGoing].
func (k *Keeper) Remove(id string) error { return k.line.Remove(id, ErrGoing) }

// Needs says since when runs may be those of a result that has not ended; the zero time is that there is none.
func (k *Keeper) Needs() (since time.Time) { return k.line.Needs() }

// Holds names a result that has not ended and whose suite replays the recording of a name. It is "" if there is none.
func (k *Keeper) Holds(name string) (id string) { return k.line.Holds(name) }
