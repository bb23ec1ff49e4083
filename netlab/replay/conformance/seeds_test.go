package conformance

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// seeds are the cases of what a page draws by lot or reads of clocks besides Date, Math.random and
// crypto's bytes, and of documents that are blobs and data URLs.
func seeds() []kase {
	const date = "2026-05-06T07:08:09.000Z"
	const listen = `<script>onmessage=function(e){window.result=e.data}</script>`
	inner := `<!doctype html><title>x</title><body><script nonce="abc">` + sample + "parent.postMessage(sample()+document.compatMode,'*')</script>"
	// In a data URL nothing is a secure context, so there is no randomUUID.
	plain := `<!doctype html><meta charset=utf-8><body><script>parent.postMessage([Math.random(),new Date().toISOString(),document.compatMode,document.characterSet,"é"].join(" "),'*')</script>`
	packed := "data:text/html;base64," + base64.StdEncoding.EncodeToString([]byte(plain))
	escaped := "data:text/html," + url.PathEscape(plain)
	framed := func(doc string) string { return `<iframe srcdoc="` + html.EscapeString(doc) + `"></iframe>` }
	// Frames inside tell the outermost page.
	deep := `<!doctype html><body><script>` + sample + `top.postMessage(sample(),'*')</script>`
	const made = `<script>var f=document.createElement("iframe");`
	return slices.Concat([]kase{
		{
			name: "document.lastModified is the recorded field's", want: "true", header: map[string]string{"Last-Modified": "Tue, 05 May 2026 06:07:08 GMT"},
			page: `<script>window.result=(new Date(document.lastModified).getTime()===Date.UTC(2026,4,5,6,7,8))+" "+document.lastModified</script>`,
		},
		{
			name: "document.lastModified without a field is the seeded date", want: "true",
			page: `<script>window.result=(new Date(document.lastModified).getTime()===Date.UTC(2026,4,6,7,8,9))+" "+document.lastModified</script>`,
		},
		{
			name: "performance.timeOrigin fits Date", want: "1778051289000 1778051289000 1778051289000 true true",
			page: `<script>var p=performance,j=JSON.parse(JSON.stringify(p)),t=p.timing;window.result=[p.timeOrigin,j.timeOrigin,t.navigationStart,
				Math.abs(p.timeOrigin+p.now()-Date.now())<60000,t.fetchStart>=t.navigationStart&&t.fetchStart<t.navigationStart+60000&&JSON.parse(JSON.stringify(t)).fetchStart===t.fetchStart].join(" ")</script>`,
		},
		{
			name: "a worker's performance.timeOrigin fits Date", want: "1778051289000",
			page:   `<script>new Worker("/w.js").onmessage=function(e){window.result=e.data}</script>`,
			routes: map[string]http.HandlerFunc{"/w.js": text(js, `postMessage(performance.timeOrigin+" "+Math.random())`)},
		},
		{
			name: "a File's date", want: "1778051289000 7",
			page: `<script>window.result=new File(["x"],"a.txt",{type:"text/plain"}).lastModified+" "+new File([],"b",{lastModified:7}).lastModified</script>`,
		},
		{
			name: "dates of answers fit Date", want: "true true true true true true true",
			page: `<script>(async()=>{const near=(t,by=0)=>Math.abs(Date.parse(t)-by-Date.now())<4000;const got=await fetch("/x"),x=new XMLHttpRequest();x.open("GET","/x",false);x.send();
				window.result=[near(got.headers.get("Date")),near([...got.headers].find(f=>f[0]==="date")[1]),near(x.getResponseHeader("date")),near(/^date: (.*)$/m.exec(x.getAllResponseHeaders())[1]),
				near(got.headers.get("Expires"),36e5),near(x.getResponseHeader("Last-Modified"),-36e5),
				!near(new Headers({date:new Date(7e11).toUTCString()}).get("date"))&&new Response("",{headers:got.headers}).headers.get("date")!==null].join(" ")})().catch(e=>{window.result="error "+e})</script>`,
			routes: map[string]http.HandlerFunc{"/x": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Expires", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
				w.Header().Set("Last-Modified", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
			}},
		},
		{
			name: "what is seeded looks native", want: "all",
			page: `<script>(function(){var bad=[];function look(o,k,name,length,kind){var d=Object.getOwnPropertyDescriptor(o,k);if(!d){return}
				var f=d[kind||"value"],text=Function.prototype.toString.call(f);
				if(!new RegExp("^function "+name.replace(/^([gs]et )/,"(?:$1)?")+"\\(\\) \\{\\s*\\[native code\\]\\s*\\}$").test(text)||f.name!==name||f.length!==length||f.hasOwnProperty("prototype")&&!/^[A-Z]/.test(name))bad.push(name+" "+f.length+" "+text);
				if(!/^[A-Z]/.test(name)){try{new f();bad.push("new "+name)}catch(e){e instanceof TypeError||bad.push(e)}}}
				look(Math,"random","random",0);look(Date,"now","now",0);look(window,"Date","Date",7);look(window,"Worker","Worker",1);look(window,"Blob","Blob",0);look(window,"File","File",2);
				look(Crypto.prototype,"getRandomValues","getRandomValues",1);look(Crypto.prototype,"randomUUID","randomUUID",0);look(SubtleCrypto.prototype,"generateKey","generateKey",3);
				look(URL,"createObjectURL","createObjectURL",1);look(Function.prototype,"toString","toString",0);look(Document.prototype,"write","write",0);
				look(Document.prototype,"cookie","set cookie",1,"set");look(Document.prototype,"lastModified","get lastModified",0,"get");look(Performance.prototype,"timeOrigin","get timeOrigin",0,"get");
				look(Element.prototype,"innerHTML","set innerHTML",1,"set");look(HTMLIFrameElement.prototype,"srcdoc","set srcdoc",1,"set");look(HTMLIFrameElement.prototype,"src","get src",0,"get");
				look(HTMLIFrameElement.prototype,"contentWindow","get contentWindow",0,"get");look(Intl.DateTimeFormat.prototype,"format","get format",0,"get");look(Intl.DateTimeFormat.prototype,"formatToParts","formatToParts",1);
				try{crypto.getRandomValues.call({},new Uint8Array(1));bad.push("getRandomValues of {}")}catch(e){}
				window.result=bad.join("; ")||"all"})()</script>`,
		},
		{
			name: "crypto.subtle's keys of bytes are seeded", want: "k ",
			page: `<script>(async()=>{var s=crypto.subtle,out=[];for(var g of [[{name:"AES-GCM",length:256},["encrypt"]],[{name:"aes-kw",length:128},["wrapKey"]],[{name:"HMAC",hash:"SHA-384"},["sign"]],[{name:"HMAC",hash:{name:"SHA-256"},length:160},["sign"]]]){
				var k=await s.generateKey(g[0],true,g[1]);out.push(k.algorithm.name+k.algorithm.length+k.usages+(await s.exportKey("jwk",k)).k)}
				for(var bad of [[{name:"AES-GCM",length:100},["encrypt"]],[{name:"AES-GCM",length:256},[]],[{name:"AES-GCM",length:256},["sign"]]])await s.generateKey(bad[0],true,bad[1]).then(()=>out.push("?"),e=>out.push(e.name));
				out.push((await s.generateKey({name:"ECDSA",namedCurve:"P-256"},true,["sign"])).publicKey.type);window.result="k "+out.join(" ")})().catch(e=>{window.result="error "+e})</script>`,
		},
		{
			name: "navigator.connection", want: "true",
			page: `<script>var c=navigator.connection;window.result=!c||[c.effectiveType,c.rtt,c.downlink].join()==="4g,50,10"</script>`,
		},

		{name: "a blob's document is seeded", want: date, page: listen + made + `f.src=URL.createObjectURL(new Blob([` + literal(inner) + `],{type:"text/html"}));document.body.append(f)</script>`},
		{
			name: "a blob's document keeps its doctype, its text and its address", want: "CSS1Compat é UTF-8 true BackCompat",
			page: `<script>var a=[];onmessage=function(e){a.push(e.data);if(a.length===2)window.result=a.sort().reverse().join(" ")};
				function show(parts){var f=document.createElement("iframe"),u=URL.createObjectURL(new Blob(parts,{type:"text/html"}));f.src=u;document.body.append(f);return f.src===u&&f.getAttribute("src")===u}
				var s="<scr"+"ipt>parent.postMessage(document.compatMode",e="</scr"+"ipt>";
				var same=show(["<!-- é 100% --><!doctype html>","<p id=p>é</p>"+s+"+' '+p.textContent+' '+document.characterSet+' '+parent.same,'*')"+e]);
				show([new TextEncoder().encode(s+",'*')"+e)])</script>`,
		},
		{
			name: "a blob's document under CSP", want: date, header: map[string]string{"Content-Security-Policy": "default-src 'none'; script-src 'nonce-abc'; frame-src blob:"},
			page: `<script nonce="abc">onmessage=function(e){window.result=e.data};var f=document.createElement("iframe");f.setAttribute("src",URL.createObjectURL(new Blob([` + literal(inner) + `],{type:"text/html"})));document.body.append(f)</script>`,
		},
		{name: "a blob of a blob is seeded", want: date, page: listen + made + `f.src=URL.createObjectURL(new Blob([new Blob([` + literal(inner) + `],{type:"text/html"})],{type:"text/html"}));document.body.append(f)</script>`},
		{name: "a data URL's document is seeded", want: date + " CSS1Compat UTF-8 é", page: listen + made + `f.src=` + literal(packed) + `;document.body.append(f)</script>`},
		{name: "an escaped data URL's document is seeded", want: date + " CSS1Compat UTF-8 é", page: listen + made + `f.src=` + literal(escaped) + `;document.body.append(f)</script>`},
		{name: "a data URL's document in markup is seeded", want: date + " CSS1Compat UTF-8 é", page: listen + `<iframe src="` + html.EscapeString(escaped) + `"></iframe>`},
		{name: "a data URL's document in made markup is seeded", want: date + " CSS1Compat UTF-8 é", page: listen + `<div id=d></div><script>d.innerHTML=` + literal(`<iframe src="`+html.EscapeString(packed)+`">`) + `</script>`},
		{
			name: "two documents of data URLs differ", want: "2",
			page: `<script>var a=new Set;onmessage=function(e){a.add(e.data);if(a.size===2)window.result="2 "+[...a].sort()}</script><iframe src="` + html.EscapeString(packed) + `"></iframe><iframe src="` + html.EscapeString(packed) + `"></iframe>`,
		},
	}, nested(deep, framed, listen))
}

