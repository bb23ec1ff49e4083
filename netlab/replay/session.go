package replay

import (
	"errors"
	"net/http"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
)

// Timing says when the pieces of an answer are written.
type Timing struct {
	Mode  TimingMode
	Fixed time.Duration // of TimingFixed: from the request to the first byte
}

// TimingMode is one of the three ways to time an answer.
type TimingMode string

// The modes. Recorded keeps time to first byte and chunk times.
const (
	TimingRecorded TimingMode = "recorded"
	TimingFixed    TimingMode = "fixed"
	TimingNone     TimingMode = "none"
)

// ParseTiming reads "recorded", "none" or "fixed:20ms"; "" is recorded.
func ParseTiming(s string) (Timing, error) { return Timing{}, errors.ErrUnsupported }

// Miss says what is done with a request that nothing recorded is near to.
type Miss string

// The policies. A failed trial answers 404 and counts; the experiment judges.
const (
	Miss404  Miss = "404"  // answer 404
	MissFail Miss = "fail" // answer 404 and mark the session as failed
)

// Options of a Session. Clock is required.
type Options struct {
	// Seed is the trial's; it replaces Inject.Seed. 0 means the recording's own.
	Seed   uint64
	Timing Timing
	Miss   Miss
	Clock  lab.Clock
	// Wall is now, for Date, Expires and cookies; zero leaves them as recorded.
	Wall   time.Time
	Inject inject.Options
	// Log gets one line per request when its answer has ended. It is called
	// from many goroutines and must not block.
	Log func(lab.Served)
}

// Stats are counts of a Session or Recorder since it began.
type Stats struct {
	Requests     int
	Misses       int
	InFlight     int
	LastActivity lab.Time // the last arrival or end of a request
	Failed       bool     // a miss under MissFail
}

// Session replays one archive for one trial with fresh match state.
type Session struct{}

// NewSession prepares a (bodies with scripts put in, indexes) and returns a
// handler that is ready. Preparations are shared by the sessions of one archive.
func NewSession(a *archive.Archive, o Options) (*Session, error) { return nil, errors.ErrUnsupported }

// ServeHTTP answers from the archive. r.URL must be absolute.
func (s *Session) ServeHTTP(w http.ResponseWriter, r *http.Request) {}

// Protocols returns the ALPN protocols to offer for host ("www.example.com"
// or with a port), the preferred one first: as recorded. An unknown host has nil.
func (s *Session) Protocols(host string) []string { return nil }

// Hosts returns the recorded host names, sorted, without ports.
func (s *Session) Hosts() []string { return nil }

// Stats returns the counts so far.
func (s *Session) Stats() Stats { return Stats{} }
