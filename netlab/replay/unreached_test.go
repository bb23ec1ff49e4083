package replay

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/replay/match"
)

// ownRefusal is an error of the box itself.
type ownRefusal struct{ error }

func (ownRefusal) ByBox() bool { return true }

// TestOriginsThatGiveNoAnswer: whatever keeps an origin from answering is a network error to a page, while it is recorded
// and in a replay. What the box itself refuses is no fact of the page's.
func TestOriginsThatGiveNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool // it is recorded as failed
	}{
		"an unknown authority": {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, true},
		"a certificate wanted": {errors.New("remote error: tls: certificate required"), true},
		"no HTTP":              {errors.New(`malformed HTTP response "220 mail.test"`), true},
		"no route":             {errors.New("connect to cdn.test:443: no route to host"), true}, // as the way out of a namespace tells it
		"the box":              {fmt.Errorf("10.0.0.1: %w", ownRefusal{errors.New("the box does not connect there")}), false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.wacz")
			w, err := archive.Create(path, archive.CreateOptions{Software: "test", Wall: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			rec := NewRecorder(w, roundTrip(func(*http.Request) (*http.Response, error) { return nil, c.err }),
				RecordOptions{Clock: lab.Monotonic, Wall: time.Now})
			ask := func(h http.Handler, url, field, value string) (isBroken bool, status int) {
				defer func() {
					v := recover()
					isBroken = v == http.ErrAbortHandler
					if v != nil && !isBroken {
						panic(v)
					}
				}()
				r := httptest.NewRequest("GET", url, nil)
				r.Header.Set(field, value)
				answer := httptest.NewRecorder()
				h.ServeHTTP(answer, r)
				return false, answer.Code
			}
			asks := [][3]string{{"https://cdn.test/a.png", "Sec-Fetch-Dest", "image"}, {"https://cdn.test/live", "Upgrade", "websocket"}}
			for _, of := range asks {
				isBroken, status := ask(rec, of[0], of[1], of[2])
				if isBroken != c.want || !isBroken && status != http.StatusBadGateway {
					t.Errorf("%s: while recording, the connection breaks: %v, status %d; want %v, or else 502", of[0], isBroken, status, c.want)
				}
			}
			if err := errors.Join(rec.Wait(), w.Close()); err != nil {
				t.Fatal(err)
			}
			a, err := archive.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if !c.want {
				if n := len(a.Exchanges()); n > 0 {
					t.Errorf("%d exchanges were recorded; want none", n)
				}
				return
			}
			s, err := NewSession(a, Options{Clock: lab.Monotonic, Log: func(lab.Served) {}})
			if err != nil {
				t.Fatal(err)
			}
			for _, of := range asks {
				if isBroken, status := ask(s, of[0], of[1], of[2]); !isBroken || s.Stats().Misses > 0 {
					t.Errorf("%s: in a replay, the connection breaks: %v, status %d, %+v; want the same as while recording",
						of[0], isBroken, status, s.Stats())
				}
			}
			asksOther := func(o Options) (isBroken bool, status int) { // it was not asked for while recording
				o.Clock, o.Log = lab.Monotonic, func(lab.Served) {}
				s, err := NewSession(a, o)
				if err != nil {
					t.Fatal(err)
				}
				return ask(s, "https://cdn.test/other.png?t=1", "Sec-Fetch-Dest", "image")
			}
			if isBroken, status := asksOther(Options{}); !isBroken {
				t.Errorf("another request to an origin that answered nothing gets the status %d; want a broken connection", status)
			}
			alive := roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody}, nil
			})
			if isBroken, status := asksOther(Options{Miss: MissLive, Live: alive}); isBroken || status != http.StatusOK {
				t.Errorf("where origins are asked, the connection breaks: %v, status %d; want the origin's 200", isBroken, status)
			}
			if q := archive.Assess(a); len(q.Problems) != 2 || !strings.Contains(q.Problems[0].What, "--trust") {
				t.Errorf("the recording's problems are %+v; want one that names --trust", q.Problems)
			}
		})
	}
}

