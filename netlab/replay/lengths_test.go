package replay

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/hop"
	"eidetic/netlab/inject"
)

// TestTrueLength: a length that is the body's stays as it is written, another one is replaced, and what states none is
// none.
func TestTrueLength(t *testing.T) {
	for values, want := range map[string]string{"4": "4", "4, 4": "4, 4", "4|4": "4|4", "0004": "0004", "abc": "abc", "-5": "-5", "99": "4", "4, 5": "4", "": ""} {
		e := &lab.Exchange{Method: "GET", Status: 200}
		e.Response.Body = []byte("text")
		for v := range strings.SplitSeq(values, "|") {
			if v != "" {
				e.Response.Header = append(e.Response.Header, lab.HeaderField{Name: "Content-Length", Value: v})
			}
		}
		var got []string
		for _, f := range trueLength(e) {
			got = append(got, f.Value)
		}
		if text := strings.Join(got, "|"); text != want {
			t.Errorf("the length %q became %q, want %q", values, text, want)
		}
	}
}

// TestReasonOfNone: a status line without a reason has none in a replay either, and HTTP/2 has the usual one.
func TestReasonOfNone(t *testing.T) {
	for protocol, want := range map[string]string{"http/1.1": " ", "http/1.0": " ", "h2": ""} {
		if got := reasonOf(&lab.Exchange{Protocol: protocol}); got != want {
			t.Errorf("%s: %q, want %q", protocol, got, want)
		}
	}
	if got := reasonOf(&lab.Exchange{Protocol: "http/1.1", Reason: "Fine"}); got != "Fine" {
		t.Errorf("a reason became %q", got)
	}
}

// TestAnswersThatNobodyAskedFor: an origin that answers 206 or 304 to a request without a range or a condition does so
// again.
func TestAnswersThatNobodyAskedFor(t *testing.T) {
	k := newAsker(t, build(
		exchange{ask: "GET https://a.test/part", status: 206, answer: "all", header: "Content-Type: text/plain"},
		exchange{ask: "GET https://a.test/same", status: 304},
		exchange{ask: "GET https://a.test/cached", with: "If-None-Match: \"a\"", status: 304},
		exchange{ask: "GET https://a.test/bytes", with: "Range: bytes=0-2", status: 206, answer: "all", header: "Content-Range: bytes 0-2/9"},
	), Options{Timing: Timing{Mode: TimingNone}})
	for path, want := range map[string]int{"part": 206, "same": 304, "cached": 404, "bytes": 404} {
		if r, body, _ := k.ask("192.0.2.1", "GET https://a.test/"+path, "", ""); r.StatusCode != want || want == 206 && body != "all" {
			t.Errorf("%s: %d %q, want %d", path, r.StatusCode, body, want)
		}
	}
}

// TestBodyThatItsOriginCutOff is cut off in each replay, and no failure of the box; one that was not kept whole is.
func TestBodyThatItsOriginCutOff(t *testing.T) {
	k := newAsker(t, build(
		exchange{ask: "GET https://a.test/origin", answer: "half", header: "Content-Length: 8", cut: lab.Disconnected},
		exchange{ask: "GET https://a.test/kept", answer: "half", header: "Content-Length: 8", cut: "length"},
	), Options{Timing: Timing{Mode: TimingNone}})
	if _, body, line := k.ask("192.0.2.1", "GET https://a.test/origin", "", ""); body != "half" || line.Error != "" || line.Why != cutWhy {
		t.Errorf("got %q, told %+v; want what there is, and why", body, line)
	}
	if _, _, line := k.ask("192.0.2.1", "GET https://a.test/kept", "", ""); line.Error == "" {
		t.Errorf("told %+v; want an error", line)
	}
}

