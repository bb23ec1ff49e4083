package archive

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A HAR in the form in which Chrome's developer tools save it after a reload: the document is a 304
// with content, and a WebSocket has messages.
func TestChromeReload(t *testing.T) {
	a, err := Open("testdata/chrome-reload.har")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 3, 4, 10, 20, 30, 399e6, time.UTC)
	if got := a.Options(); !got.Wall.Equal(begin) || got.Software != "WebInspector 537.36" {
		t.Errorf("Options() = %+v; want the wall clock %v and the creator", got, begin)
	}
	if d := cmp.Diff([]Page{{URL: "https://shop.example/", Wall: begin.Add(time.Millisecond)}}, a.Pages()); d != "" {
		t.Errorf("pages (-want +got):\n%s", d)
	}
	if len(a.Exchanges()) != 4 {
		t.Fatalf("%d exchanges, want 4; %q", len(a.Exchanges()), a.Warnings())
	}
	page, socket := a.Exchanges()[0], a.Exchanges()[2]
	if page.Status != 200 || page.Response.Get("Content-Type") != "text/html" || page.Response.Get("ETag") != `"v1"` ||
		len(page.Response.Body) != 55 || page.Request.Get("If-None-Match") != "" {
		t.Errorf("the document is %+v; want a 200 of text/html with 55 bytes, asked for without a condition", page)
	}
	want := []lab.SocketPiece{
		{At: 100 * time.Millisecond, Device: true, Data: []byte("\x81\x88\x00\x00\x00\x00hello é")},
		{At: 150 * time.Millisecond, Data: []byte("\x81\x0b{\"price\":1}")},
		{At: 650 * time.Millisecond, Data: []byte("\x82\x03\x00\xff\x80")},
	}
	near := cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < time.Millisecond })
	if d := cmp.Diff(want, socket.Socket, near); d != "" {
		t.Errorf("socket (-want +got):\n%s", d)
	}
	if socket.URL != "https://shop.example/live?room=1" || socket.Status != 101 || socket.Response.Get("Sec-WebSocket-Extensions") != "" ||
		socket.Response.Get("Sec-WebSocket-Accept") == "" || socket.FirstByte != socket.Socket[0].At {
		t.Errorf("the socket is %+v; want a handshake at https: without extensions", socket)
	}
	notes := []string{
		"1 × answered 304 with content, taken as 200: the browser had it in its cache (entry 0 https://shop.example/)",
		`1 × left out: the scheme "data" is not http or https (entry 2 data:image/gif;base64,R0lGODlhAQABAAAAACw=)`,
		`1 × a message of a WebSocket left out: it is of type "error", which is neither send nor receive (entry 3 wss://shop.example/live?room=1)`,
		"1 × added with an empty answer (204): browsers ask for icons by themselves, and tools do not save them (icon https://shop.example/favicon.ico)",
	}
	if d := cmp.Diff(notes, a.Warnings()); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
	if q := Assess(a); q.Score != 1 || len(q.Problems) != len(notes) {
		t.Errorf("Assess() = %+v; want the score 1 and a note for each of %d", q, len(notes))
	}
	kept := imported(t, a)
	if d := cmp.Diff(notes, kept.Options().Imported); d != "" {
		t.Errorf("what the saved archive says of its import (-want +got):\n%s", d)
	}
	if q := Assess(kept); q.Score != 1 || len(q.Problems) != len(notes) || q.Problems[0].Kind != "import" {
		t.Errorf("Assess() of the saved archive = %+v; want the score 1 and a note for each of %d", q, len(notes))
	}
	if d := cmp.Diff(a.Exchanges(), kept.Exchanges(), addrEqual, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("saved and opened (-want +got):\n%s", d)
	}
}

