package conformance

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"eidetic/netlab/inject"
)

// text serves a body with a media type.
func text(mime, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mime)
		_, _ = io.WriteString(w, body)
	}
}

const js = "text/javascript"

// sample is what each realm reports of itself: random numbers, bytes, a UUID, dates.
const sample = `function sample(){var b=new Uint8Array(5);crypto.getRandomValues(b);
return [Math.random(),Math.random(),b.join(),crypto.randomUUID(),Date.now(),new Date().toISOString(),new Date(5).getTime(),new Date() instanceof Date,typeof Date()].join("|");}`

// determinism are the cases of the seeded script.
func determinism() []kase {
	const date = "2026-05-06T07:08:09.000Z"
	worker := sample + `postMessage(sample());`
	return []kase{
		{name: "a document is seeded", want: date, page: "<script>" + sample + "window.result=sample()</script>"},
		{name: "random numbers are a real stream", want: "true", page: `<script>var s=new Set;for(var i=0;i<10000;i++)s.add(Math.random());
			var sum=0;s.forEach(function(v){sum+=v});window.result=(s.size===10000&&Math.abs(sum/10000-.5)<.02)+" "+sum</script>`},
		{
			name: "the date goes on",
			want: "true",
			page: `<script>var a=Date.now(),n=0;while(Date.now()-a<500&&n<1e6)n++;window.result=(n<1e6)+" "+n</script>`,
		},
		{
			name: "performance.now stays real",
			want: "true",
			page: `<script>var a=performance.now();setTimeout(function(){var d=performance.now()-a;window.result=d>=25&&d<5000},30)</script>`,
		},
		{
			name: "the script removes itself",
			want: "1 HEAD TITLE",
			page: `<script>window.result=document.scripts.length+" "+document.head.nodeName+" "+document.head.firstElementChild.nodeName</script>`,
		},
		{
			name: "patched functions look native",
			want: "true",
			page: `<script>window.result=[Math.random,Date.now,crypto.getRandomValues,Date,Worker].every(function(f){return /\[native code\]/.test(Function.prototype.toString.call(f))})</script>`,
		},
		{
			name: "Date can be subclassed",
			want: "true",
			page: `<script>class D extends Date{x(){return 1}};var d=new D();window.result=d.x()===1&&d instanceof Date&&d.constructor===D&&new Date().constructor===Date&&Date.UTC(1970,0,1)===0&&isNaN(new Date(undefined))&&Date.length===7</script>`,
		},
		{
			name: "Intl and Temporal show the same day",
			want: "2026",
			page: `<script>window.result=new Intl.DateTimeFormat("en-GB",{timeZone:"UTC"}).format()+" "+new Intl.DateTimeFormat("en-GB").formatToParts().length+" "+(typeof Temporal==="undefined"?"":Temporal.Now.plainDateISO("UTC").toString())</script>`,
		},
		{
			name: "getRandomValues keeps its errors",
			want: "QuotaExceededError TypeMismatchError",
			page: `<script>var e=[];[new Uint8Array(70000),new Float32Array(2)].forEach(function(a){try{crypto.getRandomValues(a)}catch(x){e.push(x.name)}});window.result=e.join(" ")</script>`,
		},
		{
			name: "a cookie's own expiry holds",
			want: "k=v",
			page: `<script>document.cookie="k=v; expires="+new Date(Date.now()+3600e3).toUTCString();window.result=document.cookie</script>`,
		},
		{
			name: "a stored cookie's own expiry holds",
			want: "k true",
			page: `<script>(async()=>{if(!window.cookieStore)return window.result="k true";var near=c=>c.expires===undefined||Math.abs(c.expires-Date.now()-3600e3)<9e3;
				await cookieStore.set({name:"k",value:"v",expires:Date.now()+3600e3});await cookieStore.set("plain","1");await cookieStore.set({name:"plain",value:"2",expires:null});
				var all=await cookieStore.getAll(),one=await cookieStore.get("k");window.result=one.name+" "+(near(one)&&near(all.find(c=>c.name==="k"))&&document.cookie.includes("plain=2"))})().catch(e=>{window.result="error "+e})</script>`,
		},
		{name: "a worker is seeded", want: date, page: `<script>new Worker("/w.js").onmessage=function(e){window.result=e.data}</script>`,
			routes: map[string]http.HandlerFunc{"/w.js": text(js, worker)}},
		{
			name: "a strict worker stays strict",
			want: "true",
			page: `<script>new Worker("/w.js").onmessage=function(e){window.result=e.data}</script>`,
			routes: map[string]http.HandlerFunc{
				"/w.js": text(js, `/* c */ "use strict"; postMessage((function(){return this===undefined})()+" "+Math.random());`),
			},
		},
		{
			name:   "a module worker is seeded",
			want:   date,
			page:   `<script>new Worker("/w.js",{type:"module"}).onmessage=function(e){window.result=e.data}</script>`,
			routes: map[string]http.HandlerFunc{"/w.js": text(js, worker)},
		},
		{
			name: "a blob worker is seeded",
			want: date,
			page: `<script>var u=URL.createObjectURL(new Blob([` + fmt.Sprintf(
				"%q",
				worker,
			) + `]));var w=new Worker(u);URL.revokeObjectURL(u);w.onmessage=function(e){window.result=e.data}</script>`,
		},
		{
			name: "a data worker is seeded",
			want: date,
			page: `<script>new Worker("data:text/javascript,"+encodeURIComponent(` + fmt.Sprintf(
				"%q",
				worker,
			) + `)).onmessage=function(e){window.result=e.data}</script>`,
		},
		{
			name:   "a shared worker is seeded",
			want:   date,
			page:   `<script>new SharedWorker("/s.js").port.onmessage=function(e){window.result=e.data}</script>`,
			routes: map[string]http.HandlerFunc{"/s.js": text(js, sample+`onconnect=function(e){e.ports[0].postMessage(sample())}`)},
		},
		{
			name: "a service worker is seeded and serves",
			want: date,
			page: `<script>navigator.serviceWorker.register("/sw.js").then(function(){return navigator.serviceWorker.ready}).then(function(r){
			navigator.serviceWorker.onmessage=function(e){window.result=e.data};r.active.postMessage(1)}).catch(function(e){window.result="error "+e})</script>`,
			routes: map[string]http.HandlerFunc{"/sw.js": text(js, sample+`onmessage=function(e){e.source.postMessage(sample())}`)},
		},
		{
			name:   "a frame is seeded, and differently",
			want:   "true",
			page:   `<iframe src="/f"></iframe><script>` + sample + `onmessage=function(e){var own=sample();window.result=(e.data.split("|")[0]!==own.split("|")[0])+" "+e.data+own}</script>`,
			routes: map[string]http.HandlerFunc{"/f": text("text/html", "<script>"+sample+"parent.postMessage(sample(),'*')</script>")},
		},
		{
			name: "an empty frame is seeded",
			want: "0.",
			page: `<script>var f=document.createElement("iframe");document.body.append(f);window.result=f.contentWindow.Math.random()+" "+f.contentWindow.Date.now()</script>`,
		},
		{
			name: "a srcdoc frame is seeded",
			want: date,
			page: `<script>` + sample + `onmessage=function(e){window.result=e.data};var f=document.createElement("iframe");
			f.srcdoc="<!doctype html><body><scr"+"ipt>"+sample+";parent.postMessage(sample(),'*')</scr"+"ipt>";document.body.append(f)</script>`,
		},
		{
			name:   "a fetched fragment has no script",
			want:   "<p>fragment</p>",
			page:   `<script>fetch("/frag").then(r=>r.text()).then(t=>window.result=t)</script>`,
			routes: map[string]http.HandlerFunc{"/frag": text("text/html", "<p>fragment</p>")},
		},
		{
			name: "a page without head or doctype",
			want: "BackCompat 0.",
			html: `<p>x<script>window.result=document.compatMode+" "+Math.random()</script>`,
		},
		{
			name: "the doctype keeps its effect",
			want: "CSS1Compat",
			html: "<!-- c --><!doctype html><script>window.result=document.compatMode+Math.random()</script>",
		},
		{
			name:   "a late charset is heeded",
			want:   "éUTF-8",
			html:   "<html><head><title>x</title><meta charset=utf-8></head><body><p id=p>é</p><script>window.result=document.getElementById('p').textContent+document.characterSet</script>",
			header: map[string]string{"Content-Type": "text/html"},
		},
		{
			name:  "annotations reach the box",
			want:  "told",
			label: "set=Hello, Streamline.#800000 begin=a#00ff80 end=a set=",
			page: `<script>Gator.annotate("Hello, Streamline.", "#800000");lab.begin("a",{colour:[0,255,128]});lab.end("a");lab.annotate();` +
				`setTimeout(()=>window.result="told",500)</script>`,
		},
		{
			name: "annotations of frames and workers reach the box",
			want: "told",
			page: `<iframe src="/f"></iframe><iframe src="https://b.test/f"></iframe><iframe sandbox="allow-scripts" src="https://c.test/f"></iframe>` +
				`<iframe srcdoc="<script>lab.mark('srcdoc')</script>"></iframe><iframe src="data:text/html,<script>lab.mark('data')</script>"></iframe><script>` +
				`lab.mark("page");var f=document.createElement("iframe");document.body.append(f);f.contentWindow.lab.mark("blank");` +
				`new Worker("/w.js");new Worker("/w.js",{name:"second"});new Worker("/closes.js");if(self.SharedWorker)new SharedWorker("/shared.js");` +
				`new Worker(URL.createObjectURL(new Blob(["lab.mark('blob')"])));new Worker("data:text/javascript,lab.mark('data worker')");` +
				`navigator.serviceWorker.register("/sw.js");setTimeout(()=>window.result="told",2500)</script>`,
			routes: map[string]http.HandlerFunc{
				"/f": text("text/html", `<script>lab.mark("framed")</script>`), "/sw.js": text(js, `lab.mark("served")`), "/shared.js": text(js, `lab.mark("shared")`),
				"/w.js": func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Security-Policy", "default-src 'none'")
					text(js, `lab.mark("worked")`)(w, r)
				},
				"/closes.js": text(js, `lab.mark("closed");close()`),
			},
			told: []string{
				": mark=page", "frame 3: mark=srcdoc", "frame 4: mark=data", "frame 5: mark=blank", "frame https://a.test/f: mark=framed", "frame https://b.test/f: mark=framed",
				"frame https://c.test/f: mark=framed", "service worker https://a.test/sw.js: mark=served", "shared worker https://a.test/shared.js: mark=shared",
				"worker blob:: mark=blob", "worker data:: mark=data worker", "worker https://a.test/closes.js: mark=closed", "worker https://a.test/w.js: mark=worked",
				"worker second: mark=worked",
			},
		},
		{
			name:   "messages reach the box",
			want:   "hello from the frame, true, 3 5 7",
			inject: inject.Options{Messages: true},
			page: `<iframe src="/f"></iframe><script>(async()=>{const once=(t,k)=>new Promise(d=>t.addEventListener(k,d,{once:true}));` +
				`const framed=once(window,"message");const w=new Worker("/w.js");w.postMessage("12345");const a=(await once(w,"message")).data;` +
				`const b=new Worker(URL.createObjectURL(new Blob(["onmessage=e=>postMessage(e.data+2)"])));b.postMessage(3);const c=(await once(b,"message")).data;` +
				`const {port1:p,port2:q}=new MessageChannel();q.onmessage=e=>q.postMessage({seven:e.data});p.start();p.postMessage(new ArrayBuffer(1000));` +
				`const d=(await once(p,"message")).data;const x=new BroadcastChannel("c"),y=new BroadcastChannel("c");const h=once(y,"message");x.postMessage("all");await h;` +
				`const s=new EventSource("/events");await once(s,"named");s.close();` +
				`const m=await framed,r=[m.data,m.source===frames[0],[a-2,c,d.seven.byteLength/250+3].join(" ")].join(", ");setTimeout(()=>window.result=r,700)})()</script>`,
			routes: map[string]http.HandlerFunc{
				"/f":      text("text/html", `<script>parent.postMessage("hello from the frame","*")</script>`),
				"/w.js":   text(js, `onmessage=e=>postMessage(e.data.length)`),
				"/events": text("text/event-stream", "event: named\ndata: 12345678\n\n"),
			},
			told: []string{
				": mark=event named from a.test (8)", ": mark=postMessage from another window, https://a.test (20)", ": receive=broadcast (3)",
				": receive=postMessage (1000)", ": receive=postMessage (1005)", ": receive=postMessage (8)", ": send=broadcast (3)", ": send=postMessage (1000)",
				": send=postMessage (1005)", ": send=postMessage (5)", ": send=postMessage (8)", "worker blob:: receive=postMessage (8)",
				"worker blob:: send=postMessage (8)", "worker https://a.test/w.js: receive=postMessage (5)", "worker https://a.test/w.js: send=postMessage (8)",
			},
		},
		{
			name:  "lab.done reaches the box",
			want:  "204",
			label: "done=cart shown",
			page:  `<script>lab.done("cart\n shown").then(r=>window.result=r.status)</script>`,
		},
		{
			name:  "lab.done of a long name",
			want:  "204",
			label: "done=" + strings.Repeat("x", 99) + "…",
			page:  `<script>lab.done("x".repeat(1e6)).then(r=>window.result=r.status,e=>window.result=e)</script>`,
		},
	}
}

