package conformance

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/andybalholm/brotli"
	"github.com/coder/websocket"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"eidetic/internal/lab"
	"eidetic/netlab/replay"
)

// recorded replays with the times of the recording.
var recorded = replay.Timing{Mode: replay.TimingRecorded}

// packed serves a body in a content coding.
func packed(mime, coding, body string) http.HandlerFunc {
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b) // without options nothing can be wrong
	}
	_, _ = io.WriteString(w, body)
	_ = w.Close()
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", mime)
		rw.Header().Set("Content-Encoding", coding)
		_, _ = rw.Write(b.Bytes())
	}
}

// codings are documents and workers in each content coding that browsers accept.
func codings() (out []kase) {
	for _, coding := range []string{"gzip", "br", "zstd", "deflate"} {
		out = append(out, kase{
			name: "a frame in " + coding + " is seeded", want: "2026-05-06T07:08:09.000Z",
			page: `<iframe src="/f"></iframe><script>onmessage=function(e){window.result=e.data}</script>`,
			routes: map[string]http.HandlerFunc{
				"/f": packed("text/html", coding, "<!doctype html><script>"+sample+"parent.postMessage(sample(),'*')</script>"),
			},
		})
	}
	return append(out, kase{
		name: "a worker in br is seeded", want: "2026-05-06T07:08:09.000Z", page: `<script>new Worker("/w.js").onmessage=function(e){window.result=e.data}</script>`,
		routes: map[string]http.HandlerFunc{"/w.js": packed(js, "br", sample+"postMessage(sample())")},
	})
}

func utf16le(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

// charsets are documents that are not UTF-8.
func charsets() []kase {
	html := func(text string) string {
		return "<!doctype html><title>x</title><p id=p>" + text + "</p><script>window.result=document.getElementById('p').textContent+document.characterSet+Math.random()</script>"
	}
	mime := func(v string) map[string]string { return map[string]string{"Content-Type": v} }
	return []kase{
		{name: "a UTF-16 document", want: "żółtyUTF-16LE0.", html: utf16le(html("żółty")), header: mime("text/html")},
		{
			name:   "a charset of old in the header",
			want:   "éwindows-12520.",
			html:   html("\xe9"),
			header: mime("text/html; charset=iso-8859-1"),
		},
		{
			name:   "Shift_JIS in a meta element",
			want:   "日Shift_JIS0.",
			html:   "<!doctype html><meta charset=shift_jis>" + html("\x93\xfa"),
			header: mime("text/html"),
		},
		{name: "an XHTML document", want: "application/xhtml+xml 0.", header: mime("application/xhtml+xml"),
			html: `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body><script>window.result=document.contentType+" "+Math.random()</script></body></html>`},
	}
}

// peers are the known failures of other recorders; see docs/replay.md.
func peers() []kase {
	one := func(h http.HandlerFunc) map[string]http.HandlerFunc { return map[string]http.HandlerFunc{"/x": h} }
	async := func(code string) string {
		return "<script>(async()=>{const real=()=>String(Math.round(performance.timeOrigin)),text=async(u,o)=>(await fetch(u,o)).text();" + code + "})().catch(e=>{window.result='error '+e})</script>"
	}
	var tries atomic.Int32
	return []kase{
		{name: "a bare URL does not win over a query", want: "GET  ,GET id=5&cb=", routes: one(echo),
			page: async("window.result=(await text('/x')+','+await text('/x?id=5&cb='+real())).replace(/cb=.*/,'cb=')")},
		{name: "a GET does not get a POST's answer", want: "POST  a,GET  ", routes: one(echo),
			page: async("window.result=await text('/x',{method:'POST',body:'a'})+','+await text('/x')")},
		{
			name:   "an early cache-buster",
			want:   "page=2,page=1",
			routes: one(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "page="+r.URL.Query().Get("page")) }),
			page:   async("window.result=await text('/x?cb='+real()+'&page=2')+','+await text('/x?cb='+real()+'&page=1')"),
		},
		{name: "parameters in another order", want: "answer 1", routes: one(counter()),
			page: async("var p=['a=1','b=2'];if(real()%2)p.reverse();window.result=await text('/x?'+p.join('&'))")},
		{name: "GraphQL operations in one URL", want: `"Cart","variables":{"n":2}`, routes: one(echo),
			page: async(
				`var q=(id,op,n)=>text('/x',{method:'POST',headers:{'content-type':'application/json'},body:JSON.stringify({requestId:real()+'000',operationName:op,variables:{n:n}})});
				var r=[];for(var [op,n] of [['Cart',1],['Cart',2],['User',1]])r.push((await q(0,op,n)).replace(/"requestId":"\d+",/,''));window.result=r.join()`,
			)},
		{name: "a failed first try is not replayed", want: "whole", routes: one(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			if tries.Add(1) == 1 {
				_, _ = io.WriteString(w, "wh")
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, "whole")
		}), page: async("try{await text('/x?try')}catch(e){}window.result=await text('/x?try')")},
		{name: "a range that was never asked for", want: "true 206", routes: one(func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "x.bin", time.Unix(1e9, 0), strings.NewReader("0123456789abcdef"))
		}), page: async("var b=await text('/x'),s=real()%7,r=await fetch('/x',{cache:'no-store',headers:{range:'bytes='+s+'-'+(s+3)}});window.result=(await r.text()===b.slice(s,s+4))+' '+r.status")},
		{
			name:   "an answer without a body",
			want:   "204 0",
			routes: one(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }),
			page:   async("var r=await fetch('/x',{method:'DELETE'});window.result=r.status+' '+(await r.text()).length"),
		},
		{
			name: "a redirect between origins",
			want: "GET q=1",
			routes: map[string]http.HandlerFunc{"/x": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Access-Control-Allow-Origin", "*")
				http.Redirect(w, r, "https://b.test/y?q=1", http.StatusTemporaryRedirect)
			}, "/y": echo},
			page: async("window.result=await text('/x')"),
		},
		{
			name:   "fresh for as long as it was",
			want:   "answer 1,answer 1",
			routes: one(fresh("Cache-Control", func(time.Time) string { return "max-age=600" })),
			page:   async("window.result=await text('/x')+','+await text('/x')"),
		},
		{
			name:   "fresh until a date",
			want:   "answer 1,answer 1",
			routes: one(fresh("Expires", func(now time.Time) string { return now.Add(time.Hour).UTC().Format(http.TimeFormat) })),
			page:   async("window.result=await text('/x')+','+await text('/x')"),
		},
		{
			name:   "stale by a date",
			want:   "answer 1,answer 2",
			routes: one(fresh("Expires", func(now time.Time) string { return now.Add(-time.Hour).UTC().Format(http.TimeFormat) })),
			page:   async("window.result=await text('/x')+','+await text('/x')"),
		},
		{name: "revalidated", want: "true 200 0123", routes: one(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-cache")
			w.Header().Set("ETag", `"v1"`)
			http.ServeContent(w, r, "x.txt", time.Time{}, strings.NewReader("0123"))
		}), page: async("await text('/x');var r=await fetch('/x');window.result=(r.headers.get('etag')==='\"v1\"')+' '+r.status+' '+await r.text()")},
	}
}

