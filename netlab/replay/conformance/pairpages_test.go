package conformance

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// oddPage is a page and its origin.
type oddPage struct {
	name, host   string
	h2, insecure bool
	target       string
	parts        parts // of a combination; nil for a page that is written by hand
	telling      bool  // it is one of those of make test
	answer       func(q *inquiry) *odd
}

// url is the page's address.
func (p *oddPage) url() string {
	scheme := "https://"
	if p.insecure {
		scheme = "http://"
	}
	return scheme + p.host + p.target
}

// parts are a combination: the name of the choice of each part. A part that is missing is plain.
type parts map[string]string

func (p parts) String() string {
	var text []string
	for _, part := range slices.Sorted(maps.Keys(p)) {
		text = append(text, part+"="+p[part])
	}
	return strings.Join(text, ", ")
}

// without is the combination with one part plain.
func (p parts) without(part string) parts {
	p = maps.Clone(p)
	delete(p, part)
	return p
}

// The parts that are applied to an answer, in this order.
func applied() []string { return []string{"charset", "type", "coding", "framing", "head"} }

func choices() map[string][]choice {
	return map[string][]choice{"charset": charsetsOf(), "type": types(), "coding": packings(), "framing": framings(), "head": oddHeads()}
}

// lib is what pages report with: what they saw, and the first random number of each realm. It runs without "<", which
// XML would not take. Left out are the fields of a connection (RFC 9110, 7.6.1), which are those of each, a length that
// is not the body's, and the dates, which move with the clock.
const lib = `var report={},seeds={},pending=0;` +
	`function show(){var o=document.getElementById("o");if(o)o.textContent=Object.keys(report).sort().map(k=>k+": "+report[k]).join("\n")}` +
	`function out(k,v){report[k]=String(v).slice(0,900);show()}` +
	`function seed(k,v){seeds[k]=v===undefined?Math.random():v}function begin(){pending++}function end(){pending--}` +
	`function sum(b){var h=2166136261;new Uint8Array(b).forEach(c=>{h=Math.imul(h^c,16777619)});return b.byteLength+" bytes "+(h>>>0).toString(16)}` +
	`function heads(h,n){return JSON.stringify([...h].filter(p=>!/^(transfer-encoding|connection|keep-alive|proxy-connection|te|trailer|upgrade|alt-svc)$/.test(p[0])).filter(p=>p[0]!="content-length"||+p[1]===n).map(p=>/^(date|expires|last-modified)$/.test(p[0])?[p[0],"moved"]:p))}` +
	`function tell(k,p){begin();p.then(v=>out(k,v),e=>out(k,"error "+e.name)).finally(end)}` +
	`async function got(r){var b=await r.arrayBuffer();return r.status+" "+r.statusText+" "+r.type+" "+r.redirected+" "+r.url.slice(0,200)+" "+heads(r.headers,b.byteLength)+" "+sum(b)}` +
	`async function said(r){return r.status+" "+(r.redirected?r.url:"")+" "+await r.text()};seed("page");`

const script = `<script nonce="n0">`

// filler makes a body long enough for codings and framings to matter.
func filler() string { return strings.Repeat("Fifty bytes of text that is said over and over. ", 40) }

// document is a page with the library; its encoding is that of its letters.
func document(name, head, body string) string {
	return "<!doctype html><html lang=en><head>" + head + "<title>" + html.EscapeString(name) + "</title>" + script + lib + "</script></head><body><h1>" +
		html.EscapeString(name) + "</h1><pre id=o></pre>" + body + "</body></html>"
}

func literalOf(s string) string {
	b, _ := json.Marshal(s) // a string always has a form
	return string(b)
}

// role is what a page uses the odd answer as.
type role struct {
	name, mime, body string
	use              func(url string) string // in the page
}

