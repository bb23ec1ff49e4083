package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"eidetic/internal/lab"
)

// Tally counts how requests were matched, and writes each to a log.
type Tally struct {
	mu        sync.Mutex
	log       io.Writer // one JSON object a line; nil writes nothing
	err       error     // of log
	served    []lab.Served
	stages    map[lab.Stage]int
	firstMiss string
	rules     []string // of misses, each once
	failed    int      // requests that their origins did not answer
	firstFail string
}

// NewTally returns a tally of no requests; log may be nil.
func NewTally(log io.Writer) *Tally { return &Tally{log: log, stages: map[lab.Stage]int{}} }

// Add counts a request. It may be called from several goroutines.
func (t *Tally) Add(s lab.Served) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stages[s.Stage]++
	if s.Stage == lab.StageMiss && t.firstMiss == "" {
		t.firstMiss = s.Method + " " + s.URL
	}
	const mostRules = 5
	if s.Rule != "" && len(t.rules) < mostRules && !slices.Contains(t.rules, s.Rule) {
		t.rules = append(t.rules, s.Rule)
	}
	if s.Stage == lab.StageLive && s.Error != "" && !s.Aborted {
		if t.failed++; t.failed == 1 {
			t.firstFail = s.Method + " " + s.URL + ": " + s.Error
		}
	}
	t.served = append(t.served, lab.Served{Stage: s.Stage, Score: s.Score}) // the rest is only for the log
	if t.log != nil {
		t.err = errors.Join(t.err, json.NewEncoder(t.log).Encode(s))
	}
}

// Err returns the errors of writing the log.
func (t *Tally) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Misses returns how many requests matched nothing, and the first of them.
func (t *Tally) Misses() (n int, first string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stages[lab.StageMiss], t.firstMiss
}

// Rules returns rules that would have answered misses, see lab.Served: at most five.
func (t *Tally) Rules() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.rules)
}

// Failures returns how many requests could not be fetched from their origins, and the first of them with
// the reason.
func (t *Tally) Failures() (n int, first string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed, t.firstFail
}

// Matches says how the requests of a replay were matched.
type Matches struct {
	Requests   int               `json:"requests"`
	Stages     map[lab.Stage]int `json:"stages"`
	Confidence float64           `json:"replay_confidence"` // see lab.ReplayConfidence

	counted int // requests that the confidence counts
}

// Matches sums up.
func (t *Tally) Matches() Matches {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := Matches{Requests: len(t.served), Stages: maps.Clone(t.stages)}
	m.Confidence, m.counted = lab.ReplayConfidence(t.served)
	return m
}

func (m Matches) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests", m.Requests)
	for _, stage := range []lab.Stage{lab.StageExact, lab.StageSequence, lab.StageNormalised, lab.StageFuzzy, lab.StageMiss,
		lab.StageLive, lab.StageBox} {
		if n := m.Stages[stage]; n > 0 {
			fmt.Fprintf(&b, ", %d %s", n, stage)
		}
	}
	if m.counted > 0 {
		fmt.Fprintf(&b, "; replay_confidence %.3f", m.Confidence)
	}
	return b.String()
}
