package conformance

import (
	"bufio"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
)

// shapes are the pages that are written by hand.
func shapes(takes func(choice) bool) (pages []*oddPage) {
	pages = append(sweeps(takes), policyPages()...)
	pages = append(pages, redirectPages()...)
	pages = append(pages, statePages()...)
	pages = append(pages, livePages()...)
	pages = append(pages, markupPages()...)
	pages = append(pages, kindPages()...)
	for i, p := range pages {
		p.host = fmt.Sprintf("s%d.test", i)
	}
	return pages
}

// routes answers by path; "/start" is the page.
type routes map[string]func(q *inquiry) *odd

// written makes a page of a document and what it loads.
func written(name string, doc *odd, more routes) *oddPage {
	p := &oddPage{name: name, target: "/start"}
	p.answer = func(q *inquiry) *odd {
		path, _, _ := strings.Cut(q.target, "?")
		if path == "/start" {
			return doc
		}
		if f := more[path]; f != nil {
			return f(q)
		}
		if f := more["*"]; f != nil && path != "/favicon.ico" {
			return f(q)
		}
		return nil
	}
	return p
}

// htmlPage is an answer with a page in it.
func htmlPage(name, head, body string, fields ...string) *odd {
	return &odd{fields: append(field("Content-Type", "text/html; charset=utf-8"), field(fields...)...), body: document(name, head, body)}
}

func scripted(name, code string, more routes, fields ...string) *oddPage {
	return written(name, htmlPage(name, "", script+code+"</script>", fields...), more)
}

func asIs(mime, body string, fields ...string) func(*inquiry) *odd {
	return func(*inquiry) *odd {
		return &odd{fields: append(field("Content-Type", mime), field(fields...)...), body: body}
	}
}

// sweeps load all choices of one part in one page, by fetch or in frames.
func sweeps(takes func(choice) bool) (pages []*oddPage) {
	for _, protocol := range []string{"http/1.1", "h2", "http"} {
		version := 1
		if protocol == "h2" {
			version = 2
		}
		for _, way := range []string{"fetch", "frame"} {
			for _, part := range append(applied(), "url") {
				if way == "fetch" && (part == "charset" || part == "type") || protocol == "http" && (part == "charset" || part == "type" || part == "coding") {
					continue
				}
				p := sweep(part, way, version, takes)
				p.name += " over " + protocol
				p.h2, p.insecure = protocol == "h2", protocol == "http"
				p.telling = protocol == "http/1.1" && (way == "fetch" && part != "url" || part == "type" || part == "charset")
				pages = append(pages, p)
			}
		}
	}
	return pages
}

func sweep(part, way string, version int, takes func(choice) bool) *oddPage {
	r := findRole(way)
	var urls []string
	made := routes{}
	for i, c := range filtered(choices()[part], takes) {
		if c.only != 0 && c.only != version || way == "frame" && cutsOff(c.name) {
			continue
		}
		url := fmt.Sprintf("/%s/%d", part, i)
		urls = append(urls, url)
		made[url] = func(*inquiry) *odd {
			a := &odd{fields: field("Content-Type", r.mime), body: r.body}
			if part != "charset" {
				a.body = strings.NewReplacer("META", "<meta charset=utf-8>", "TEXT", "żółć").Replace(a.body)
			}
			c.set(a)
			return a
		}
	}
	if part == "url" {
		urls = targets()
		made["*"] = func(q *inquiry) *odd {
			return &odd{fields: field("Content-Type", r.mime), body: strings.NewReplacer("META", "", "TEXT", html.EscapeString(q.target)).Replace(r.body)}
		}
	}
	name := "every " + part + " by " + way
	var list strings.Builder
	for i, url := range urls {
		if part == "url" && strings.HasPrefix(url, "//") {
			url = "/." + url
		}
		if way == "frame" {
			fmt.Fprintf(&list, "<iframe width=150 height=40 src=\"%s\"></iframe>", html.EscapeString(url))
		} else {
			fmt.Fprintf(&list, "await one(%q,%s);", fmt.Sprintf("%s %d", part, i), literalOf(url))
		}
	}
	body := list.String()
	if way == "fetch" {
		body = script + "begin();(async()=>{const one=(k,u)=>fetch(u,{signal:AbortSignal.timeout(5000)}).then(got).then(v=>out(k,v),e=>out(k,e.name));" + list.String() + "})().finally(end)</script>"
	}
	return written(name, htmlPage(name, "", body), made)
}