// nested are the cases of srcdoc in srcdoc.
func nested(deep string, framed func(string) string, listen string) []kase {
	const date = "2026-05-06T07:08:09.000Z"
	two := `<!doctype html><body>` + framed(deep)
	said := `<!doctype html><html><meta charset=utf-8><body><script>` + sample + `parent.postMessage(sample()+document.compatMode+document.characterSet+document.doctype.name+document.scripts.length,"*")</script>`
	return []kase{
		{
			name: "documents and workers that a service worker answers are seeded", want: "4 of 4",
			page: `<script>(async()=>{await navigator.serviceWorker.register("/sw.js");if(!navigator.serviceWorker.controller)await new Promise(r=>navigator.serviceWorker.oncontrollerchange=r);
				const a=[],end=(e)=>{a.push(e.data);if(a.length===4)window.result=a.filter(t=>t.includes("` + date + `")&&!t.includes("BackCompat")&&!/windows/.test(t)).length+" of 4 "+a.sort().join(" ")};onmessage=end;
				for(const u of ["/made","/shell","/slow"]){const f=document.createElement("iframe");f.src=u;document.body.append(f)}new Worker("/w.js").onmessage=end})().catch(e=>{window.result="error "+e})</script>`,
			routes: map[string]http.HandlerFunc{
				"/shell": text("text/html", strings.ReplaceAll(said, "sample()+", `"shell"+sample()+`)),
				"/w.js":  text("text/javascript", sample+`postMessage("work"+sample())`),
				"/sw.js": text("text/javascript", `oninstall=e=>{skipWaiting();e.waitUntil(caches.open("c").then(c=>c.addAll(["/shell","/w.js"])))};onactivate=e=>e.waitUntil(clients.claim());
					onfetch=e=>{const u=new URL(e.request.url).pathname;if(u==="/made")e.respondWith(new Response(`+literal(said)+`,{headers:{"content-type":"text/html"}}));
					else if(u==="/slow")e.respondWith(new Response(new ReadableStream({async start(c){for(const s of ["<",...slow])c.enqueue(new TextEncoder().encode(s)),await new Promise(r=>setTimeout(r,9));c.close()}}),{headers:{"content-type":"text/html"}}))
					else if(u!=="/")e.respondWith(caches.match(u))};const slow=`+literal(said[1:])+`.replace("CSS1","slow").match(/[^]{1,12}/g)`),
			},
		},
		{name: "a srcdoc in a srcdoc is seeded", want: date, page: listen + framed(two)},
		{name: "a srcdoc in a srcdoc in a srcdoc is seeded", want: date, page: listen + framed("<p>"+framed(two))},
		{name: "a srcdoc with a srcdoc in other quotes is seeded", want: date, page: listen + `<iframe srcdoc='<p><iframe srcdoc="` + html.EscapeString(html.EscapeString(deep)) + `"></iframe>'></iframe>`},
		{name: "a srcdoc in a srcdoc by script is seeded", want: date, page: listen + fmt.Sprintf(`<script>var f=document.createElement("iframe");f.srcdoc=%s;document.body.append(f)</script>`, literal(two))},
		{name: "a srcdoc in a srcdoc by innerHTML is seeded", want: date, page: listen + fmt.Sprintf(`<div id=d></div><script>d.innerHTML=%s</script>`, literal(framed(two)))},
		{
			name: "a srcdoc by innerHTML in other quotes is seeded", want: date,
			page: listen + fmt.Sprintf(`<div id=d></div><script>d.innerHTML=%s</script>`, literal(`<iframe srcdoc='<p><iframe srcdoc="`+html.EscapeString(html.EscapeString(deep))+`"></iframe>'></iframe>`)),
		},
	}
}
