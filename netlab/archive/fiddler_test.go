package archive

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

// zipText packs names and texts in turn.
func zipText(t testing.TB, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		w, err := z.Create(files[i])
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const fiddlerTimes = `<?xml version="1.0" encoding="utf-8"?><Session SID="2" BitFlags="19"><SessionTimers ClientConnected="2026-03-01T10:00:00.0000000+01:00" ` +
	`ClientBeginRequest="2026-03-01T10:00:00.2500000+01:00" FiddlerBeginRequest="2026-03-01T10:00:00.3000000+01:00" ServerBeginResponse="2026-03-01T10:00:00.5000000+01:00" ` +
	`ServerDoneResponse="2026-03-01T10:00:01.0000000+01:00" /><SessionFlags><SessionFlag N="x-hostip" V="192.0.2.9" /><SessionFlag N="https-Client-SessionID" V="empty" />` +
	`</SessionFlags></Session>`

func TestFiddler(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n<p>x\r\n0\r\n\r\n"
	const frame = "\x81\x02hi"
	a := openOdd(t, zipText(t, "[Content_Types].xml", "<Types/>", "_index.htm", "<html>",
		"raw/10_c.txt", "GET https://f.test/second HTTP/1.1\r\nHost: f.test\r\n\r\n", "raw/10_s.txt", answer,
		"raw/2_c.txt", "POST /first HTTP/1.1\r\nHost: f.test\r\nContent-Length: 3\r\n\r\na=1", "raw/2_s.txt", answer, "raw/2_m.xml", fiddlerTimes,
		"raw/3_c.txt", "CONNECT f.test:443 HTTP/1.1\r\n\r\n", "raw/3_s.txt", "HTTP/1.1 200 Connection Established\r\n\r\n",
		"raw/4_c.txt", "GET http://gone.test/ HTTP/1.1\r\n\r\n", "raw/4_s.txt", "HTTP/1.1 502 Fiddler - DNS Lookup Failed\r\n\r\n[Fiddler] no",
		"raw/5_c.txt", "GET http://f.test/aborted HTTP/1.1\r\n\r\n", "raw/5_s.txt", "",
		"raw/6_c.txt", "GET https://f.test/ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\n", "raw/6_s.txt", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
		"raw/6_m.xml", fiddlerTimes, "raw/6_w.txt", "Fiddler-WebSocket: 1\r\n\r\nResponse-Length: 4\r\nID: 1\r\nBitFlags: 0\r\nDoneRead: 2026-03-01T10:00:02.3000000+01:00\r\n\r\n"+frame+"\r\n"+
			"Request-Length: 4\r\nID: 2\r\nDoneRead: 2026-03-01T10:00:03.3000000+01:00\r\n\r\n"+frame+"\r\n",
		"raw/7_c.txt", "", "raw/7_s.txt", answer,
	))
	got := byURL(a)
	first, second, ws := got["https://f.test/first"], got["https://f.test/second"], got["https://f.test/ws"]
	if first == nil || second == nil || ws == nil || len(got) != 3 {
		t.Fatalf("read %v, told %q; want three", got, a.Warnings())
	}
	if string(first.Request.Body) != "a=1" || string(first.Response.Body) != "<p>x" || first.Order > second.Order || first.FirstByte != 200*time.Millisecond ||
		first.Chunks[0].At != 700*time.Millisecond || first.Server.String() != "192.0.2.9:443" || first.Response.Get("Transfer-Encoding") != "" ||
		!first.Wall.Equal(time.Date(2026, 3, 1, 9, 0, 0, 300e6, time.UTC)) {
		t.Errorf("session 2 is %+v", first)
	}
	if len(ws.Socket) != 2 || ws.Socket[0].Device || !ws.Socket[1].Device || ws.Socket[1].At != 3*time.Second || string(ws.Socket[1].Data) != frame {
		t.Errorf("the WebSocket is %+v", ws)
	}
	told := strings.Join(a.Warnings(), "\n")
	for _, want := range []string{"a tunnel", "DNS Lookup Failed", "it has no answer", "without times", "session 7"} {
		if !strings.Contains(told, want) {
			t.Errorf("told %q; want %q", told, want)
		}
	}
	if a.Lost() != 1 || a.Options().Software != "Fiddler" {
		t.Errorf("lost %d, of %s; want 1, of Fiddler", a.Lost(), a.Options().Software)
	}
}

// FuzzFiddler: whatever a session's files hold takes little memory, and what is read of it can be exported.
func FuzzFiddler(f *testing.F) {
	f.Add("GET http://f.test/ HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nx", fiddlerTimes, "")
	f.Add("GET /ws HTTP/1.1\r\nHost: f.test\r\nUpgrade: websocket\r\n\r\n", "HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n", "<", "Request-Length: 9\r\n\r\nx")
	f.Fuzz(func(t *testing.T, request, response, meta, frames string) {
		text := zipText(t, "raw/1_c.txt", request, "raw/1_s.txt", response, "raw/1_m.xml", meta, "raw/1_w.txt", frames)
		var a *Archive
		var err error
		testlab.Bounded(t, 512<<20, func() { a, err = openText(t, text) })
		if err == nil {
			exported(t, a)
		}
	})
}

// TestCharles: a JSON Session File of Charles is read as a HAR.
func TestCharles(t *testing.T) {
	const session = `[{"status":"COMPLETE","method":"POST","protocolVersion":"HTTP/1.1","scheme":"https","host":"c.test","port":null,"actualPort":8443,"path":"/v1","query":"p=2",
"tunnel":false,"keptAlive":false,"webSocket":false,"remoteAddress":"c.test/192.0.2.3:8443","times":{"start":"2026-03-01T10:00:00.250+07:00"},
"durations":{"total":120,"dns":5,"connect":null,"ssl":20,"latency":60,"response":25},"alpn":{"protocol":"h2"},
"request":{"sizes":{"body":7},"mimeType":"application/json","header":{"firstLine":"POST /v1 HTTP/1.1","headers":[{"name":"Content-Type","value":"application/json"}]},"body":{"text":"{\"a\":1}"}},
"response":{"status":404,"sizes":{"body":3},"mimeType":"application/octet-stream","header":{"firstLine":"HTTP/1.1 404 Not Here","headers":[{"name":"X-Id","value":"7"}]},"body":{"encoded":"AAEC"}}},
{"method":"CONNECT","scheme":"https","host":"c.test","actualPort":443,"tunnel":true,"request":{"header":{}},"response":{"status":200}},
{"status":"FAILED","errorMessage":"Remote host closed","method":"GET","scheme":"http","host":"c.test","actualPort":80,"path":"/failed","query":null,"request":{"header":{}},"response":{"status":null}},
{"method":"GET","scheme":"http","host":"c.test","actualPort":80,"path":"/none","query":null,"request":{"header":{}},"response":{"status":200,"sizes":{"body":9},"header":{"headers":[]}}}]`
	a := openOdd(t, session)
	got := byURL(a)
	e := got["https://c.test:8443/v1?p=2"]
	if e == nil || e.Method != "POST" || string(e.Request.Body) != `{"a":1}` || e.Status != 404 || e.Reason != "Not Here" || string(e.Response.Body) != "\x00\x01\x02" ||
		e.Protocol != "h2" || e.Server.String() != "192.0.2.3:8443" || e.FirstByte != 60*time.Millisecond || e.Response.Get("X-Id") != "7" {
		t.Errorf("the first transaction is %+v", e)
	}
	if e := got["http://c.test/none"]; e == nil || e.Truncated == "" {
		t.Errorf("the body that is missing is %+v; want it cut off", e)
	}
	if told := strings.Join(a.Warnings(), "\n"); len(got) != 2 || a.Lost() != 0 || !strings.Contains(told, "Remote host closed") || a.Options().Software != "Charles" {
		t.Errorf("read %d of %s, lost %d, told %q; want two of Charles, and none lost", len(got), a.Options().Software, a.Lost(), told)
	}
}