// realmsOf is a page with scripts in every kind of realm.
func realmsOf() string {
	say := func(k string) string {
		return html.EscapeString(`<!doctype html><title>x</title><body><p>inside</p><script nonce="n0">(parent===self?opener:parent).postMessage(["` + k + `",Math.random()],"*")</script>`)
	}
	worker := `"postMessage(Math.random())"`
	return `<script type=importmap nonce=n0>{"imports":{"dep":"/dep.js"}}</script>` + script + `
onmessage=e=>{if(Array.isArray(e.data)){out(e.data[0],"said");seed(e.data[0],e.data[1])}};
const late=p=>Promise.race([p,new Promise(r=>setTimeout(()=>r("silent"),25000))]);
const hear=(k,make)=>tell(k,late(new Promise((good,bad)=>{const w=make();w.onerror=e=>good("error event");(w.port||w).onmessage=e=>{seed(k,e.data);good("said")}})));
const attempt=(k,f)=>{try{out(k,f())}catch(e){out(k,"error "+e.name)}};
hear("blob worker",()=>new Worker(URL.createObjectURL(new Blob([` + worker + `],{type:"text/javascript"}))));
hear("data worker",()=>new Worker("data:text/javascript,"+` + worker + `));
hear("worker",()=>new Worker("/w.js"));
hear("module worker",()=>new Worker("/mw.js",{type:"module"}));
hear("blob module worker",()=>new Worker(URL.createObjectURL(new Blob(["import v from '"+location.origin+"/dep.js';postMessage([v,Math.random()])"],{type:"text/javascript"})),{type:"module"}));
if(self.SharedWorker)hear("shared worker",()=>new SharedWorker("/shared.js"));
tell("audio worklet",late((async()=>{const c=new OfflineAudioContext(1,256,44100);await c.audioWorklet.addModule("/aw.js");const n=new AudioWorkletNode(c,"p");
const said=new Promise(r=>n.port.onmessage=e=>r(e.data));n.connect(c.destination);await c.startRendering();seed("audio worklet",await said);return "said"})()));
if(self.CSS&&CSS.paintWorklet)tell("paint worklet",late(CSS.paintWorklet.addModule("/paint.js").then(()=>"added")));
attempt("eval",()=>eval("1+1"));attempt("Function",()=>new Function("return 2")());
attempt("innerHTML",()=>{const d=document.createElement("div");d.innerHTML="<b>bold</b><iframe srcdoc='x'></iframe>";return d.innerHTML});
attempt("write",()=>{document.write("<p>written</p>");return "done"});
attempt("script element",()=>{const s=document.createElement("script");s.src="/late.js";document.head.append(s);return "added"});
attempt("inline script element",()=>{const s=document.createElement("script");s.textContent="out('inline made','ran')";document.head.append(s);return "added"});
attempt("style",()=>{document.body.style.color="#333";document.querySelector("h1").setAttribute("style","color:red");return getComputedStyle(document.querySelector("h1")).color});
tell("fetch",fetch("/data").then(said));tell("fetch elsewhere",fetch(location.protocol+"//other."+location.host+"/data").then(said));
attempt("beacon",()=>navigator.sendBeacon("/beacon","b"));
attempt("blob frame",()=>{const f=document.createElement("iframe");f.src=URL.createObjectURL(new Blob(["<!doctype html><script nonce=n0>parent.postMessage(['blob frame',Math.random()],'*')<\/script>"],{type:"text/html"}));document.body.append(f);return "added"});
attempt("empty frame",()=>{const f=document.createElement("iframe");document.body.append(f);seed("empty frame",f.contentWindow.Math.random());return "added"});
` + `</script><script type=module nonce=n0>import v from "dep";out("import map",v);seed("module")</script>
<script type=module src="/m.js" nonce=n0></script><script src="/s.js"></script><script>out("inline without nonce","ran")</script>
<iframe srcdoc="` + say("srcdoc") + `"></iframe><iframe sandbox="allow-scripts" srcdoc="` + say("sandboxed") + `"></iframe>
<iframe sandbox srcdoc="<p>no scripts</p><script>parent.postMessage(['never',1],'*')</script>"></iframe>
<iframe src="data:text/html,` + say("data frame") + `"></iframe><iframe src="/frame"></iframe><iframe sandbox="allow-scripts" src="/frame?sandboxed"></iframe>
<iframe srcdoc='<iframe srcdoc="<p>deep</p>"></iframe>'></iframe>
<img src="/none.png" onerror="out('handler','ran')" alt=none><a href="javascript:out('link','ran')">link</a><p style="color:green">styled</p><object data="/frame?object"></object><embed src="/frame?embed">`
}

func realmRoutes() routes {
	const js = "text/javascript"
	frame := `<!doctype html><title>f</title><p>frame</p><script nonce="n0">parent.postMessage(["frame "+location.search,Math.random()],"*")</script>`
	return routes{
		"/dep.js": asIs(js, "export default 'dep'"), "/m.js": asIs(js, "import v from './dep.js';out('module file',v);seed('module file')"), "/s.js": asIs(js, "out('script','ran');seed('script')"),
		"/late.js": asIs(js, "out('late','ran')"), "/w.js": asIs(js, "postMessage(Math.random())"), "/mw.js": asIs(js, "import v from '/dep.js';postMessage([v,Math.random()])"),
		"/shared.js": asIs(js, "onconnect=e=>e.ports[0].postMessage(Math.random())"), "/paint.js": asIs(js, "registerPaint('p',class{paint(){}})"),
		"/aw.js": asIs(js, `registerProcessor("p",class extends AudioWorkletProcessor{process(){this.port.postMessage(Math.random());return false}})`),
		"/data":  asIs("text/plain", "data", "Access-Control-Allow-Origin", "*"), "/frame": asIs("text/html", frame), "/beacon": asIs("text/plain", ""),
		"/report": asIs("text/plain", ""),
	}
}