const picture = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x02\x00\x00\x00\x02\x08\x02\x00\x00\x00\xfd\xd4\x9as\x00\x00\x00\x13IDATx\x9cc\xfc\xcf\xc0\xf0\x9f\x01\x08\x18\xff300\x00\x00 \x0a\x03\x00E6o\x86\x00\x00\x00\x00IEND\xaeB`\x82"

func roles() []role {
	code := func(js string) func(string) string {
		return func(url string) string { return script + strings.ReplaceAll(js, "URL", literalOf(url)) + "</script>" }
	}
	element := func(tag string) func(string) string {
		events := `onload="out('` + tag[1:3] + `','load')" onerror="out('` + tag[1:3] + `','error')"`
		return func(url string) string {
			return strings.NewReplacer("URL", html.EscapeString(url), "EVENTS", events).Replace(tag)
		}
	}
	inner := "<!doctype html><html><head>META<title>inner</title></head><body><p>TEXT</p><script>document.write(document.characterSet+' '+document.compatMode);parent.seed&&parent.seed('frame '+location.pathname,Math.random())</script><p>" + filler() + "</p></body></html>"
	svg := `<svg xmlns="http://www.w3.org/2000/svg" width="60" height="30"><rect width="60" height="30" fill="#37c"/><!--` + filler() + `--></svg>`
	return []role{
		{"document", "text/html", document("a document", "META", "<p>TEXT</p>"+script+"out('is',document.characterSet+' '+document.compatMode+' '+document.contentType)</script><p>"+filler()+"</p>"), nil},
		{"frame", "text/html", inner, element("<iframe src=\"URL\" EVENTS></iframe>")},
		{"script", "text/javascript", "out('script','żółć '+/*" + filler() + "*/'end');", element("<script nonce=n0 src=\"URL\" EVENTS></script>")},
		{"module", "text/javascript", "out('module','żółć '+/*" + filler() + "*/'end'+import.meta.url.length);export{}", element("<script type=module nonce=n0 src=\"URL\" EVENTS></script>")},
		{"style", "text/css", "h1{color:#b30;font-size:30px}/*" + filler() + "*/h1::after{content:' ż'}", element("<link rel=stylesheet href=\"URL\" EVENTS>")},
		{"picture", "image/svg+xml", svg, element("<img src=\"URL\" width=60 height=30 EVENTS>")},
		{"png", "image/png", picture, element("<img src=\"URL\" width=60 height=30 EVENTS>")},
		{"fetch", "text/plain", "żółć " + filler(), code(`tell("fetch",fetch(URL).then(got))`)},
		{"json", "application/json", `{"ż":["ó",` + literalOf(filler()) + `]}`, code(`tell("json",fetch(URL,{headers:{"X-Requested-With":"XMLHttpRequest"}}).then(r=>r.json()).then(j=>JSON.stringify(j).slice(0,50)))`)},
		{"xhr", "text/html", "<p>żółć</p>" + filler(), code(`begin();var x=new XMLHttpRequest();x.open("GET",URL);x.onloadend=()=>{out("xhr",x.status+" "+x.statusText+" "+x.responseText.slice(0,60)+x.responseText.length+x.getAllResponseHeaders().replace(/(date|expires|last-modified): .*/g,"$1"));end()};x.send()`)},
		{"worker", "text/javascript", "postMessage(['żółć '+self.location.href.length,Math.random()]);/*" + filler() + "*/", code(`begin();var w=new Worker(URL);w.onmessage=e=>{out("worker",e.data[0]);seed("worker",e.data[1]);end()};w.onerror=e=>{out("worker","error");end()}`)},
		{"stream", "text/event-stream", "retry: 100000\n\ndata: one\r\n\r\n: comment\nid: 7\nevent: x\ndata: żółć\n\n", code(`begin();var s=new EventSource(URL),n=[];s.onmessage=s.onerror=e=>{n.push(e.type+(e.data||""));if(e.type=="error"){s.close();out("stream",n);end()}};s.addEventListener("x",e=>n.push(e.data+e.lastEventId))`)},
		{"object", "text/html", inner, element("<object data=\"URL\" EVENTS>fallback</object>")},
		{"preload", "text/css", "h1{color:#070}/*" + filler() + "*/", func(url string) string {
			u := html.EscapeString(url)
			return `<link rel=preload as=style href="` + u + `"><link rel=stylesheet href="` + u + `">`
		}},
		{"post", "text/plain", "żółć " + filler(), code(`tell("post",fetch(URL,{method:"POST",body:new URLSearchParams({a:"ż|%",b:"1"})}).then(got))`)},
	}
}

func findRole(name string) role {
	list := roles()
	return list[max(0, slices.IndexFunc(list, func(r role) bool { return r.name == name }))]
}

// combine makes the page of a combination.
func combine(host string, p parts) *oddPage {
	page := &oddPage{name: p.String(), host: host, parts: p, h2: p["protocol"] == "h2", insecure: p["protocol"] == "http", target: "/start"}
	r, target := findRole(p["role"]), "/subject"
	if t := p["url"]; t != "" {
		target = t
	}
	subject := func() *odd {
		a := &odd{fields: field("Content-Type", r.mime), body: r.body}
		for _, part := range applied() {
			for _, c := range choices()[part] {
				if c.name == p[part] {
					c.set(a)
				}
			}
		}
		a.body = strings.NewReplacer("META", "<meta charset=utf-8>", "TEXT", "żółć").Replace(a.body)
		return a
	}
	made := subject()
	if r.use == nil {
		page.target = target
	}
	page.answer = func(q *inquiry) *odd {
		switch path, _, _ := strings.Cut(q.target, "?"); {
		case path == "/favicon.ico" || path == "/report":
			return nil
		case path == "/extra.css":
			return &odd{fields: field("Content-Type", "text/css"), body: "pre{color:#060}"}
		case r.use != nil && path == "/start":
			body := document(p.String(), "<meta charset=utf-8>", r.use(strings.TrimSuffix(page.url(), page.target)+target))
			return &odd{fields: field("Content-Type", "text/html"), body: body}
		}
		return made
	}
	return page
}

// everyChoice is for Chromium, as which the box reads.
func everyChoice(choice) bool { return true }

// readAlike tells the choices that Firefox reads as Chromium does. A recorder has one reading, Chromium's.
func readAlike(c choice) bool {
	switch c.name {
	case "start http/1.1 200 ok", "start HTTP/1.1\t200 OK", "start ICY 200 OK", "start HTTP 200 OK", "start HTTP/1 200 OK", "start HTTP/01.1 200 OK",
		"start HTTP/1.1 200OK", "start HTTP/3.0 200 OK", "start HTTP/1.1 0200 OK", "folded", "blank before colon", "CR in a value":
		return false // a body without a head, no answer, another protocol, another value, no field
	case "gzip with blanks", "gzip and identity", "unknown on gzip", "zlib with a wrong sum":
		return false // Chromium shows the coded bytes, so no script is put into them
	case "a short length in HTTP/2":
		return false // Firefox cuts the body off there, and a document with the script is longer
	case "meta koi8-r":
		return false // the slash belongs to the name, so there is none: Firefox guesses by the letters, and by when they arrive
	case "xhtml", "unknown":
		return false // Firefox shows the source of XML that is broken, with the script, and lists no entry for what it sniffs in a frame
	}
	return true
}

func filtered(list []choice, takes func(choice) bool) []choice {
	return slices.DeleteFunc(list, func(c choice) bool { return !takes(c) })
}

// deck gives the choices of a part in a drawn order, all before any comes again.
type deck struct {
	names []string
	only  map[string]int
	next  int
	r     *rand.Rand
}

func newDeck(r *rand.Rand, list []choice) *deck {
	d := &deck{r: r, only: map[string]int{}}
	for _, c := range list {
		d.names, d.only[c.name] = append(d.names, c.name), c.only
	}
	d.shuffle()
	return d
}

func (d *deck) shuffle() {
	d.r.Shuffle(len(d.names), func(i, j int) { d.names[i], d.names[j] = d.names[j], d.names[i] })
}

func (d *deck) draw() string {
	if d.next == len(d.names) {
		d.next = 0
		d.shuffle()
	}
	d.next++
	return d.names[d.next-1]
}

// combinations draws n pages from a seed. Each has two or three odd parts of a subject that is used in a role.
func combinations(seed uint64, n int, takes func(choice) bool) (pages []*oddPage) {
	r := rand.New(rand.NewPCG(seed, 1))
	decks := map[string]*deck{}
	for _, part := range applied() {
		decks[part] = newDeck(r, filtered(choices()[part], takes))
	}
	var urls, uses []choice
	for _, t := range targets() {
		urls = append(urls, choice{name: t})
	}
	for _, one := range roles() {
		uses = append(uses, choice{name: one.name})
	}
	decks["url"], decks["role"] = newDeck(r, urls), newDeck(r, uses)
	for i := range n {
		p := parts{"role": decks["role"].draw()}
		if i%2 == 0 {
			p["role"] = "document"
		}
		isPage := p["role"] == "document" || p["role"] == "frame"
		version := 1
		if i%3 == 1 {
			p["protocol"], version = "h2", 2
		} else if i%6 == 5 {
			p["protocol"] = "http"
		}
		take := func(part string) {
			for range 10 { // a choice that this protocol cannot say goes back
				name := decks[part].draw()
				// A folded line makes the charset that the head says unknown. What Chromium guesses then depends on
				// each byte of the document, those of the box's script included.
				guessed := part == "charset" && p["head"] == "folded first"
				if only := decks[part].only[name]; (only == 0 || only == version) && !(isPage && cutsOff(name)) && !guessed {
					p[part] = name
					return
				}
			}
		}
		take([]string{"head", "framing", "coding"}[i%3])
		if i%4 != 0 {
			take([]string{"url", "head", "coding"}[i/2%3])
		}
		if isPage && i%5 != 4 {
			take([]string{"charset", "type"}[i/2%2])
		}
		pages = append(pages, combine(fmt.Sprintf("c%d.test", i), p))
	}
	return pages
}
