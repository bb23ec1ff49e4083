package conformance

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// liveOr makes a page whose script knows whether it is being recorded, so that in a replay it
// can send requests that were not recorded.
func liveOr(code string) string {
	return "<script>(async()=>{const live=location.hash==='#live',text=async(u,o)=>(await fetch(u,o)).text();" + code + "})().catch(e=>{window.result='error '+e.name})</script>"
}

// logged checks that one line of the replay's log for a method and the end of a URL has the
// expected stage and status.
func logged(method, path string, good func(lab.Served) bool) func(*testing.T, string, []lab.Served) {
	return func(t *testing.T, _ string, log []lab.Served) {
		var all []string
		for _, line := range log {
			if line.Method == method && strings.HasSuffix(line.URL, path) {
				if good(line) {
					return
				}
				all = append(all, string(line.Stage)+" "+http.StatusText(line.Status))
			}
		}
		t.Errorf("%s …%s was answered by %q, and never as it should", method, path, all)
	}
}

// asked are the cases of methods, origins and conditions: CORS, HEAD, OPTIONS, 304 and ranges,
// as browsers send them.
func asked() []kase {
	stage := func(want lab.Stage) func(lab.Served) bool {
		return func(line lab.Served) bool { return line.Stage == want }
	}
	status := func(want int) func(lab.Served) bool { return func(line lab.Served) bool { return line.Status == want } }
	const put, friendlyPut = `{method:'PUT',headers:{'x-a':'1'},body:'b'}`, `{method:'PUT',headers:{'x-a':'1'},body:'b',credentials:'include'}`
	// A request that was recorded from a frame of its own origin needs no preflight there.
	frame := func(put string) http.HandlerFunc {
		return text("text/html", `<!doctype html><script>fetch('/x',`+put+`).then(r=>r.text()).then(t=>parent.postMessage(t,'*'))</script>`)
	}
	framed := func(put string) string {
		return liveOr(
			`if(live){var f=document.createElement('iframe');onmessage=e=>{window.result=e.data};f.src='https://b.test/f';document.body.append(f)}
			else window.result=await text('https://b.test/x',` + put + `)`,
		)
	}
	friendly := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "https://a.test")
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		w.Header().Set("Vary", "Origin")
		_, _ = w.Write([]byte(r.Method + " let in"))
	}
	content := func(fields map[string]string, modified time.Time, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for name, v := range fields {
				w.Header().Set(name, v)
			}
			http.ServeContent(w, r, "", modified, bytes.NewReader(body))
		}
	}
	again := liveOr("var r=await fetch('/x'),t=await r.text();if(!live){r=await fetch('/x');t=await r.text()}window.result=r.status+' '+t")
	return []kase{
		{
			name:   "a preflight that was never recorded",
			want:   "PUT  b",
			page:   framed(put),
			check:  logged(http.MethodOptions, "/x", stage(lab.StageBox)),
			routes: map[string]http.HandlerFunc{"/x": echo, "/f": frame(put)},
		},
		{
			name:   "a preflight with credentials that was never recorded",
			want:   "PUT let in",
			page:   framed(friendlyPut),
			check:  logged(http.MethodOptions, "/x", stage(lab.StageBox)),
			routes: map[string]http.HandlerFunc{"/x": friendly, "/f": frame(friendlyPut)},
		},
		{
			name:   "a wildcard does not let credentials in",
			want:   "error TypeError",
			page:   liveOr(`window.result=await text('https://b.test/x',{credentials:'include'})`),
			routes: map[string]http.HandlerFunc{"/x": echo},
			check:  logged(http.MethodGet, "/x", stage(lab.StageExact)),
		},
		{
			name: "a refused preflight stays refused",
			want: "error TypeError",
			page: liveOr(`window.result=await text('https://b.test/x',` + put + `)`),
			routes: map[string]http.HandlerFunc{"/x": func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodOptions {
					http.Error(w, "no", http.StatusForbidden)
					return
				}
				friendly(w, r)
			}},
			check: logged(http.MethodOptions, "/x", stage(lab.StageExact)),
		},
		{name: "OPTIONS that is no preflight", want: "OPTIONS", page: liveOr(`window.result=await text('/x',{method:'OPTIONS'})`),
			routes: map[string]http.HandlerFunc{"/x": echo}, check: logged(http.MethodOptions, "/x", stage(lab.StageExact))},
		{
			name: "HEAD of what was only fetched",
			want: "200 10",
			page: liveOr(`var r=await fetch('/x',{method:live?'GET':'HEAD'});window.result=r.status+' '+r.headers.get('content-length')`),
			routes: map[string]http.HandlerFunc{
				"/x": content(nil, time.Unix(1e9, 0), []byte("0123456789")),
			},
			check: logged(http.MethodHead, "/x", status(http.StatusOK)),
		},
		{
			name:  "a 304 by tag that was never recorded",
			want:  "200 0123",
			page:  again,
			check: logged(http.MethodGet, "/x", status(http.StatusNotModified)),
			routes: map[string]http.HandlerFunc{
				"/x": content(map[string]string{"Cache-Control": "no-cache", "ETag": `"v1"`}, time.Time{}, []byte("0123")),
			},
		},
		{
			name:  "a 304 by date that was never recorded",
			want:  "200 0123",
			page:  again,
			check: logged(http.MethodGet, "/x", status(http.StatusNotModified)),
			routes: map[string]http.HandlerFunc{
				"/x": content(map[string]string{"Cache-Control": "no-cache"}, time.Unix(1e9, 0), []byte("0123")),
			},
		},
		{
			name: "the ranges of a media element",
			want: "1 s",
			routes: map[string]http.HandlerFunc{
				"/a.wav": content(map[string]string{"Content-Type": "audio/wav"}, time.Unix(1e9, 0), silence()),
			},
			page:  `<audio id=a src="/a.wav" preload=auto></audio><script>a.onloadedmetadata=function(){window.result=Math.round(a.duration)+" s"};a.onerror=function(){window.result="error "+a.error.message}</script>`,
			check: logged(http.MethodGet, "/a.wav", status(http.StatusPartialContent)),
		},
	}
}

// silence is a second of silence, as WAVE.
func silence() []byte {
	const rate = 8000
	b := []byte(
		"RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x08\x00data\x00\x00\x00\x00",
	)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8+rate))
	binary.LittleEndian.PutUint32(b[24:], rate)
	binary.LittleEndian.PutUint32(b[28:], rate)
	binary.LittleEndian.PutUint32(b[40:], rate)
	return append(b, bytes.Repeat([]byte{0x80}, rate)...)
}
