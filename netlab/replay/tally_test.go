package replay

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

func TestTally(t *testing.T) {
	var log bytes.Buffer
	tally := NewTally(&log)
	for _, s := range []lab.Served{
		{Stage: lab.StageExact, Score: 1}, {Stage: lab.StageExact, Score: 1}, {Stage: lab.StageMiss, Method: "GET", URL: "https://x.test/a", Rule: "--url 'x*' --ignore 't'"},
		{Stage: lab.StageMiss, Method: "GET", URL: "https://x.test/b", Rule: "--url 'x*' --ignore 't'"}, {Stage: lab.StageBox},
	} {
		tally.Add(s)
	}
	if got, want := tally.Matches().String(), "5 requests, 2 exact, 2 miss, 1 box; replay_confidence 0.500"; got != want {
		t.Errorf("Matches() = %q; want %q", got, want)
	}
	if n, first := tally.Misses(); n != 2 || first != "GET https://x.test/a" {
		t.Errorf("Misses() = %d, %q; want 2 and the first", n, first)
	}
	if got := tally.Rules(); len(got) != 1 || got[0] != "--url 'x*' --ignore 't'" {
		t.Errorf("Rules() = %q; want the rule of both misses, once", got)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 5 || tally.Err() != nil {
		t.Errorf("the log has %d lines, error %v; want 5, nil", lines, tally.Err())
	}
	if got, want := NewTally(nil).Matches().String(), "0 requests"; got != want {
		t.Errorf("Matches() of nothing = %q; want %q", got, want)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestTallyKeepsErrorsOfItsLog(t *testing.T) {
	tally := NewTally(fullDisk{})
	tally.Add(lab.Served{Stage: lab.StageExact, Score: 1})
	if err := tally.Err(); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("Err() = %v; want that of the log", err)
	}
}