func fresh(name string, value func(now time.Time) string) http.HandlerFunc {
	n := 0
	return func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set(name, value(time.Now()))
		fmt.Fprint(w, "answer ", n)
	}
}

// live are the cases beyond a request and an answer.
func live() []kase {
	socket := func(mode websocket.CompressionMode) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: mode})
			if err != nil {
				return
			}
			defer c.CloseNow()
			_ = c.Write(r.Context(), websocket.MessageText, []byte(strings.Repeat("hello ", 200)))
			for range 2 {
				kind, b, err := c.Read(r.Context())
				if err != nil {
					return
				}
				select {
				case <-time.After(30 * time.Millisecond):
				case <-r.Context().Done():
				}
				_ = c.Write(r.Context(), kind, b)
			}
			go func() { _ = c.Ping(r.Context()) }()
			_, _, _ = c.Read(r.Context()) // the device's close frame
		}
	}
	page := `<script>var r=[],t=[],w=new WebSocket("wss://"+location.host+"/ws");w.binaryType="arraybuffer";
		w.onopen=function(){t.push(performance.now());w.send("a");w.send(new Uint8Array([1,2,3]))};
		w.onmessage=function(e){t.push(performance.now());r.push(typeof e.data==="string"?e.data.slice(0,5)+e.data.length:"bytes"+e.data.byteLength);if(r.length===3)w.close(1000,"bye")};
		w.onclose=function(e){window.result=r.join()+" "+e.code+" "+e.wasClean+" "+(t[3]-t[0]>=55)}</script>`
	return []kase{
		{name: "a WebSocket: text, binary, ping, close, times", want: "hello1200,a1,bytes3 1000 true true", timing: recorded, page: page,
			routes: map[string]http.HandlerFunc{"/ws": socket(websocket.CompressionDisabled)}},
		{name: "a WebSocket with permessage-deflate", want: "hello1200,a1,bytes3 1000 true true", timing: recorded, page: page,
			routes: map[string]http.HandlerFunc{"/ws": socket(websocket.CompressionContextTakeover)}},
		{name: "early hints", want: "early-hints", timing: recorded, hints: "</e.css>; rel=preload; as=style",
			page: `<link rel=stylesheet href="/e.css"><script>onload=function(){window.result=performance.getEntriesByType("resource").filter(e=>/e\.css/.test(e.name)).map(e=>e.initiatorType).join()}</script>`,
			routes: map[string]http.HandlerFunc{"/e.css": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60") // the cache is how Chromium hands it on
				text("text/css", "p{color:red}")(w, r)
			}}},
		{
			name:   "time to first byte",
			want:   "true",
			timing: recorded,
			routes: map[string]http.HandlerFunc{"/x": func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-time.After(120 * time.Millisecond):
				case <-r.Context().Done():
				}
			}},
			page: `<script>(async()=>{var a=performance.now();await fetch("/x");window.result=performance.now()-a>=115})()</script>`,
		},
		{name: "a fixed time to first byte", want: "", timing: replay.Timing{Mode: replay.TimingFixed, Fixed: 100 * time.Millisecond},
			page: `<script>(async()=>{await fetch("/x");window.result="done"})()</script>`, routes: map[string]http.HandlerFunc{"/x": text("text/plain", "x")},
			check: func(t *testing.T, _ string, log []lab.Served) {
				for _, line := range log {
					if strings.HasSuffix(line.URL, "/x") && (line.FirstByte < 100*time.Millisecond || line.Stage != lab.StageExact) {
						t.Errorf("%s after %v", line.Stage, line.FirstByte)
					}
				}
			}},
	}
}