// TestChromiumReload: what the network panel of Chromium 156 saved of a page with a script, a style
// sheet, a POST and a WebSocket after a reload. Its "wait" of a WebSocket is the time to the last message.
func TestChromiumReload(t *testing.T) {
	a, err := Open("testdata/chromium156-reload.har")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range a.Exchanges() {
		got = append(got, fmt.Sprint(e.Method, " ", e.URL, " ", e.Status, " ", e.Response.Get("Content-Type"), " ", len(e.Response.Body)))
	}
	want := []string{
		"GET http://shop.example/ 200 text/html 201", "GET http://shop.example/a.css 200 text/css 25", "GET http://shop.example/a.js 200 text/javascript 407",
		"POST http://shop.example/api 200 application/json 11", "GET http://shop.example/live?room=1 101  0", "GET http://shop.example/favicon.ico 204  0",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("exchanges (-want +got):\n%s", d)
	}
	socket := a.Exchanges()[4]
	if n := len(socket.Socket); n != 6 || socket.Socket[2].At-socket.Socket[0].At < 50*time.Millisecond ||
		socket.Socket[4].At-socket.Socket[2].At < 100*time.Millisecond {
		t.Errorf("the socket has %+v; want 6 messages, those of the server 100 ms apart", socket.Socket)
	}
	if q := Assess(a); q.Score != 1 {
		t.Errorf("Assess() = %+v; want the score 1", q)
	}
	first := exported(t, imported(t, a))
	read, err := openText(t, first)
	if err != nil {
		t.Fatal(err)
	}
	if second := exported(t, imported(t, read)); first != second {
		t.Errorf("the second export differs (-first +second):\n%s", cmp.Diff(first, second))
	}
}

// Icons are those that the document names at its own origin.
func TestIcons(t *testing.T) {
	for body, want := range map[string]string{
		"<p>": "[https://a.example/favicon.ico]",
		`<link rel="shortcut icon" href="i.png#x"><link rel=icon href=data:,x>`: "[https://a.example/b/i.png]",
		`<link rel=icon href="https://cdn.example/i.png">`:                      "[]",
		`<link rel=apple-touch-icon href=i.png>`:                                "[https://a.example/favicon.ico]",
	} {
		if got := fmt.Sprint(icons(&lab.Exchange{URL: "https://a.example/b/", Response: lab.Message{Body: []byte(body)}})); got != want {
			t.Errorf("icons(%s) = %s, want %s", body, got, want)
		}
	}
}

// imported saves what was opened as an archive and opens that.
func imported(t *testing.T, a *Archive) *Archive {
	t.Helper()
	a, err := a.Import()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.wacz")
	if err := Save(path, a); err != nil {
		t.Fatal(err)
	}
	if a, err = Open(path); err != nil {
		t.Fatal(err)
	}
	return a
}

// deflated is a message as permessage-deflate sends it, with the window of those before.
func deflated(t *testing.T, messages ...string) (out [][]byte) {
	t.Helper()
	var b bytes.Buffer
	z, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		b.Reset()
		if _, err := z.Write([]byte(m)); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
		payload := strings.TrimSuffix(b.String(), "\x00\x00\xff\xff")
		frame := appendFrame(nil, opText, false, []byte(payload))
		frame[0] |= 0x40
		out = append(out, frame)
	}
	return out
}

