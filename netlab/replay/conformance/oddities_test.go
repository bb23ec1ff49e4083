package conformance

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// oddities are what pages do that differs in every load by itself, or that their origins answer in a way of their own.
func oddities() []kase {
	once := map[string]http.HandlerFunc{"/x": text("text/plain", "x")}
	stage := func(want lab.Stage) func(lab.Served) bool {
		return func(line lab.Served) bool { return line.Stage == want }
	}
	return []kase{
		{
			name: "a condition of a script's own", want: "200 304 0",
			page: liveOr(`var r=await fetch('/x'),s=await fetch('/x',{headers:{'If-None-Match':r.headers.get('etag')}});window.result=r.status+' '+s.status+' '+(await s.text()).length`),
			routes: map[string]http.HandlerFunc{"/x": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", `"v1"`)
				http.ServeContent(w, r, "", time.Time{}, strings.NewReader("0123"))
			}},
		},
		{
			name: "a beacon that nobody recorded", want: "x", routes: once, check: logged(http.MethodPost, "/late", stage(lab.StageBox)),
			page: liveOr(`if(!live)await fetch('/late',{method:'POST',mode:'no-cors',keepalive:true,body:'slow'});window.result=await text('/x')`),
		},
		{
			name: "measurements that are acknowledged", want: `{"status":"ok"}`, check: logged(http.MethodPost, "/collect?page=b", stage(lab.StageFuzzy)),
			page: liveOr(`window.result=await text('/collect?page='+(live?'a':'b'),{method:'POST',headers:{'content-type':'application/json'},
				body:JSON.stringify(live?{lcp:[1,2,3]}:{cls:performance.now(),why:'other'})})`),
			routes: map[string]http.HandlerFunc{"/collect": text("application/json", `{"status":"ok"}`)},
		},
		{
			name: "an answer that no browser takes", want: "error TypeError", h1: true, page: liveOr(`window.result=await text('/broken')`),
			routes: map[string]http.HandlerFunc{"/broken": func(w http.ResponseWriter, _ *http.Request) {
				c, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					return // the case fails, for want of its answer
				}
				defer c.Close()
				_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"))
			}},
			check: func(t *testing.T, _ string, log []lab.Served) {
				for _, line := range log {
					if strings.HasSuffix(line.URL, "/broken") && line.Stage == lab.StageMiss {
						t.Errorf("%s is a miss; want it to fail as it did", line.URL)
					}
				}
			},
		},
	}
}