// TestTimeOfTheCut: a body is cut off as long after its last piece as in the recording, with or without the script: a
// browser drops what it has not read when a stream of HTTP/2 is reset.
func TestTimeOfTheCut(t *testing.T) {
	reset := make(chan struct{})
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<p>half"))
		w.(http.Flusher).Flush()
		<-reset
		panic(http.ErrAbortHandler)
	}), true)
	_, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://www.example.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := b.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadFull(resp.Body, make([]byte, 1)) // so that the box has the piece
	start := time.Now()
	for time.Since(start) < 2*together { // or both count as one piece
		runtime.Gosched()
	}
	close(reset)
	_, err = io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err == nil {
		t.Error("the device got a whole body; want one that is cut off")
	}
	<-b.logged
	e := finish().Exchanges()[0]
	n := len(e.Chunks)
	if n != 2 || e.Chunks[1].Bytes != 0 || e.Chunks[1].At < e.Chunks[0].At+together {
		t.Fatalf("recorded the pieces %v; want one, and the cut", e.Chunks)
	}
	plan := inject.NewScript(inject.Options{}).Plan(http.MethodGet, e.URL, &lab.Message{}, e.Status, e.Response.Header)
	if plan == nil {
		t.Fatal("the document gets no script")
	}
	stream, err := plan.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	to, err := through(&body{bytes: e.Response.Body, chunks: e.Chunks}, stream)
	if err != nil || to.chunks[len(to.chunks)-1] != e.Chunks[1] {
		t.Errorf("with the script, the pieces are %v, %v; want the cut behind them", to, err)
	}
}

// TestLengthBesideChunks: the chunks of an origin override its length, which the device gets no more.
func TestLengthBesideChunks(t *testing.T) {
	f := &fetch{c: &Recorder{o: RecordOptions{Clock: lab.Monotonic}}, e: &lab.Exchange{}}
	f.headers.Response = []lab.HeaderField{{Name: "Content-Length", Value: "5"}, {Name: "Transfer-Encoding", Value: "chunked"}, {Name: "X", Value: "y"}}
	f.response(&http.Response{StatusCode: 200, Status: "200 OK", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1})
	if got := f.e.Response.Header; len(got) != 1 || got[0].Name != "X" {
		t.Errorf("recorded %v, want X alone", got)
	}
}

// openEnded is a device's connection of HTTP/2.
type openEnded struct {
	*httptest.ResponseRecorder
	isOpen bool
}

func (o *openEnded) LeaveOpen() { o.isOpen = true }

// TestStatedLength: what an origin stated over HTTP/2 is stated again over HTTP/2, with the whole body. Other tools'
// false lengths are mistakes.
func TestStatedLength(t *testing.T) {
	e := &lab.Exchange{
		ID: "urn:1", Method: "GET", URL: "https://a.test/", Status: 200, Protocol: "h2",
		Response: lab.Message{Header: fields("content-length: 3\ncontent-type: text/plain"), Body: []byte("ten bytes!")}, Chunks: []lab.Chunk{{Bytes: 10}},
	}
	for _, c := range []struct {
		name     string
		own      bool
		protocol string
		want     string
	}{{"ours", true, "h2", "3"}, {"ours over HTTP/1.1", true, "http/1.1", "10"}, {"another tool's", false, "h2", "10"}} {
		o := archive.CreateOptions{}
		if c.own {
			o.PageDate = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
		}
		s, err := NewSession(archive.New([]*lab.Exchange{e}, nil, nil, o), Options{Clock: func() lab.Time { return 0 }, Timing: Timing{Mode: TimingNone}})
		if err != nil {
			t.Fatal(err)
		}
		r, _ := http.NewRequestWithContext(hop.WithConn(t.Context(), hop.Conn{Protocol: c.protocol}), "GET", e.URL, nil)
		w := &openEnded{ResponseRecorder: httptest.NewRecorder()}
		s.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Length"); got != c.want || w.Body.String() != "ten bytes!" || w.isOpen != (c.want == "3") {
			t.Errorf("%s: stated %s, sent %q, left open %v; want %s and all ten bytes", c.name, got, w.Body, w.isOpen, c.want)
		}
	}
}
