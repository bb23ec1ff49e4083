package x11_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

// moving are pages that move in the ways of real ones. Each rests now and then.
func moving() http.Handler {
	text := strings.Repeat("<p>the page that was asked for begins to show when its first bytes have come and been laid out</p><hr>", 300)
	pages := map[string]string{
		"/scroll": text + `<script>let n=0;(function f(){n++;if(n%90<60)scrollBy(0,n%1800<900?9:-9);requestAnimationFrame(f)})()</script>`,
		// A video element shows a stream of what a canvas draws.
		"/video": `<video autoplay muted width=640 height=360></video><script>
const c=document.createElement('canvas'),g=c.getContext('2d');c.width=640;c.height=360;let n=0;
setInterval(()=>{n++;for(let i=0;i<60;i++){g.fillStyle='hsl('+(n*7+i*31)%360+' 80% 50%)';g.fillRect((n*5+i*97)%640,(n*3+i*53)%360,60,40)}},33);
document.querySelector('video').srcObject=c.captureStream(30)</script>`,
		"/load": `<h1></h1><div></div><script>const n=+location.search.slice(1)||1;document.body.style.background='hsl('+n*47%360+' 60% 80%)';
document.querySelector('h1').textContent='page '+n;let i=0;
const t=setInterval(()=>{document.querySelector('div').innerHTML+='<p style="font-size:'+(12+i*3)+'px">part '+i+'</p>';if(++i>7)clearInterval(t)},60);
setTimeout(()=>location.search='?'+(n+1),1100)</script>` + text[:2000],
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><body>"+pages[r.URL.Path])
	})
}

// TestDamageTellsBrowser: what a browser draws while it scrolls, plays and loads.
func TestDamageTellsBrowser(t *testing.T) {
	program := testlab.NeedProgram(t, "chromium", "chromium-browser", "google-chrome")
	server := httptest.NewServer(moving())
	defer server.Close()
	for _, page := range []string{"scroll", "video", "load"} {
		t.Run(page, func(t *testing.T) {
			display := xvfb(t, "-screen", "0", "800x600x24", "-nocursor")
			xtest.Browser(t, display, program, server.URL+"/"+page)
			// The browser's start is among what is watched.
			prove(t, display, looksToProve(t, 600))
		})
	}
}