// TestConditionsOfScripts: a script that asks whether something has changed is answered alike while it is recorded and in
// a replay, and the archive has the complete answer. A document comes with the script, and so does not get a 304 while it
// is recorded.
func TestConditionsOfScripts(t *testing.T) {
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			t.Errorf("the origin is asked with the condition %q; want none", r.Header.Get("If-None-Match"))
		}
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><p>news"))
	}), true)
	asks := []struct{ dest, tag, want string }{
		{"empty", `"v1"`, "304"}, {"empty", `W/"v1"`, "304"}, {"empty", `"v0"`, "200"}, {"document", `"v1"`, "200"},
	}
	ask := func(i int) string {
		h := http.Header{"Sec-Fetch-Dest": {asks[i].dest}, "If-None-Match": {asks[i].tag}, "Accept": {"text/html"}}
		return b.get("GET", "https://www.example.com/news", "", h)
	}
	_, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
	for i, c := range asks {
		if got := ask(i); !strings.HasPrefix(got, "HTTP/2.0 "+c.want) || strings.Contains(got, "news") != (c.want == "200") {
			t.Errorf("%s with the tag %s gets %s; want %s", c.dest, c.tag, got, c.want)
		}
	}
	a := finish()
	for _, e := range a.Exchanges() {
		if e.Status != 200 || !strings.Contains(string(e.Response.Body), "news") {
			t.Errorf("%d with %q was recorded; want the complete answer", e.Status, e.Response.Body)
		}
	}
	b.replay(a, Options{})
	for i, c := range asks[:3] {
		if got := ask(i); !strings.HasPrefix(got, "HTTP/2.0 "+c.want) {
			t.Errorf("in a replay, %s with the tag %s gets %s; want %s", c.dest, c.tag, got, c.want)
		}
	}
}

// TestDictionaries: a document is not taken as its difference from another one, into which no script can be put, and one
// that is recorded so all the same is left as it is. Other answers are taken as the browser takes them (RFC 9842).
func TestDictionaries(t *testing.T) {
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("[" + r.Header.Get("Accept-Encoding") + "]"))
	}), true)
	_, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
	for dest, want := range map[string]string{"document": "[gzip, br, zstd]", "iframe": "[gzip, br, zstd]", "empty": "[gzip, br, zstd, dcb, dcz]"} {
		h := http.Header{"Sec-Fetch-Dest": {dest}, "Accept-Encoding": {"gzip, br, zstd, dcb, dcz"}, "Available-Dictionary": {":AAAA:"}}
		if got := b.get("GET", "https://www.example.com/"+dest, "", h); !strings.Contains(got, want) {
			t.Errorf("for %s the origin is asked with %s; want %s", dest, got, want)
		}
	}
	finish()
	const bytes = "\x5e\x2a\x4d\x18 the difference"
	k := newAsker(t, build(exchange{
		ask: "GET https://a.test/", with: asDocument, answer: bytes, header: "Content-Type: text/html\nContent-Encoding: dcz",
	}), Options{Timing: Timing{Mode: TimingNone}})
	if _, text, _ := k.ask("192.0.2.1", "GET https://a.test/", asDocument, ""); text != bytes {
		t.Errorf("a recorded difference is given as %q; want it as it is", text)
	}
}

// TestBeaconsThatNobodyRecorded: any answer is right to what no script reads, but a GET may be shown by a service worker.
func TestBeaconsThatNobodyRecorded(t *testing.T) {
	const beacon = "Sec-Fetch-Dest: empty\nSec-Fetch-Mode: no-cors"
	for _, c := range []struct {
		ask, with string
		policy    string
		want      lab.Stage
	}{
		{"POST https://rum.test/slow", beacon, "", lab.StageBox},
		{"POST https://rum.test/csp", "Sec-Fetch-Dest: report\nSec-Fetch-Mode: cors", "", lab.StageBox},
		{"POST https://rum.test/slow", beacon, "strict", lab.StageMiss},
		{"POST https://rum.test/slow", "Sec-Fetch-Dest: empty\nSec-Fetch-Mode: cors", "", lab.StageMiss},
		{"GET https://rum.test/slow", beacon, "", lab.StageMiss},
	} {
		k := newAsker(t, build(exchange{ask: "GET https://a.test/", answer: "page"}), Options{Match: match.Policy(c.policy)})
		resp, _, line := k.ask("192.0.2.1", c.ask, c.with, "late")
		if line.Stage != c.want || c.want == lab.StageBox && resp.StatusCode != http.StatusNoContent {
			t.Errorf("%s with %q under %q: %s, %d; want %s", c.ask, c.with, c.policy, line.Stage, resp.StatusCode, c.want)
		}
	}
}
