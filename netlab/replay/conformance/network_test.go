package conformance

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/replay"
)

// echo answers with the method and body, as text that any origin may read.
func echo(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Access-Control-Allow-Methods", "PUT, POST, GET")
	w.Header().Set("Access-Control-Allow-Headers", "x-a, content-type")
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.RawQuery, b)
}

// counter answers with the number of requests so far.
func counter() http.HandlerFunc {
	n := 0
	return func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set("Cache-Control", "no-store")
		fmt.Fprint(w, "answer ", n)
	}
}

// pieces sends a body in three pieces, 200 ms apart.
func pieces(mime string, parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", mime)
		for i, p := range parts {
			if i > 0 {
				select {
				case <-time.After(200 * time.Millisecond):
				case <-r.Context().Done():
				}
			}
			_, _ = io.WriteString(w, p)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// spread checks that the pieces of an answer were sent apart, as recorded. When they arrive in a
// page depends on how busy the machine is.
func spread(path string) func(*testing.T, string, []lab.Served) {
	return func(t *testing.T, _ string, log []lab.Served) {
		for _, line := range log {
			if strings.HasSuffix(line.URL, path) && line.Duration-line.FirstByte < 100*time.Millisecond {
				t.Errorf("%s was sent within %v, and recorded in three pieces 200 ms apart", line.URL, line.Duration-line.FirstByte)
			}
		}
	}
}

// network are the cases of matching, streams and headers.
func network() []kase {
	one := func(handler http.HandlerFunc) map[string]http.HandlerFunc {
		return map[string]http.HandlerFunc{"/x": handler}
	}
	async := func(code string) string {
		return "<script>(async()=>{" + code + "})().catch(e=>{window.result='error '+e})</script>"
	}
	stage := func(path string, want lab.Stage) func(*testing.T, string, []lab.Served) {
		return func(t *testing.T, _ string, log []lab.Served) {
			for _, line := range log {
				if strings.Contains(line.URL, path) && line.Method != http.MethodOptions && line.Stage != want {
					t.Errorf("%s %s is %s, want %s (%v)", line.Method, line.URL, line.Stage, want, line.Differs)
				}
			}
		}
	}
	return []kase{
		{
			name:   "the same URL three times",
			want:   "answer 1,answer 2,answer 3",
			routes: one(counter()),
			check:  stage("/x", lab.StageSequence),
			page:   async("var r=[];for(var i=0;i<3;i++)r.push(await (await fetch('/x')).text());window.result=r.join()"),
		},
		{name: "POSTs told apart by JSON", want: `"q":2`, routes: one(echo), check: stage("/x", lab.StageExact),
			page: async(
				"var r=[];for(var q of [1,2])r.push(await (await fetch('/x',{method:'POST',headers:{'content-type':'application/json'},body:JSON.stringify({q:q})})).text());window.result=r.join()",
			)},
		{name: "a form sent twice", want: "answer 1,answer 2", routes: one(counter()), check: stage("/x", lab.StageSequence),
			page: async(
				"var r=[];for(var q of [1,1])r.push(await (await fetch('/x',{method:'POST',body:new URLSearchParams({q:q})})).text());window.result=r.join()",
			)},
		{name: "multipart with a boundary of its own", want: "answer 1", routes: one(counter()), check: stage("/x", lab.StageNormalised),
			page: async(
				"var f=new FormData();f.append('a','1');f.append('file',new Blob(['abc']),'a.txt');window.result=await (await fetch('/x',{method:'POST',body:f})).text()",
			)},
		{name: "a cache-buster of the real clock", want: "answer 1", routes: one(counter()), check: stage("/x", lab.StageNormalised),
			page: async("window.result=await (await fetch('/x?_='+Math.round(1.7e12+new Event('x').timeStamp*1e3))).text()")},
		{name: "a cache-buster of Date is exact", want: "answer 1", routes: one(counter()), check: stage("/x", lab.StageExact),
			page: async("window.result=await (await fetch('/x?_='+Date.now()+Math.random())).text()")},
		{name: "another origin, with preflight", want: "PUT  b", routes: one(echo),
			page: async("window.result=await (await fetch('https://b.test/x',{method:'PUT',headers:{'x-a':'1'},body:'b'})).text()")},
		{
			name:   "HEAD",
			want:   "200 text/plain",
			routes: one(echo),
			page:   async("var r=await fetch('/x',{method:'HEAD'});window.result=r.status+' '+r.headers.get('content-type')"),
		},
		{
			name:   "a status of its own",
			want:   "404 gone",
			routes: one(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "gone", http.StatusNotFound) }),
			page:   async("var r=await fetch('/x');window.result=r.status+' '+await r.text()"),
		},
		{
			name: "a redirect",
			want: "true GET to=1",
			routes: map[string]http.HandlerFunc{
				"/x": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/y?to=1", http.StatusFound) },
				"/y": echo,
			},
			page: async("var r=await fetch('/x');window.result=r.redirected+' '+await r.text()"),
		},
		{
			name:   "a stream keeps its pieces",
			want:   "12",
			routes: one(pieces("text/plain", "aaaa", "bbbb", "cccc")),
			timing: replay.Timing{Mode: replay.TimingRecorded},
			check:  spread("/x"),
			page: async(
				"var r=(await fetch('/x')).body.getReader(),n=0,c;while(!(c=await r.read()).done)n+=c.value.length;window.result=n",
			),
		},
		{
			name:   "server-sent events",
			want:   "a,b,c",
			routes: one(pieces("text/event-stream", "data: a\n\n", "data: b\n\n", "data: c\n\n")),
			timing: replay.Timing{Mode: replay.TimingRecorded},
			page:   `<script>var got=[],s=new EventSource("/x");s.onmessage=function(e){got.push(e.data);if(got.length===3){s.close();window.result=got.join()}}</script>`,
		},
		{name: "a document in pieces runs in pieces", want: "yes", timing: replay.Timing{Mode: replay.TimingRecorded}, check: spread("/x"),
			page: `<iframe src="/x"></iframe><script>onmessage=function(e){window.result=e.data}</script>`,
			routes: one(
				pieces(
					"text/html",
					"<!doctype html><head><meta charset=utf-8><title>x</title></head><!--"+strings.Repeat(
						"x",
						1100,
					)+"--><script>var a=document.querySelector('p')?'no':'yes'</script>",
					"<p>wait",
					"<script>parent.postMessage(a,'*')</script>",
				),
			)},
		{name: "cookies in both directions", want: "a=1; b=2", routes: one(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Add("Set-Cookie", "a=1; Path=/")
			w.Header().Add("Set-Cookie", "b=2; Path=/; Expires="+time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		}), page: async("await fetch('/x');window.result=document.cookie.split('; ').sort().join('; ')")},
		// Chromium caches nothing from a connection whose certificate error it was told to ignore, so
		// freshness and revalidation are tested in netlab/replay without it.
		{name: "a range of a whole body", want: "206 234", routes: one(func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "x.bin", time.Unix(1e9, 0), strings.NewReader("0123456789"))
		}), page: async("var r=await fetch('/x',{headers:{range:'bytes=2-4'}});window.result=r.status+' '+await r.text()")},
		{
			name: "HTTP/2 stays HTTP/2",
			want: "h2",
			page: async("window.result=performance.getEntriesByType('navigation')[0].nextHopProtocol"),
		},
		{
			name: "HTTP/1.1 stays HTTP/1.1",
			want: "http/1.1",
			h1:   true,
			page: async("window.result=performance.getEntriesByType('navigation')[0].nextHopProtocol"),
		},
		{
			name:   "a query over HTTP/1.1",
			want:   "GET q=1",
			h1:     true,
			routes: one(echo),
			page:   async("window.result=await (await fetch('/x?q=1')).text()"),
		},
	}
}