// everything is a recording with all that an archive can keep.
func everything(t *testing.T) *Archive {
	t.Helper()
	list := sample()
	add := func(e *lab.Exchange) {
		e.Order, e.Wall, e.Start, e.Method = len(
			list,
		)+1, wall.Add(
			time.Duration(len(list))*time.Second,
		), time.Duration(
			len(list),
		)*time.Second, "GET"
		list = append(list, e)
	}
	packed := deflated(t, "one and one", "one and one and one", "")
	split := append(bytes.Clone(packed[1]), packed[2]...)
	add(&lab.Exchange{
		URL: "https://www.example.com/live?b=2&a=1&a=%C3%A9", Protocol: "http/1.1", TLS: "tls/1.3", Status: 101, Reason: "Switching Protocols", OriginClosed: true,
		Request: lab.Message{Header: []lab.HeaderField{{Name: "Upgrade", Value: "websocket"}}},
		Response: lab.Message{Header: []lab.HeaderField{
			{
				Name:  "Upgrade",
				Value: "websocket",
			}, {Name: "Sec-WebSocket-Accept", Value: "x"}, {Name: "Sec-WebSocket-Extensions", Value: "permessage-deflate"},
		}},
		Socket: []lab.SocketPiece{
			{At: 5e6, Data: packed[0]}, {At: 6e6, Data: split[:7]}, {At: 9e6, Data: split[7:]},
			{At: 10e6, Device: true, Data: []byte("\x82\x83\x01\x02\x03\x04\x01\x02\x03")},
			{At: 11e6, Device: true, Data: []byte("\x01\x81\x00\x00\x00\x00a\x80\x81\x00\x00\x00\x00b")},
			{At: 12e6, Data: []byte("\x88\x02\x03\xe8")}, {At: 12e6, Data: []byte("\x89\x7e")},
		},
	})
	add(
		&lab.Exchange{
			URL:      "https://www.example.com/poll?since=1",
			Protocol: "h2",
			TLS:      "tls/1.3",
			Request:  lab.Message{Header: []lab.HeaderField{{Name: "accept", Value: "*/*"}}},
		},
	)
	add(&lab.Exchange{
		URL: "https://www.example.com/events", Protocol: "h2", TLS: "tls/1.2", Status: 200, Truncated: "time",
		Response: lab.Message{
			Header: []lab.HeaderField{{Name: "content-type", Value: "text/event-stream"}},
			Body:   []byte("data: 1\n\ndata: 2\n\n"),
		},
		FirstByte: 3e6, Chunks: []lab.Chunk{{At: 4e6, Bytes: 9}, {At: 7e9, Bytes: 9}},
		Interim: []lab.Interim{{At: 1e6, Status: 103, Header: []lab.HeaderField{{Name: "link", Value: "</a.css>; rel=preload"}}}},
	})
	packedBody := gzipped(t, "a text of UTF-8: é")
	add(&lab.Exchange{
		URL: "http://www.example.com/gzip|x#no", Protocol: "http/1.0", Status: 200, Reason: "Fine",
		Response: lab.Message{
			Header: []lab.HeaderField{
				{Name: "Content-Encoding", Value: "gzip"},
				{Name: "content-type", Value: "text/plain; charset=UTF-8"},
			},
			Body: packedBody,
		},
		Chunks: []lab.Chunk{{At: 2e6, Bytes: 1}, {At: 3e6, Bytes: len(packedBody) - 1}},
	})
	add(&lab.Exchange{
		URL: "http://www.example.com/broken", Protocol: "http/1.1", Status: 200, Chunks: []lab.Chunk{{At: 2e6, Bytes: 6}},
		Response: lab.Message{Header: []lab.HeaderField{{Name: "Content-Encoding", Value: "gzip"}}, Body: []byte("broken")},
	})
	for i, e := range list {
		e.ID, e.URL = fmt.Sprint("urn:x:", i), strings.TrimSuffix(e.URL, "#no")
	}
	return New(list, sampleDNS(), []Page{{URL: "https://www.example.com/a?id=5&cb=9", Title: "A page", Wall: wall}}, CreateOptions{
		Software: "test 1", Wall: wall, Title: "A title", Seed: 1<<63 + 5, PageDate: pageDate,
		Rules: []Rule{{URL: "*", Ignore: []string{"cb"}}}, Imported: []string{"1 × left out"},
	})
}