// cspShapes are Content-Security-Policies of all shapes. REPORT is where violations are told.
func cspShapes() []string {
	return []string{
		"", "script-src 'nonce-n0'", "script-src 'nonce-n0' 'strict-dynamic'", "script-src 'nonce-n0' 'strict-dynamic' 'unsafe-inline' https:", "default-src 'self'", "default-src 'none'",
		"default-src 'none'; script-src 'nonce-n0'; frame-src *; worker-src blob: data: 'self'; connect-src 'none'", "script-src 'self' 'unsafe-inline'", "script-src 'unsafe-inline' 'unsafe-eval' data: blob:",
		"script-src-elem 'nonce-n0'; script-src-attr 'none'", "script-src 'none'; script-src-elem 'nonce-n0'", "default-src 'nonce-n0'", "script-src 'sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=' 'nonce-n0' 'unsafe-hashes'",
		"require-trusted-types-for 'script'", "require-trusted-types-for 'script'; trusted-types 'none'; script-src 'nonce-n0'", "require-trusted-types-for 'script'; trusted-types a b 'allow-duplicates'",
		"trusted-types default", "sandbox allow-scripts", "sandbox", "sandbox allow-scripts allow-same-origin", "worker-src 'none'; script-src 'nonce-n0' 'strict-dynamic'", "child-src 'none'; frame-src 'self'",
		"connect-src 'none'", "connect-src /nowhere", "frame-ancestors 'none'; base-uri 'none'; form-action 'none'", "upgrade-insecure-requests; block-all-mixed-content", "SCRIPT-SRC 'NONCE-n0' 'Strict-Dynamic';;; ; img-src *",
		"script-src 'nonce-n0'; script-src 'none'", "script-src 'report-sample' 'nonce-n0'", "nonsense; script-src\t'nonce-n0'", "script-src 'nonce-n0', script-src 'nonce-n0' 'self'", "script-src 'nonce-n0' 'wasm-unsafe-eval' 'inline-speculation-rules'",
		"default-src 'self' 'unsafe-inline'; script-src-elem 'unsafe-inline'", "style-src 'none'; script-src 'nonce-n0'", "script-src *", "script-src 'strict-dynamic'", "script-src 'trusted-types-eval' 'nonce-n0'; require-trusted-types-for 'script'",
	}
}

func policyPages() (pages []*oddPage) {
	const csp = "Content-Security-Policy"
	add := func(name string, telling bool, meta string, fields ...string) {
		p := written(name, htmlPage(name, meta, realmsOf(), fields...), realmRoutes())
		p.telling = telling
		p.h2 = len(pages)%2 == 1
		pages = append(pages, p)
	}
	reported := func(policy string) string {
		return strings.ReplaceAll(policy, ",", "; report-uri /report?2,") + "; report-uri /report"
	}
	meta := func(policy string) string {
		return `<meta http-equiv="` + csp + `" content="` + html.EscapeString(policy) + `">`
	}
	for i, policy := range cspShapes() {
		switch {
		case policy == "":
			add("realms without a policy", true, "")
			continue
		default:
			add("header "+policy, i == 3 || i == 14, "", csp, reported(policy))
		}
		if i%3 == 0 {
			add("report only "+policy, false, "", csp+"-Report-Only", reported(policy))
		}
		if i%3 == 1 && !strings.Contains(policy, "sandbox") {
			add("meta "+policy, i == 1, meta(policy))
		}
	}
	add("header and meta", false, meta("script-src 'nonce-n0' 'unsafe-inline'"), csp, reported("script-src 'nonce-n0' 'self' 'strict-dynamic'"))
	add("two headers", false, "", csp, reported("script-src 'nonce-n0'"), csp, reported("default-src 'self' 'nonce-n0'; worker-src blob:"))
	add("header and report only", false, "", csp, reported("script-src 'nonce-n0'"), csp+"-Report-Only", reported("default-src 'none'; require-trusted-types-for 'script'"))
	add("report-to", false, "", "Reporting-Endpoints", `r="/report"`, csp, "script-src 'nonce-n0'; report-to r")
	add("isolated", false, "", "Cross-Origin-Opener-Policy", "same-origin", "Cross-Origin-Embedder-Policy", "require-corp")
	add("empty policy", false, "", csp, "")
	return pages
}

