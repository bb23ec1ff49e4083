package conformance

import (
	"fmt"
	"html"
	"net/http"
	"strings"
)

// realms are the cases of scripts that run where no document or worker of their own was fetched, or
// before it was: frames with their document in an attribute, imports of module workers, workers and
// worklets from strings.
func realms() []kase {
	const date = "2026-05-06T07:08:09.000Z"
	const listen = `<script nonce="abc">onmessage=function(e){window.result=e.data}</script>`
	const csp = "Content-Security-Policy"
	inner := "<!doctype html><title>x</title><body><script nonce=\"abc\">" + sample + "parent.postMessage(sample(),'*')</script>"
	frame := `<iframe srcdoc="` + html.EscapeString(inner) + `"></iframe>`
	head := func(policy string) map[string]string { return map[string]string{csp: policy} }
	report := `<script>new Worker("/w.js",{type:"module"}).onmessage=function(e){window.result=e.data}</script>`
	module := map[string]http.HandlerFunc{
		"/w.js":    text(js, `import {first} from "/dep.js"; postMessage(first+" "+Math.random())`),
		"/dep.js":  text(js, `import "/deep.js"; export const first=self.deep`),
		"/deep.js": text(js, sample+`self.deep=sample()`),
	}
	away := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		text(js, sample+`export const first=sample()`)(w, r)
	}
	worklet := `registerProcessor("p",class extends AudioWorkletProcessor{process(){this.port.postMessage(Math.random()+" "+Math.random()+" "+new Date().toISOString());return false}})`
	audio := func(module string) string {
		return `<script>(async()=>{var c=new OfflineAudioContext(1,1024,44100);await c.audioWorklet.addModule(` + module + `);
			var n=new AudioWorkletNode(c,"p");n.port.onmessage=function(e){window.result=window.result||e.data};n.connect(c.destination);await c.startRendering()})().catch(e=>{window.result="error "+e})</script>`
	}
	return []kase{
		{name: "a srcdoc frame in markup is seeded", want: date, page: listen + frame},
		{
			name: "two srcdoc frames differ",
			want: "true",
			page: `<script>var a=[];onmessage=function(e){a.push(e.data.split("|")[0]);if(a.length===2)window.result=(a[0]!==a[1])+" "+a.sort()}</script>` + frame + frame,
		},
		{
			name: "a sandboxed srcdoc frame is seeded",
			want: date,
			page: listen + `<iframe sandbox="allow-scripts" srcdoc='` + html.EscapeString(inner) + `'></iframe>`,
		},
		{name: "a srcdoc frame under CSP", want: date, header: head("default-src 'none'; script-src 'nonce-abc'"), page: listen + frame},
		{
			name: "a srcdoc frame under CSP in a meta element",
			want: date,
			html: `<!doctype html><html><head><meta http-equiv="` + csp + `" content="script-src &#39;nonce-abc&#39;"></head><body>` + listen + frame,
		},
		{
			name:   "a srcdoc frame under trusted types",
			want:   date,
			header: head("require-trusted-types-for 'script'; trusted-types 'none'; script-src 'nonce-abc'"),
			page:   listen + frame,
		},
		{
			name: "a srcdoc frame by setAttribute is seeded",
			want: date,
			page: listen + `<div id=d></div><script>var f=document.createElement("iframe");f.setAttribute("srcdoc",` + literal(
				inner,
			) + `);d.append(f)</script>`,
		},
		{
			name: "a srcdoc frame by innerHTML is seeded",
			want: date,
			page: listen + `<div id=d></div><script>d.innerHTML=` + literal("<p>"+frame) + `</script>`,
		},
		{
			name: "a srcdoc frame by document.write is seeded",
			want: date,
			page: listen + `<script>document.write(` + literal("<p>"+frame) + `)</script>`,
		},
		{
			name:  "CSP in a meta element and lab.done",
			want:  "204",
			label: "done=x",
			html:  `<!doctype html><html><head><meta http-equiv="` + csp + `" content="default-src 'none'; script-src 'nonce-abc'"></head><body><script nonce="abc">lab.done("x").then(r=>window.result=r.status,e=>window.result="error "+e)</script>`,
		},

		{name: "imports of a module worker are seeded", want: date, page: report, routes: module},
		{name: "an import of a module worker from elsewhere is seeded", want: date, page: report, routes: map[string]http.HandlerFunc{
			"/w.js": text(js, `import {first} from "https://b.test/dep.js"; postMessage(first)`), "/dep.js": away}},
		{name: "imports of a blob's module worker are seeded", want: date, routes: module,
			page: `<script>new Worker(URL.createObjectURL(new Blob(['import {first} from "https://a.test/dep.js"; postMessage(first)'],{type:"text/javascript"})),{type:"module"}).onmessage=function(e){window.result=e.data}</script>`},
		{
			name: "a module shared worker is seeded",
			want: date,
			page: `<script>new SharedWorker("/s.js",{type:"module"}).port.onmessage=function(e){window.result=e.data}</script>`,
			routes: map[string]http.HandlerFunc{
				"/s.js":    text(js, `import {first} from "/dep.js"; onconnect=function(e){e.ports[0].postMessage(first)}`),
				"/dep.js":  module["/dep.js"],
				"/deep.js": module["/deep.js"],
			},
		},
		{
			name: "a service worker's importScripts",
			want: date,
			page: `<script>navigator.serviceWorker.register("/sw.js").then(function(){return navigator.serviceWorker.ready}).then(function(r){
			navigator.serviceWorker.onmessage=function(e){window.result=e.data};r.active.postMessage(1)}).catch(function(e){window.result="error "+e})</script>`,
			routes: map[string]http.HandlerFunc{
				"/sw.js":   text(js, `importScripts("/part.js");onmessage=function(e){e.source.postMessage(part)}`),
				"/part.js": text(js, sample+`self.part=sample()`),
			},
		},
		{
			name: "a worker's worker is seeded",
			want: date,
			page: `<script>new Worker("/w.js").onmessage=function(e){window.result=e.data}</script>`,
			routes: map[string]http.HandlerFunc{
				"/w.js": text(js, `new Worker("/v.js").onmessage=function(e){postMessage(e.data)}`),
				"/v.js": text(js, sample+`postMessage(sample())`),
			},
		},
		{
			name:   "an audio worklet is seeded",
			want:   date,
			page:   audio(`"/a.js"`),
			routes: map[string]http.HandlerFunc{"/a.js": text(js, worklet)},
		},
		{
			name: "a blob's audio worklet is seeded",
			want: date,
			page: audio(fmt.Sprintf(`URL.createObjectURL(new Blob([%q],{type:"text/javascript"}))`, worklet)),
		},
		{
			// Nothing of a worklet's world reaches the box; its node's port is the page's own, and a page that listens there
			// gets what the worklet says and nothing else. A paint worklet has not even that.
			name: "worklets have no lab, and nothing to reach the box by; their page notes for them",
			want: "undefined undefined undefined undefined undefined 1 added",
			page: `<script>(async()=>{var c=new OfflineAudioContext(1,1024,44100);await c.audioWorklet.addModule("/a.js");` +
				`var n=new AudioWorkletNode(c,"p"),all=[];n.port.onmessage=e=>{all.push(e.data);lab.mark("the worklet says "+e.data.split(" ")[0])};n.connect(c.destination);` +
				`await c.startRendering();var p=self.CSS&&CSS.paintWorklet?await CSS.paintWorklet.addModule("/p.js").then(()=>"added"):"added";` +
				`setTimeout(()=>window.result=all[0]+" "+all.length+" "+p,700)})().catch(e=>{window.result="error "+e})</script>`,
			routes: map[string]http.HandlerFunc{
				"/a.js": text(js, `registerProcessor("p",class extends AudioWorkletProcessor{process(){`+
					`this.port.postMessage([typeof lab,typeof fetch,typeof XMLHttpRequest,typeof WebSocket,typeof BroadcastChannel].join(" "));return false}})`),
				"/p.js": text(js, `if(typeof lab!=="undefined"||typeof fetch!=="undefined")throw 1;registerPaint("p",class{paint(){}})`),
			},
			told: []string{": mark=the worklet says undefined"},
		},
	}
}

// literal is a string of JavaScript that does not end the script it is in.
func literal(s string) string { return strings.ReplaceAll(fmt.Sprintf("%q", s), "</", `<\/`) }