// TestHARFixedPoint: an export that is imported again is the same archive, and its export is the same
// file, also when it was an archive on disk in between.
func TestHARFixedPoint(t *testing.T) {
	a := everything(t)
	first := exported(t, a)
	read, err := openText(t, first)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Warnings()) > 0 {
		t.Errorf("Warnings() = %q, want none", read.Warnings())
	}
	for name, b := range map[string]*Archive{"opened": read, "imported": imported(t, read)} {
		if d := cmp.Diff(a.Exchanges(), b.Exchanges(), addrEqual, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: exchanges (-want +got):\n%s", name, d)
		}
		if d := cmp.Diff(a.Options(), b.Options()); d != "" {
			t.Errorf("%s: options (-want +got):\n%s", name, d)
		}
		if d := cmp.Diff(a.DNS(), b.DNS(), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: DNS (-want +got):\n%s", name, d)
		}
		if d := cmp.Diff(a.Pages(), b.Pages()); d != "" {
			t.Errorf("%s: pages (-want +got):\n%s", name, d)
		}
		if second := exported(t, b); second != first {
			t.Errorf("%s: the second export differs (-first +second):\n%s", name, cmp.Diff(first, second))
		}
	}
}

// What other tools see of a WebSocket: whole messages, unmasked and decompressed.
func TestHARMessages(t *testing.T) {
	a := everything(t)
	got, err := messagesOf(a.Exchanges()[4], harBody)
	if err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) harFloat { return harFloat(seconds(a.Exchanges()[4].Wall.Add(d))) }
	want := []harMessage{
		{"receive", at(5e6), opText, "one and one"}, {"receive", at(9e6), opText, "one and one and one"}, {"receive", at(9e6), opText, ""},
		{"send", at(10e6), opBinary, "AAAA"}, {"send", at(11e6), opText, "ab"}, {"receive", at(12e6), opClose, "A+g="},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("messages (-want +got):\n%s", d)
	}
	text := exported(t, a)
	for name, edited := range map[string]string{
		"without our fields":   withoutOwn(text),
		"with an edited field": strings.Replace(text, `"data": "ab"`, `"data": "ba"`, 1),
	} {
		b, err := openText(t, edited)
		if err != nil {
			t.Fatal(err)
		}
		var e *lab.Exchange
		for _, x := range b.Exchanges() {
			if x.Status == 101 {
				e = x
			}
		}
		again, err := messagesOf(e, harBody)
		if err != nil || e.Response.Get("Sec-WebSocket-Extensions") != "" || len(again) != len(want) {
			t.Fatalf("%s: %+v, %v of %+v; want %d messages without an extension", name, again, err, e, len(want))
		}
		for i, m := range again {
			if w := want[i]; m.Type != w.Type || m.Opcode != w.Opcode || m.Data != w.Data && m.Data != "ba" || m.Time < w.Time-1e-3 ||
				m.Time > w.Time+1e-3 {
				t.Errorf("%s: message %d is %+v, want %+v", name, i, m, w)
			}
		}
	}
	for _, bad := range []string{"\xf1\x00", "\x80\x00", "\xc1\x01x", "\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff"} {
		e := &lab.Exchange{
			Status:   101,
			Wall:     wall,
			Socket:   []lab.SocketPiece{{Data: []byte("\x81\x01a" + bad)}},
			Response: lab.Message{Header: []lab.HeaderField{{Name: "Upgrade", Value: "websocket"}}},
		}
		if h := harEntryOf(e, harBody, &lateTexts{from: harLong}); !strings.HasPrefix(string(h.Comment), "messages after these 1 are left out: ") {
			t.Errorf("frames %q: comment %q; want it to say what is left out", bad, h.Comment)
		}
	}
}

// An edited body goes before the one that was on the wire.
func TestHAREditedBody(t *testing.T) {
	text := strings.Replace(exported(t, everything(t)), "a text of UTF-8: é", "another text", 1)
	a, err := openText(t, text)
	if err != nil {
		t.Fatal(err)
	}
	e := a.Exchanges()[7]
	if string(e.Response.Body) != "another text" || e.Response.Get("Content-Encoding") != "" || len(e.Chunks) != 1 ||
		e.Chunks[0].At != 3e6 {
		t.Errorf("the edited exchange is %+v; want the new text, one piece at 3 ms, and no content coding", e)
	}
}

