package credentials

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

func TestAuditSurvivesARestart(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	s := c.open(t, dir)
	s.Record(Identity{Name: "nightly"}, "POST /api/v1/runs", "192.0.2.7", 202)
	s.Token("nope", "192.0.2.8")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, auditFile)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"time":"2027-01-`); err != nil { // a power cut
		t.Fatal(err)
	}
	_ = f.Close()
	s = c.open(t, dir)
	s.Record(Identity{Name: OwnToken}, "DELETE /api/v1/runs/x", "192.0.2.9", 204)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got := c.open(t, dir).Events(MaxEvents)
	want := []Act{
		{c.at, OwnToken, "DELETE /api/v1/runs/x", "192.0.2.9", 204},
		{c.at, "", "a wrong token", "192.0.2.8", 401},
		{c.at, "nightly", "POST /api/v1/runs", "192.0.2.7", 202},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("Events() = %v, want %v", got, want)
	}
	if one := c.open(t, dir).Events(1); len(one) != 1 || one[0] != want[0] {
		t.Errorf("Events(1) = %v, want the newest", one)
	}
}

func TestAuditIsBounded(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	s := c.open(t, dir)
	long := strings.Repeat("ä", 10_000)
	for i := range 3 * maxAudit / maxText {
		s.Record(Identity{Name: long}, fmt.Sprint(i, long), long, 200)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	if sum > 2*maxAudit || len(s.Events(MaxEvents)) != MaxEvents {
		t.Errorf("%d bytes in %d files and %d events, want at most %d bytes and %d events", sum, len(files), len(s.Events(MaxEvents)),
			2*maxAudit, MaxEvents)
	}
	if got := len(c.open(t, dir).Events(MaxEvents)); got < MaxEvents/2 {
		t.Errorf("%d events after a restart, want at least those of a whole file", got)
	}
}

// A guesser, and many at once, leave few entries; what is left out is said.
func TestStrangersDoNotFillTheLog(t *testing.T) {
	c := newClock()
	s := c.open(t, "")
	for range 1000 {
		s.Token("nope", "192.0.2.7")
	}
	if got := len(s.Events(MaxEvents)); got != 10 {
		t.Errorf("1000 wrong tokens of one address are %d entries, want 10", got)
	}
	for i := range 1000 {
		s.Token("nope", fmt.Sprintf("10.0.%d.%d", i/256, i%256))
	}
	if got := len(s.Events(MaxEvents)); got != oftenPerMinute {
		t.Errorf("%d entries in a minute, want %d", got, oftenPerMinute)
	}
	c.at = c.at.Add(2 * time.Minute)
	s.Token("nope", "198.51.100.1")
	if got := s.Events(1)[0].What; !strings.Contains(got, "980 such entries were left out") {
		t.Errorf("the next entry says %q, want how many were left out", got)
	}
}

// The holder of a token, refused a thousand things or doing one thing a thousand times, drives nothing else out of the
// log, which says how much it leaves out.
func TestTokensDoNotFillTheLog(t *testing.T) {
	c := newClock()
	s := c.open(t, "")
	guest, nightly := Identity{Name: "guest", Scope: Read}, Identity{Name: "nightly", Scope: Run}
	s.Record(nightly, "PUT /api/v1/archives/shop.wacz", "192.0.2.7", http.StatusCreated)
	for i := range MaxEvents {
		s.Record(guest, fmt.Sprintf("PUT /api/v1/config/%d", i), "192.0.2.8", http.StatusForbidden)
		s.Record(nightly, "POST /api/v1/runs/demo/annotations", "192.0.2.7", http.StatusNoContent)
	}
	s.Record(nightly, "POST /api/v1/runs: one", "192.0.2.7", http.StatusAccepted)
	all := s.Events(MaxEvents)
	if len(all) != 2*oftenPerMinute+2 || all[0].What != "POST /api/v1/runs: one" || all[len(all)-1].What != "PUT /api/v1/archives/shop.wacz" {
		t.Errorf("%d entries, from %q to %q; want %d of the flood between two others", len(all), all[len(all)-1].What, all[0].What, 2*oftenPerMinute)
	}
	c.at = c.at.Add(2 * time.Minute)
	s.Record(guest, "PUT /api/v1/config", "192.0.2.8", http.StatusForbidden)
	if got := s.Events(1)[0]; got.Who != "guest" || got.What != "PUT /api/v1/config; 970 such entries were left out before" {
		t.Errorf("the next entry is %+v; want the token, and how many were left out", got)
	}
}

// Somebody with a token who does thousands of different things drives what others did neither out of the list nor, over a
// restart, out of the files.
func TestOneTokenTakesItsShareOfTheLog(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	s := c.open(t, dir)
	const others = 100
	for i := range others {
		s.Record(Identity{Name: "nightly"}, fmt.Sprintf("PUT /api/v1/archives/%d.wacz", i), "192.0.2.7", http.StatusCreated)
	}
	for i := range 4 * maxAudit / 100 {
		s.Record(Identity{Name: "flood"}, fmt.Sprintf("PUT /api/v1/workflows/w%d", i), "192.0.2.8", http.StatusOK)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for when, s := range map[string]*Store{"before": s, "after": c.open(t, dir)} {
		of := map[string]int{}
		for _, e := range s.Events(MaxEvents) {
			of[e.Who]++
		}
		if of["nightly"] != others || of["flood"] != MaxEvents-others {
			t.Errorf("%s the restart there are %v; want all %d of nightly, and the rest of flood", when, of, others)
		}
	}
}

// How many entries were left out is said, also after a long text, and of kinds that are not counted any more.
func TestWhatIsLeftOutIsSaid(t *testing.T) {
	c := newClock()
	s := c.open(t, "")
	ada, bob := Identity{Name: "ada"}, Identity{Name: "bob"}
	long := "PUT /api/v1/archives/" + strings.Repeat("ä", maxText)
	for range oftenPerMinute + 7 {
		s.Record(ada, long, "192.0.2.7", http.StatusCreated)
	}
	c.at = c.at.Add(2 * time.Minute)
	s.Record(ada, long, "192.0.2.7", http.StatusCreated)
	if got := s.Events(1)[0].What; !strings.HasSuffix(got, "…; 7 such entries were left out before") || len(got) > maxText {
		t.Errorf("the next entry of a long text is %q; want how many were left out, in at most %d bytes", got, maxText)
	}
	for range oftenPerMinute + 9 {
		s.Record(bob, "POST /api/v1/runs/demo/annotations", "192.0.2.8", http.StatusNoContent)
	}
	for i := range mostKinds {
		s.Record(ada, fmt.Sprintf("PUT /api/v1/workflows/w%d", i), "192.0.2.7", http.StatusOK)
	}
	said := 0
	for _, e := range s.Events(MaxEvents) {
		if strings.HasSuffix(e.What, "; 9 of other kinds were left out before") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("%d entries say how many were left out of kinds that are forgotten, want 1", said)
	}
}

func FuzzDecodeEvent(f *testing.F) {
	f.Add([]byte(`{"time":"2027-01-15T08:00:00Z","who":"box","what":"POST /api/v1/runs","from":"192.0.2.7","status":202}`))
	f.Add([]byte(`{"time":"2027-01-`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, line []byte) {
		defer testlab.Input(t)()
		if e, ok := decodeEvent(line); ok && len(e.Who)+len(e.What)+len(e.From) > 3*(maxText+8) {
			t.Errorf("an event of %d bytes", len(e.Who)+len(e.What)+len(e.From))
		}
	})
}