// policies are the cases of Content-Security-Policy: the page's scripts and ours run, and nothing
// else is permitted.
func policies() []kase {
	body := `<script nonce="abc">` + sample + `window.result=sample()+" "+(window.evil||"safe")</script><script>window.evil=1</script>`
	ordered := `<script>window.evil=1</script><script nonce="abc">` + sample + `window.result=sample()+" "+(window.evil||"safe")</script>`
	const safe = "2026-05-06T07:08:09"
	return []kase{
		{name: "CSP nonce", want: safe, page: ordered, header: map[string]string{"Content-Security-Policy": "script-src 'nonce-abc'"}},
		{
			name: "CSP strict-dynamic",
			want: safe,
			page: ordered,
			header: map[string]string{
				"Content-Security-Policy": "script-src 'strict-dynamic' 'nonce-abc' 'unsafe-inline' https:; object-src 'none'",
			},
		},
		{
			name:   "CSP default-src none",
			want:   safe,
			page:   ordered,
			header: map[string]string{"Content-Security-Policy": "default-src 'none'; script-src 'nonce-abc'"},
		},
		{
			name: "CSP in a meta element",
			want: safe,
			html: `<!doctype html><html><head><meta http-equiv="Content-Security-Policy" content="script-src 'nonce-abc'"></head><body>` + ordered,
		},
		{
			name:   "CSP and unsafe-inline stays",
			want:   safe,
			page:   `<script>` + sample + `window.result=sample()</script>`,
			header: map[string]string{"Content-Security-Policy": "script-src 'self' 'unsafe-inline'"},
		},
		{
			name: "trusted types",
			want: safe,
			page: ordered,
			header: map[string]string{
				"Content-Security-Policy": "require-trusted-types-for 'script'; trusted-types 'none'; script-src 'nonce-abc'",
			},
		},
		{
			name:   "CSP and lab.done",
			want:   "204",
			label:  "done=x",
			page:   `<script nonce="abc">lab.done("x").then(r=>window.result=r.status,e=>window.result="error "+e)</script>`,
			header: map[string]string{"Content-Security-Policy": "default-src 'none'; script-src 'nonce-abc'"},
		},
		{
			name:   "subresource integrity",
			want:   "ran",
			page:   `<script>window.ran="no"</script><script src="/i.js" integrity="sha256-3mtlUeiqzEUDzbBYw9a9UcdYYsdfU4pWaO7JVY9iQEA=" onerror="window.result='blocked ran'"></script><script>window.result=window.result||("ran "+window.ran)</script>`,
			routes: map[string]http.HandlerFunc{"/i.js": text(js, `window.ran="yes"`)},
		},
		{
			name:   "the page's own order of scripts",
			want:   safe,
			page:   body,
			header: map[string]string{"Content-Security-Policy": "script-src 'nonce-abc'"},
		},
	}
}