// Times of messages that are no dates are those between messages.
func TestMessageTimes(t *testing.T) {
	for _, x := range []struct {
		times []float64
		want  string
	}{
		{[]float64{1000.1, 1000.5, 1000.4}, "[100ms 500ms 500ms]"},
		{[]float64{1000, 1000.001, 999.5}, "[0s 1ms 1ms]"},
		{[]float64{7, 7.5}, "[20ms 520ms]"},
		{[]float64{0, 0}, "[20ms 20ms]"},
		{[]float64{5e9, 6e12}, "[20ms 24h0m0s]"},
		{nil, "[]"},
	} {
		var list []harMessage
		for _, at := range x.times {
			list = append(list, harMessage{Time: harFloat(at)})
		}
		if got := fmt.Sprint(messageTimes(list, 1000, 20*time.Millisecond)); got != x.want {
			t.Errorf("messageTimes(%v) = %s, want %s", x.times, got, x.want)
		}
	}
}

// Extensions in another form than ours are noted, and the rest of the entry is used.
func TestHARForeignExtensions(t *testing.T) {
	entry := func(more, url, status string) string {
		return `{"startedDateTime":"2026-01-02T03:04:05Z",` + more + `"request":{"method":"GET","url":"` + url + `"},"response":{"status":` + status + `,"content":{}}}`
	}
	text := harHead + strings.Join([]string{
		entry(`"_eidetic":7,"pageref":3,"_resourceType":{},`, "http://a/0", "200"),
		entry(`"_eidetic":{"v":2,"id":"urn:x"},`, "http://a/1", "200"),
		entry(`"_resourceType":"websocket",`, "ws://a/2", "101"),
		entry(`"_webSocketMessages":"none",`, "ws://a/3", "101"),
		entry(`"_webSocketMessages":[{"type":"send","time":1,"opcode":2,"data":"?"}],`, "https://a/4", "101"),
		entry(``, "http://a/5", "304"),
	}, ",") + `],"_eidetic":{"v":1,"seed":"x"},"pages":[{"id":"p","title":"A title"},{"id":"q","title":"http://a/5"}]}}`
	a, err := openText(t, text)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`1 × with an _eidetic of the log that is not used: its seed "x" is not a number (log)`,
		"1 × with an _eidetic that is not used: json: cannot unmarshal number into Go value of type archive.harOwn (entry 0 http://a/0)",
		"1 × with an _eidetic that is not used: version 2 of the exchange's metadata is unknown (this program reads version 1) (entry 1 http://a/1)",
		"1 × a WebSocket without messages, which stays silent: Chrome saves them, Firefox does not (entry 2 ws://a/2)",
		"1 × a WebSocket whose messages have an unknown form, which stays silent (entry 3 ws://a/3)",
		"1 × a message of a WebSocket left out: its data, of opcode 2, is not base64 (entry 4 https://a/4)",
		"1 × left out: it has neither an entry nor a URL (page p A title)",
		"1 × whose document is a 304 without content, so that it cannot be replayed: disable the cache in the developer tools, and save the HAR again (page http://a/5)",
	}
	if d := cmp.Diff(want, a.Warnings()); d != "" || len(a.Exchanges()) != 6 {
		t.Errorf("%d exchanges, want 6; warnings (-want +got):\n%s", len(a.Exchanges()), d)
	}
}

// Notes are counted by reason, and what a hostile file has is bounded.
func TestHARNotes(t *testing.T) {
	var n harNotes
	for i := range 500 {
		n.add(fmt.Sprint("entry ", i), strings.Repeat("x", 1000), fmt.Sprint("left out: ", i))
	}
	for range 7 {
		n.add("entry 0", "http://a/", "left out: 0")
	}
	lines := n.lines()
	if len(lines) != 51 || !strings.HasPrefix(lines[0], "8 × left out: 0 (entry 0 xxx") || !strings.HasSuffix(lines[0], ", and 5 more)") ||
		!strings.HasPrefix(lines[50], "450 × "+otherReasons) || len(lines[50]) > 500 {
		t.Errorf("%d lines: first %q, last %q; want 51, with counts and some examples", len(lines), lines[0], lines[len(lines)-1])
	}
}