// redirectPages are redirects with odd addresses.
func redirectPages() (pages []*oddPage) {
	locations := []string{
		"/end", "end?a=b", "?only=query", "", "#frag", "//OTHER/end", "HTTPS://SELF:443/end", "/a b|c?d e", "/ż?ó", "/%zz?%", "\\end", "/./x/../end", "http:end", "/end#frag", " /end ", "/end\tx", "data:text/plain,no", "/\xe9",
		"https:/end", "https:///SELF/end", "/end?u=https://x/y", "javascript:1", "/end;a", "/%2fend", "./", "../../end", "//SELF/end//x", "https://user:pw@SELF/end", "/" + strings.Repeat("long/", 300),
	}
	made := routes{"*": func(q *inquiry) *odd {
		return &odd{fields: field("Content-Type", "text/plain", "Access-Control-Allow-Origin", "*"), body: "at " + q.target + " by " + q.method}
	}}
	code := "begin();(async()=>{const one=(k,u,o)=>fetch(u,o).then(said).then(v=>out(k,v),e=>out(k,e.name));"
	for i, l := range locations {
		status := []int{301, 302, 303, 307, 308}[i%5]
		path := fmt.Sprintf("/r/%d", i)
		made[path] = func(q *inquiry) *odd {
			to := strings.NewReplacer("SELF", q.host, "OTHER", "other."+q.host).Replace(l)
			return &odd{status: status, fields: field("Location", to, "Access-Control-Allow-Origin", "*"), body: "see elsewhere"}
		}
		code += fmt.Sprintf("await one(%q,%q);", path, path)
		if status != 301 {
			code += fmt.Sprintf("await one(%q,%q,{method:'POST',body:'x'});", path+" post", path)
		}
	}
	more := map[string]*odd{
		"/none": {status: 302}, "/300": {status: 300, fields: field("Location", "/end")}, "/304": {status: 304}, "/305": {status: 305, fields: field("Location", "/end")},
		"/twice": {status: 302, fields: field("Location", "/end?1", "Location", "/end?2")}, "/loop": {status: 302, fields: field("Location", "/loop")}, "/205": {status: 205, body: "x"}, "/204": {status: 204, fields: field("X", "y"), framing: framing{length: "-"}},
		"/cookie": {status: 302, fields: field("Location", "/end", "Set-Cookie", "hop=1")}, "/200": {status: 200, fields: field("Location", "/end"), body: "stays"},
	}
	for path, a := range more {
		made[path] = func(*inquiry) *odd { return a }
	}
	for _, path := range []string{"/none", "/300", "/304", "/305", "/twice", "/loop", "/205", "/204", "/cookie", "/200"} {
		code += fmt.Sprintf("await one(%q,%q);await one(%q,%q,{redirect:'manual'});", path, path, path+" manual", path)
	}
	code += "})().finally(end)"
	for _, h2 := range []bool{false, true} {
		p := scripted("redirects of fetches", code, made)
		p.h2, p.telling = h2, !h2
		pages = append(pages, p)
	}
	for i, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{"/end?ż|%", "//other.SELF/end", "/hop?1"} {
			p := written(fmt.Sprint("a document that goes by ", status, " to ", to), nil, nil)
			p.h2 = i%2 == 0
			p.answer = func(q *inquiry) *odd {
				switch path, query, _ := strings.Cut(q.target, "?"); {
				case path == "/start":
					return &odd{status: status, fields: field("Location", strings.ReplaceAll(to, "SELF", q.host), "Set-Cookie", "a=b"), body: "gone"}
				case path == "/hop" && query != "111":
					return &odd{status: status, fields: field("Location", q.target+"1"), body: "on"}
				case path == "/end" || path == "/hop":
					return htmlPage("the end", "", script+"out('cookie',document.cookie);tell('again',fetch('/data',{cache:'no-store'}).then(said))</script>")
				case path == "/data":
					return &odd{fields: field("Content-Type", "text/plain"), body: q.get("Cookie")}
				}
				return nil
			}
			pages = append(pages, p)
		}
	}
	refresh := func(name string, a *odd) {
		pages = append(pages, written(name, a, routes{"/next": func(*inquiry) *odd { return htmlPage("next", "", "<p>next</p>") }}))
	}
	refresh("a Refresh field", htmlPage("refresh", "", script+"begin()</script>", "Refresh", "0;URL='/next?ż'"))
	refresh("a refreshing meta", htmlPage("refresh", `<meta http-equiv=refresh content="0, url=/next">`, script+"begin()</script>"))
	refresh("a page that goes by script", htmlPage("goes", "", script+"begin();location.replace('/next?a|b%')</script>"))
	refresh("a page that posts itself away", htmlPage("posts", "", `<form id=f method=post action="/next?p" enctype="text/plain"><input name="a|b" value="ż&%"></form>`+script+"begin();f.submit()</script>"))
	return pages
}

