package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// TestReplayWhereItWasRecorded: a page that Firefox saved two hours east of Greenwich, for somebody who reads
// German, has that time and those languages in a replay.
func TestReplayWhereItWasRecorded(t *testing.T) {
	testlab.Long(t, "conformance cases replay with zone and languages")
	needLab(t)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	const page = "http://www.a.test/"
	har := `{"log":{"version":"1.2","creator":{"name":"Firefox","version":"153"},"entries":[{"startedDateTime":"2026-06-02T03:04:05.678+02:00",
"request":{"method":"GET","url":"` + page + `","httpVersion":"HTTP/1.1","headers":[{"name":"Accept-Language","value":"de-DE,de;q=0.8"}]},
"response":{"status":200,"httpVersion":"HTTP/1.1","headers":[{"name":"Content-Type","value":"text/html"}],"content":{"mimeType":"text/html","text":
"<!doctype html><link rel=icon href='data:,'><script>fetch('/said?zone='+new Date().getTimezoneOffset()+'&languages='+navigator.languages)</script>"}}}]}}`
	if err := os.WriteFile(in("a.har"), []byte(har), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := finishCmd(t, appliance(t, "archive", "import", in("a.wacz"), in("a.har"))); got.status != exitGood {
		t.Fatalf("import: status %d: %s%s", got.status, got.out, got.err)
	}
	got := finishCmd(t, appliance(t, "replay", "--archive", in("a.wacz"), "--still", "500ms", "--log", in("log"), page))
	log, err := os.ReadFile(in("log"))
	if err != nil || !strings.Contains(string(log), "zone=-120&languages=de-DE,de") && !strings.Contains(string(log), `zone=-120\u0026languages=de-DE,de`) {
		t.Errorf("the page says of itself %s (%v; status %d: %s%s); want zone=-120 and de-DE,de", log, err, got.status, got.out, got.err)
	}
	if !strings.Contains(got.err, "the recording was imported") {
		t.Errorf("replay said %q; want that requests are matched loosely", got.err)
	}
}