// What an import finds nothing in, it says.
func TestNothingToReplay(t *testing.T) {
	meta := [2]string{"WARC-Type: metadata\nWARC-Target-URI: http://a.example/1", "fetchTimeMs: 5"}
	for _, x := range []struct{ text, says string }{
		{string(warcText([2]string{"WARC-Type: warcinfo", "software: x"}, meta, meta, [2]string{"WARC-Type: resource\nWARC-Target-URI: ftp://a.example/x", "x"})),
			"a WARC of 4 records (2 metadata, 1 resource (ftp:), 1 warcinfo) without an answer to an HTTP request"},
		{string(warcText([2]string{"WARC-Type: response\nWARC-Target-URI: http://a.example/1", "nonsense"})), "a WARC of 1 records (1 response), of which none can be replayed: record 1"},
		{harHead + `]}}`, "a HAR with no entries"},
		{`[{"log":{"entries":[]}}]`, "a HAR with no entries"},
		{"[ ]\n", "a HAR with no entries"},
		{harHead + `{"request":{"method":"GET","url":"about:blank"}}]}}`, `all 1 entries are left out: 1 × left out: the scheme "about"`},
	} {
		a, err := openText(t, x.text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = a.Import(); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("Import() of %.40q: %v; want an error with %q", x.text, err, x.says)
		}
	}
	for _, text := range []string{`[{"log":{}}]`, `[{"a":1}]`, `{"log":{}}`} {
		if _, err := openText(t, text); err == nil || !strings.Contains(err.Error(), "has neither log.entries nor Requests") {
			t.Errorf("open %s: %v; want an error that says that it is not a HAR", text, err)
		}
	}
	arc := "filedesc://a.arc 0.0.0.0 20080101000000 text/plain 73\n1 0 Internet Archive\nURL IP-address Archive-date Content-type Archive-length\n"
	for _, text := range []string{arc, string(gzipped(t, arc))} {
		if _, err := openText(t, text); err == nil || !strings.Contains(err.Error(), "ARC file") ||
			!strings.Contains(err.Error(), "warcio recompress") {
			t.Errorf("open an ARC: %v; want an error that says so", err)
		}
	}
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// FuzzMessages: any bytes of a WebSocket can be exported, and are read back.
func FuzzMessages(f *testing.F) {
	f.Add([]byte("\x81\x01a\x82\x83\x01\x02\x03\x04\x01\x02\x03"), "")
	f.Add([]byte("+\x00000000"), "0")
	f.Add([]byte("\x01\x01a\x89\x00\x80\x01b\x88\x02\x03\xe8"), "")
	f.Add([]byte("\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00\xc1\x05\xf2\x00\x11\x00\x00"), "permessage-deflate")
	f.Fuzz(func(t *testing.T, data []byte, extension string) {
		defer testlab.Input(t)()
		e := &lab.Exchange{
			ID:       "urn:x",
			Method:   "GET",
			URL:      "https://a.example/",
			Status:   101,
			Wall:     wall,
			Protocol: "http/1.1",
			Response: lab.Message{Header: []lab.HeaderField{
				{
					Name:  "Upgrade",
					Value: "websocket",
				}, {Name: "Sec-WebSocket-Extensions", Value: strings.TrimSpace(strings.ToValidUTF8(oneLine(extension), ""))},
			}},
		}
		half := len(data) / 2
		e.Socket = []lab.SocketPiece{{At: 1e6, Data: data[:half]}, {At: 2e6, Device: true, Data: data}, {At: 3e6, Data: data[half:]}}
		before, _ := messagesOf(e, 1<<20)
		a, err := openText(t, exported(t, New([]*lab.Exchange{e}, nil, nil, CreateOptions{Wall: wall})))
		if err != nil {
			t.Fatal(err)
		}
		after, _ := messagesOf(a.Exchanges()[0], 1<<20)
		if d := cmp.Diff(before, after, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("messages (-exported +imported):\n%s", d)
		}
	})
}