// statePages have cookies and caches of all shapes.
func statePages() (pages []*oddPage) {
	cookies := []string{
		"a=b", "=nameless", "bare", "sp = sp aced ", `q="quo;ted"`, "u=ż", "l=\xe9", "c=a,b", "e=", "age=1; Max-Age=100", "gone=1; Max-Age=0", "exp=1; Expires=Wed, 09 Jun 2100 10:18:14 GMT", "old=1; expires=Wednesday, 09-Jun-21 10:18:14 GMT",
		"odd=1; expires=Tue Jun 9 2099 10:18:14", "day=1; Expires=Mon, 09 Jun 2100 10:18:14 GMT", "two=1; Expires=Sun, 06 Nov 94 08:49:37 GMT", "p=1; Path=/deep", "d=1; Domain=nowhere.test", "s=1; Secure; HttpOnly", "x=1; SameSite=None; Secure", "y=1; SameSite=Wrong",
		"part=1; Secure; Path=/; SameSite=None; Partitioned", "__Host-a=1; Secure; Path=/", "__Secure-a=1", "ctl=a\x01b", "tab=a\tb", "big=" + strings.Repeat("x", 5000), "n=1; Max-Age=abc; foo=bar; HttpOnly=no", "eq=a=b=c", "pct=%zz%", "json={\"a\":[1,2]}", "amp=a&b;c", "del=\x7f",
	}
	isOdd := func(c string) bool { return strings.ContainsAny(c, "\x01\x7f") } // what HTTP/2 does not take
	made := routes{"/echo": func(q *inquiry) *odd {
		return &odd{fields: field("Content-Type", "text/plain", "Cache-Control", "no-store"), body: q.get("Cookie")}
	}}
	code, some := "begin();(async()=>{", ""
	for i, c := range cookies {
		path := fmt.Sprintf("/c/%d", i)
		made[path] = func(*inquiry) *odd {
			return &odd{fields: field("Set-Cookie", c, "Content-Type", "text/plain"), body: "x"}
		}
		set := fmt.Sprintf("await fetch(%q).then(r=>r.text()).catch(()=>out(%q,'error'));", path, path)
		if code += set; !isOdd(c) {
			some += set
		}
	}
	rest := `out("cookie",document.cookie);out("echo",await (await fetch("/echo")).text());document.cookie="js=ż; path=/";document.cookie="t=1; expires="+new Date(Date.now()+1e6).toUTCString();out("again",document.cookie);out("echo 2",await (await fetch("/echo?2")).text())})().finally(end)`
	for _, way := range []string{"http/1.1", "h2", "http"} {
		list := code
		if way == "h2" {
			list = "begin();(async()=>{" + some
		}
		p := scripted("cookies over "+way, list+rest, made)
		p.h2, p.insecure, p.telling = way == "h2", way == "http", way == "http/1.1"
		pages = append(pages, p)
	}
	return append(pages, cachePages()...)
}

