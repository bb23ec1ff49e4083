package conformance

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"eidetic/internal/lab"
)

// openConnections are pages whose connections had not ended when the recording did. Each
// counts what happens to them, and opens again what is closed, as applications do.
func openConnections() []kase {
	const count = `<script>
var c = {opens: 0, closes: 0, messages: 0, errors: 0};
function tell() { window.result = JSON.stringify(c) }
setTimeout(tell, 2500);
</script>`
	const socket = `<script>
(function connect() {
  var s = new WebSocket("wss://" + location.host + "/socket");
  s.onopen = function() { c.opens++; s.send("hello") };
  s.onmessage = function() { c.messages++ };
  s.onerror = function() { c.errors++ };
  s.onclose = function() { c.closes++; connect() };
})();
</script>`
	return []kase{
		{name: "a WebSocket on which the origin spoke last stays open", timing: recorded,
			want: `{"opens":1,"closes":0,"messages":3,"errors":0}`, page: count + socket,
			routes: map[string]http.HandlerFunc{"/socket": func(w http.ResponseWriter, r *http.Request) {
				c, err := websocket.Accept(w, r, nil)
				if err != nil {
					return
				}
				defer c.CloseNow()
				_, text, err := c.Read(r.Context())
				for i := 0; i < 3 && err == nil; i++ {
					err = c.Write(r.Context(), websocket.MessageText, fmt.Append(text, i))
				}
				_, _, _ = c.Read(r.Context()) // until the page has gone
			}}},
		{name: "a WebSocket that the origin closes is closed", timing: recorded,
			want: `"messages":1`, page: count + `<script>
var s = new WebSocket("wss://" + location.host + "/socket");
s.onopen = function() { c.opens++ };
s.onmessage = function() { c.messages++ };
s.onclose = function(e) { c.closes++; c.code = e.code };
</script>`,
			routes: map[string]http.HandlerFunc{"/socket": func(w http.ResponseWriter, r *http.Request) {
				c, err := websocket.Accept(w, r, nil)
				if err != nil {
					return
				}
				_ = c.Write(r.Context(), websocket.MessageText, []byte("bye"))
				_ = c.Close(websocket.StatusGoingAway, "over")
			}}},
		{name: "an event stream stays open", timing: recorded,
			want: `{"opens":1,"closes":0,"messages":3,"errors":0}`, page: count + `<script>
var e = new EventSource("/events");
e.onopen = function() { c.opens++ };
e.onmessage = function() { c.messages++ };
e.onerror = function() { c.errors++ };
</script>`,
			routes: map[string]http.HandlerFunc{"/events": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range 3 {
					fmt.Fprintf(w, "data: %d\n\n", i)
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
			}}},
		{name: "a long poll that waited waits", timing: recorded,
			want: `"got":["after 0","after 1"]`, page: count + `<script>
c.got = [];
(function poll(since) {
  fetch("/poll?since=" + since).then(function(r) { return r.text() }).then(function(t) { c.got.push(t); poll(since + 1) })
    .catch(function() { c.errors++ });
})(0);
</script>`,
			routes: map[string]http.HandlerFunc{"/poll": func(w http.ResponseWriter, r *http.Request) {
				if since := r.URL.Query().Get("since"); since != "2" {
					fmt.Fprintf(w, "after %s", since)
					return
				}
				<-r.Context().Done()
			}},
			check: func(t *testing.T, _ string, log []lab.Served) {
				for _, line := range log {
					// Requests of the browser's own services are none of the page's.
					if u, err := url.Parse(line.URL); line.Stage == lab.StageMiss && err == nil && strings.HasSuffix(u.Hostname(), ".test") {
						t.Errorf("%s %s is a miss, want a poll that waits", line.Method, line.URL)
					}
				}
			}},
	}
}