// cachePages have no validators: a recorder leaves conditions out, so that the archive has the answer.
func cachePages() (pages []*oddPage) {
	kinds := [][]string{
		{"Cache-Control", "no-store"}, {"Cache-Control", "max-age=600"}, {"Cache-Control", "max-age=600, immutable"}, {"Cache-Control", "no-cache"}, {"Cache-Control", "max-age=0, must-revalidate"},
		{"Cache-Control", "max-age=600", "Vary", "X-Kind"}, {"Cache-Control", "max-age=600", "Vary", "*"}, {"Cache-Control", "private, max-age=600", "Age", "900"}, {"Cache-Control", "max-age=1, stale-while-revalidate=600", "Age", "5"}, {"Expires", "0"}, {"Expires", "-1", "Pragma", "no-cache"},
		{"Cache-Control", "MAX-AGE=600"}, {"Cache-Control", "max-age = 600"}, {"Cache-Control", "s-maxage=600"}, {"Cache-Control", "max-age=99999999999999999999"}, {"Cache-Control", "max-age=600", "Expires", "0"}, {}, {"Cache-Control", "no-cache=\"Set-Cookie\", max-age=600"},
	}
	made := routes{}
	code := "begin();(async()=>{const one=async(k,u,o)=>{try{const r=await fetch(u,o);out(k,r.status+' '+await r.text())}catch(e){out(k,e.name)}};"
	for i, k := range kinds {
		path := fmt.Sprintf("/k/%d", i)
		made[path] = func(q *inquiry) *odd {
			body := "answer " + strconv.Itoa(q.nth)
			if strings.Contains(strings.Join(k, ""), "stale-while-revalidate") { // when the browser asks again is chance
				body = "answer"
			}
			return &odd{fields: append(field("Content-Type", "text/plain"), field(k...)...), body: body}
		}
		code += fmt.Sprintf("for(const o of [{},{},{cache:'force-cache'},{headers:{'X-Kind':'b'}},{cache:'no-cache'},{cache:'reload'},{cache:'default'},{cache:'only-if-cached',mode:'same-origin'},{cache:'no-store'}])await one(%q+JSON.stringify(o)+(n=(self.n||0)+1),%q,o);", path, path)
	}
	code = "var n=0;" + code + "})().finally(end)"
	for _, h2 := range []bool{false, true} {
		p := scripted("caches", code, made)
		p.h2 = h2
		pages = append(pages, p)
	}
	whole := strings.Repeat("0123456789", 100)
	ranges := routes{"/r": func(q *inquiry) *odd {
		from, to := 0, len(whole)-1
		if n, _ := fmt.Sscanf(q.get("Range"), "bytes=%d-%d", &from, &to); n == 0 {
			return &odd{fields: field("Content-Type", "text/plain", "Accept-Ranges", "bytes", "ETag", `"r"`), body: whole}
		}
		if from >= len(whole) {
			return &odd{status: 416, fields: field("Content-Range", fmt.Sprint("bytes */", len(whole)))}
		}
		to = min(to, len(whole)-1)
		return &odd{status: 206, fields: field("Content-Type", "text/plain", "Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(whole)), "ETag", `"r"`), body: whole[from : to+1]}
	}}
	p := scripted("ranges", `begin();(async()=>{for(const r of ["bytes=0-9","bytes=10-","bytes=990-2000","bytes=5000-","bytes=0-0","lines=1-2"])await fetch("/r",{headers:{Range:r}}).then(got).then(v=>out(r,v),e=>out(r,e.name));out("all",await fetch("/r").then(got))})().finally(end)`, ranges)
	return append(pages, p)
}

// livePages are sockets, streams, workers of the network, hints.
func livePages() (pages []*oddPage) {
	frame := func(first byte, payload string) string {
		if len(payload) < 126 {
			return string([]byte{first, byte(len(payload))}) + payload
		}
		return string([]byte{first, 126, byte(len(payload) >> 8), byte(len(payload))}) + payload
	}
	socket := func(fields string, frames ...string) func(*inquiry) *odd {
		return func(*inquiry) *odd {
			return &odd{takeOver: func(c net.Conn, r *bufio.Reader, q *inquiry) {
				sum := sha1.Sum([]byte(q.get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
				fmt.Fprintf(c, "HTTP/1.1 101 Go\r\nupgrade: WebSocket\r\nCONNECTION: keep-alive, Upgrade\r\nSec-WebSocket-Accept: %s\r\n%s\r\n", base64.StdEncoding.EncodeToString(sum[:]), fields)
				for _, f := range frames {
					if _, err := io.WriteString(c, f); err != nil {
						return
					}
				}
				_, _ = io.Copy(io.Discard, r) // until the page closes
			}}
		}
	}
	made := routes{
		"/plain": socket("", frame(0x81, "one"), frame(0x82, "\x00\x01"), frame(0x81, ""), frame(0x88, "\x03\xe8bye")), "/split": socket("", frame(0x01, "a"), frame(0x89, "ping"), frame(0x00, "ż"), frame(0x80, "c"), frame(0x88, "\x0f\xa0")),
		"/long": socket("", frame(0x81, strings.Repeat("x", 3000)), frame(0x88, "")), "/protocol": socket("Sec-WebSocket-Protocol: b\r\n", frame(0x81, "p"), frame(0x88, "\x03\xe9")), "/bad": socket("", frame(0x81, "\xff\xfe")), "/reserved": socket("", frame(0xb1, "x")),
		"/refused": func(*inquiry) *odd { return &odd{status: 403, body: "no"} },
	}
	// Whether a socket is open before its first frame is found to be bad depends on whether both come in one read.
	code := `begin();(async()=>{for(const [u,p] of [["/plain"],["/split"],["/long"],["/protocol",["a","b"]],["/bad"],["/reserved"],["/refused"]])await new Promise(done=>{const l=[],w=new WebSocket("wss://"+location.host+u,p||[]);w.binaryType="arraybuffer";w.onopen=()=>l.push("open "+w.protocol);w.onmessage=e=>l.push(typeof e.data=="string"?e.data.slice(0,9)+e.data.length:"bytes"+e.data.byteLength);w.onerror=()=>l.push("error");w.onclose=e=>{out(u,l.join().replace(/^open ,error$/,"error")+" "+e.code+" "+e.reason+" "+e.wasClean);done()}})})().finally(end)`
	for _, h2 := range []bool{false, true} {
		p := scripted("sockets", code, made)
		p.h2, p.telling = h2, !h2
		pages = append(pages, p)
	}
	breaks := func(reset bool) func(*inquiry) *odd {
		return func(*inquiry) *odd {
			return &odd{takeOver: func(c net.Conn, _ *bufio.Reader, _ *inquiry) {
				if inner, ok := c.(*tls.Conn); ok && reset {
					_ = inner.NetConn().(*net.TCPConn).SetLinger(0) // the kernel sends RST
					_ = inner.NetConn().Close()
				}
				_ = c.Close()
			}}
		}
	}
	// No browser repeats a POST by itself.
	pages = append(pages, scripted("broken connections", `begin();(async()=>{for(const u of ["/closed","/reset","/closed","/works"])
		await fetch(u,{method:"POST",body:"x"}).then(async r=>out(u,r.status+" "+await r.text()),e=>out(u,e.name))})().finally(end)`, routes{
		"/closed": breaks(false), "/reset": breaks(true),
		"/works": asIs("text/plain", "at last"),
	}))
	const js = "text/javascript"
	sw := scripted("a service worker", `tell("sw",navigator.serviceWorker.register("/sw.js").then(async()=>{await navigator.serviceWorker.ready;if(!navigator.serviceWorker.controller)await new Promise(r=>navigator.serviceWorker.oncontrollerchange=r);return (await fetch("/made")).text()+""&&[await (await fetch("/made")).text(),await (await fetch("/passed?ż|%")).text(),await (await fetch("/cached")).text()].join()}))`,
		routes{"/sw.js": asIs(js, `importScripts("/part.js");oninstall=e=>e.waitUntil(caches.open("c").then(c=>c.add("/cached")).then(()=>skipWaiting()));onactivate=e=>e.waitUntil(clients.claim());onfetch=e=>{const u=new URL(e.request.url);if(u.pathname=="/made")e.respondWith(new Response(part+"made"));else if(u.pathname=="/cached")e.respondWith(caches.match("/cached"));else if(u.pathname=="/passed")e.respondWith(fetch(e.request))}`),
			"/part.js": asIs(js, "self.part='part '"), "/passed": asIs("text/plain", "passed"), "/cached": asIs("text/plain", "cached")})
	swm := scripted("a module service worker", `tell("sw",navigator.serviceWorker.register("/sw.js",{type:"module"}).then(async()=>{await navigator.serviceWorker.ready;if(!navigator.serviceWorker.controller)await new Promise(r=>navigator.serviceWorker.oncontrollerchange=r);return (await fetch("/made")).text()}))`,
		routes{"/sw.js": asIs(js, `import part from "/part.js";oninstall=()=>skipWaiting();onactivate=e=>e.waitUntil(clients.claim());onfetch=e=>{if(/made/.test(e.request.url))e.respondWith(new Response(part+"made"))}`), "/part.js": asIs(js, "export default 'part '")})
	pages = append(pages, sw, swm)
	// An answer that nobody may read is listed when its body has ended, which may be after the page has its head.
	beacons := scripted("beacons and posts", `const listed=(name,v)=>new Promise(d=>new PerformanceObserver((l,o)=>{if(l.getEntries().some(e=>name.test(e.name))){o.disconnect();d(v)}}).observe({type:"resource",buffered:true}));navigator.sendBeacon("/b?1",new Blob(["ż"],{type:"text/plain"}));navigator.sendBeacon("/b?2",new URLSearchParams({a:"ż|%"}));tell("keepalive",fetch("/b?3",{method:"POST",keepalive:true,body:"k"}).then(said));tell("put",fetch("/b?4",{method:"PUT",body:new Uint8Array([0,255])}).then(said));tell("patch",fetch("/b?5",{method:"PATCH",body:"p",headers:{"X-A":"a","Content-Type":"application/merge-patch+json"}}).then(said));tell("odd method",fetch("/b?6",{method:"PROPFIND"}).then(said));tell("lower method",fetch("/b?7",{method:"patch",body:""}).then(said));tell("delete",fetch("/b?8",{method:"DELETE"}).then(said));tell("head",fetch("/b?9",{method:"HEAD"}).then(got));tell("form",fetch("/b?10",{method:"POST",body:(()=>{const f=new FormData();f.append("a","ż");f.append("f",new Blob(["x"]),"ü.txt");return f})()}).then(said));tell("preflight",fetch(location.protocol+"//other."+location.host+"/b?11",{method:"PUT",headers:{"X-B":"1"},body:"x"}).then(said));tell("no-cors",fetch(location.protocol+"//other."+location.host+"/b?12",{mode:"no-cors"}).then(r=>listed(/b\?12$/,r.type)));tell("integrity",fetch("/b?13",{integrity:"sha256-AAAA"}).then(said));new Image().src="/b?pixel="+encodeURIComponent("ż|");`,
		routes{"/b": func(q *inquiry) *odd {
			return &odd{fields: field("Content-Type", "text/plain", "Access-Control-Allow-Origin", "*", "Access-Control-Allow-Methods", "*", "Access-Control-Allow-Headers", "*"), body: fmt.Sprintf("%s %s", q.method, q.target)}
		}})
	two := *beacons
	two.name, two.h2 = "beacons and posts in HTTP/2", true
	return append(pages, beacons, &two)
}

// markupPages are documents that are written oddly.
func markupPages() (pages []*oddPage) {
	report := script + lib + "out('mode',document.compatMode);out('first',document.head.firstElementChild?document.head.firstElementChild.tagName:'none')</script><pre id=o></pre>"
	for name, text := range map[string]string{
		"no doctype":            "<html><head></head><body>" + report,
		"nothing but text":      "only text, without any tag",
		"only a script":         report,
		"comments first":        "<!-- a --><!--> --><!doctype html><!-- b --><html><!-- c --><head><!-- d -->" + report,
		"an odd doctype":        `<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN" "a>b">` + report,
		"a conditional comment": "<!doctype html><!--[if lt IE 9]><html class=ie><![endif]--><!--[if !IE]><!--><html class=no><!--<![endif]--><head>" + report,
		"attributes with >":     `<!doctype html><html data-a="a>b" data-c='<head>'><head data-x=">">` + report,
		"a head in a comment":   "<!doctype html><!-- <head> --><html>" + report,
		"a base":                `<!doctype html><base href="/sub/"><html>` + report + `<img src="x.png" alt=x>`,
		"a template first":      "<!doctype html><html><template><script>out('never',1)</script></template>" + report,
		"noscript in the head":  "<!doctype html><html><head><noscript><style>body{display:none}</style></noscript>" + report,
		"head is a header":      "<!doctype html><header>no head</header>" + report,
		"a frameset":            "<!doctype html><html><frameset cols='50%,50%'><frame src='/f1'><frame src='/f2'></frameset></html>",
		"a zero byte":           "<!doctype html>\x00<html>\x00<head>" + report,
		"an open comment":       "<!doctype html><html><body>" + report + "<p>text<!-- never ends",
		"an open tag":           "<!doctype html><html><body>" + report + "<p>text<a href=",
		"plaintext":             "<!doctype html><html><body>" + report + "<plaintext><script>out('never',1)</script><iframe srcdoc=x></iframe>",
		"scripts in scripts":    "<!doctype html><html><body>" + report + "<script nonce=n0><!-- <script> \"</script>\" --> out('x',1)</script><textarea><iframe srcdoc='<b>'></iframe></textarea>",
		"duplicate attributes":  "<!doctype html><html><body>" + report + "<iframe srcdoc='<p>first' srcdoc='<p>second'></iframe><iframe src='data:text/html,&lt;p&gt;a' src='/f1'></iframe>",
		"odd frames":            "<!doctype html><html><body>" + report + "<iframe srcdoc=<p>unquoted></iframe><iframe srcdoc=''></iframe><iframe SRCDOC = '&lt;p&gt;refs &amp;amp; &#x17c; &nbsp;'></iframe><iframe src='about:blank'></iframe><iframe src='javascript:\"<p>js\"'></iframe><iframe src=' DATA:text/html;charset=utf-8;base64,PHA+Yg==#x'></iframe>",
		"a shadow root":         "<!doctype html><html><body>" + report + "<div><template shadowrootmode=open><p>shadow</p><iframe srcdoc='<p>in shadow'></iframe></template></div>",
		"svg and math":          "<!doctype html><html><body>" + report + "<svg><script>out('svg script',1)</script><title><iframe srcdoc='x'></iframe></title></svg><math><mi>x</mi></math>",
		"xml with a stylesheet": `<?xml version="1.0"?><?xml-stylesheet href="/x.css"?><html><head>` + report,
		"an import map late":    "<!doctype html><html><body>" + report + "<script type=module nonce=n0>import 'a'</script><script type=importmap>{\"imports\":{\"a\":\"/a.js\"}}</script>",
		"speculation rules":     "<!doctype html><html><body>" + report + `<script type=speculationrules>{"prefetch":[{"urls":["/f1"],"eagerness":"immediate"}]}</script>`,
		"integrity":             "<!doctype html><html><body>" + report + `<script src="/i.js" integrity="sha256-0000" onerror="out('i','error')"></script>`,
		"links":                 "<!doctype html><html><head>" + report + `<link rel=modulepreload href="/a.js"><link rel=prefetch href="/f1"><link rel=preload as=fetch href="/f2" crossorigin><link rel=dns-prefetch href="//d.test"><link rel="alternate stylesheet" href="/x.css" title=a>`,
		"a picture of sources":  "<!doctype html><html><body>" + report + `<picture><source srcset="/p.png 1x, /p2.png 2x" media="(min-width:1px)"><img src="/q.png" loading=lazy alt=p></picture><video poster="/v.png" preload=none></video>`,
		"a very deep page":      "<!doctype html><html><body>" + report + strings.Repeat("<div>", 600) + "deep",
		"a long line of blanks": strings.Repeat(" \n", 40000) + "<!doctype html><html><head>" + report,
		"a comment of 70 kB":    "<!--" + strings.Repeat("c", 70000) + "--><!doctype html><html><head>" + report,
		"a script of 200 kB":    "<!doctype html><html><head>" + report + "<script nonce=n0>/*" + strings.Repeat("s", 200000) + "*/out('big',1)</script>",
		"empty":                 "",
		"a manifest and icons":  "<!doctype html><html manifest=/m.appcache><head>" + report + `<link rel=manifest href="/m.json"><link rel=icon href="data:,">`,
		"document.open":         "<!doctype html><html><body>" + report + script + "onload=()=>{const r=JSON.stringify(report);document.open();document.write('<p>anew '+r);document.close()}</script>",
		"handlers of errors":    "<!doctype html><html><body>" + report + "<script nonce=n0>onerror=(m,f,l)=>{out('error',m+l);return true};nowhere()\n</script><script nonce=n0>\n\nlet x = ;</script><script nonce=n0>Promise.reject(new TypeError('t'))</script>",
		"what is ours":          "<!doctype html><html><body>" + report + script + "out('keys',Object.keys(window).length>0);out('scripts',document.scripts.length);out('own',Object.getOwnPropertyNames(Math).length);out('names',[Date.name,Date.length,Math.random.toString(),Worker.name,fetch.length,document.currentScript&&document.currentScript.nonce].join())</script>",
	} {
		p := written(name, &odd{fields: field("Content-Type", "text/html; charset=utf-8"), body: text}, routes{
			"/f1": asIs("text/html", "<p>one"), "/f2": asIs("text/html", "<p>two"), "/a.js": asIs("text/javascript", "globalThis.a=1"), "/x.css": asIs("text/css", "body{color:#005}"), "/i.js": asIs("text/javascript", "out('i',1)"),
			"/m.json": asIs("application/manifest+json", "{}"), "/p.png": asIs("image/png", picture), "/q.png": asIs("image/png", picture),
		})
		p.telling = name == "odd frames" || name == "what is ours"
		pages = append(pages, p)
	}
	slices.SortFunc(pages, func(a, b *oddPage) int { return strings.Compare(a.name, b.name) })
	for i, p := range pages {
		p.h2 = i%2 == 1
	}
	return pages
}
