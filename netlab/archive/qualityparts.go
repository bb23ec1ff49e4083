package archive

import (
	"bytes"
	"image/gif"
	"image/png"
	"path"
	"slices"
	"strings"

	"eidetic/internal/lab"

	"golang.org/x/net/html"
)

// Part is a part of a recording's score: resources of one kind.
type Part struct {
	Name string `json:"name"`
	// Weight is the part's share of the score, among the parts that the recording has.
	Weight float64 `json:"weight"`
	// Count is the number of the part's resources: exchanges, and those that a document names and the
	// archive lacks. Lost is how many of them are incomplete, missing or answered with an error.
	Count int `json:"count"`
	Lost  int `json:"lost"`
	// Examples are URLs of lost ones, at most three.
	Examples []string `json:"examples,omitempty"`
}

const maxExamples = 3

// share is the share of the part that is there.
func (p Part) share() float64 { return 1 - float64(p.Lost)/float64(p.Count) }

// use is what a page uses a resource as.
type use int

const (
	useDocument use = iota
	useStyle
	useScript
	useFrame
	useData
	useImage
	useFont
	useMedia
	useBackground
	uses // the number of parts
)

// backgroundPart is the name of the part that nobody sees.
const backgroundPart = "background"

// weights are the names and weights of the parts. They follow what a lost one does to the picture of a
// page: without its scripts or style sheets it is another page, without a picture it has a gap, and of
// its background nobody sees anything.
func weights() [uses]Part {
	return [uses]Part{
		useDocument:   {Name: "documents", Weight: 4},
		useStyle:      {Name: "style sheets", Weight: 4},
		useScript:     {Name: "scripts", Weight: 4},
		useFrame:      {Name: "frames", Weight: 2},
		useData:       {Name: "data", Weight: 3},
		useImage:      {Name: "images", Weight: 4},
		useFont:       {Name: "fonts", Weight: 2},
		useMedia:      {Name: "media", Weight: 1},
		useBackground: {Name: backgroundPart, Weight: 0.05},
	}
}

// useOf is what the page uses an exchange as. The request says it best (Sec-Fetch-Dest); else what
// documents use the URL as, the media type, and the extension of the URL.
func (x *assessment) useOf(e *lab.Exchange, isPage bool) use {
	named, isNamed := x.named[e.URL]
	switch {
	case isPage:
		return useDocument
	case e.Method == "OPTIONS": // asks what a server would take
		return useBackground
	case isBackground(e), isNamed && named == useBackground, !isNamed && isIcon(e.URL):
		return useBackground
	}
	switch dest := e.Request.Get("Sec-Fetch-Dest"); dest {
	case "document": // a prefetch, or a file to save
		return useBackground
	case "style", "xslt":
		return useStyle
	case "script", "worker", "sharedworker", "serviceworker", "audioworklet", "paintworklet":
		return useScript
	case "iframe", "frame", "fencedframe", "embed", "object":
		return useFrame
	case "image":
		return useImage
	case "font":
		return useFont
	case "audio", "video", "track":
		return useMedia
	case "manifest", "report", "speculationrules", "webidentity":
		return useBackground
	case "empty":
		return useData
	}
	if isNamed {
		return named
	}
	return useOfType(e)
}

// useOfType guesses from the media type, or for errors, whose type is that of the message, from the
// extension.
func useOfType(e *lab.Exchange) use {
	kind, _, _ := strings.Cut(strings.ToLower(e.Response.Get("Content-Type")), ";")
	kind = strings.TrimSpace(kind)
	if e.Status >= 400 || kind == "" || kind == "application/octet-stream" || kind == "text/plain" {
		if byName := extensions(strings.ToLower(path.Ext(lab.ParseURL(e.URL).Path))); byName != uses {
			return byName
		}
	}
	family, _, _ := strings.Cut(kind, "/")
	switch {
	case kind == "text/css":
		return useStyle
	case strings.HasSuffix(kind, "javascript"), strings.HasSuffix(kind, "ecmascript"), kind == "application/wasm":
		return useScript
	case family == "font", strings.Contains(kind, "font-"):
		return useFont
	case family == "image":
		return useImage
	case family == "audio", family == "video":
		return useMedia
	case e.Status < 400 && (kind == "text/html" || kind == "application/xhtml+xml"):
		return useFrame
	}
	return useData
}

// extensions returns what a name's extension says, or uses for nothing.
func extensions(ext string) use {
	switch ext {
	case ".css":
		return useStyle
	case ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".wasm":
		return useScript
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".svg", ".bmp":
		return useImage
	case ".woff", ".woff2", ".ttf", ".otf":
		return useFont
	case ".mp4", ".webm", ".mp3", ".ogg", ".m4a", ".mov", ".vtt", ".m3u8":
		return useMedia
	case ".ico", ".map", ".webmanifest":
		return useBackground
	}
	return uses
}

// isBackground tells what a page shows nothing of: beacons, pixels that count visits, reports, prefetches
// and preflights.
func isBackground(e *lab.Exchange) bool {
	get := e.Request.Get
	switch {
	case e.Method == "OPTIONS", get("Ping-To") != "", isPrefetch(get("Sec-Purpose")), isPrefetch(get("Purpose")):
		return true
	case e.Method == "POST" && get("Sec-Fetch-Mode") == "no-cors": // navigator.sendBeacon
		return true
	}
	kind := strings.ToLower(get("Content-Type"))
	if strings.HasPrefix(kind, "application/csp-report") || strings.HasPrefix(kind, "application/reports+json") {
		return true
	}
	return isPixel(e)
}

// isIcon tells the names of the browser's own icons, which it looks for by itself.
func isIcon(raw string) bool {
	name := strings.ToLower(path.Base(lab.ParseURL(raw).Path))
	return strings.HasPrefix(name, "favicon") || strings.HasPrefix(name, "apple-touch-icon")
}

// isForRobots tells what crawlers ask for and no page: whether they may come. That a site has none is no defect.
func isForRobots(e *lab.Exchange) bool {
	return lab.ParseURL(e.URL).Path == "/robots.txt" && e.Request.Get("Sec-Fetch-Dest") == ""
}

func isPrefetch(purpose string) bool { return strings.Contains(strings.ToLower(purpose), "prefetch") }

// isPixel tells a picture of a point or nothing.
func isPixel(e *lab.Exchange) bool {
	const most = 1000 // bytes; the header of a PNG with a point may be long
	if e.Request.Get("Sec-Fetch-Dest") != "image" && !strings.HasPrefix(strings.ToLower(e.Response.Get("Content-Type")), "image/") {
		return false
	}
	if e.Status == 204 {
		return true
	}
	if e.Status != 200 || e.Truncated != "" || len(e.Response.Body) > most || e.Response.Get("Content-Encoding") != "" {
		return false
	}
	c, err := gif.DecodeConfig(bytes.NewReader(e.Response.Body))
	if err != nil {
		c, err = png.DecodeConfig(bytes.NewReader(e.Response.Body))
	}
	return err == nil && c.Width <= 1 && c.Height <= 1
}

// reference is a resource that a document names.
type reference struct {
	url string
	as  use
	// isOptional is true for what a browser need not ask for.
	isOptional bool
}

// references lists the resources that a document names.
func references(e *lab.Exchange, limit *DecodeLimit, room *referenceRoom) (out []reference) {
	if !strings.HasPrefix(strings.ToLower(e.Response.Get("Content-Type")), "text/html") || e.Status != 200 || e.Method != "GET" {
		return nil
	}
	base := lab.NetURL(e.URL)
	if limit.check(&e.Response) != nil {
		return nil
	}
	body, err := decoder(&e.Response, 1<<30)
	if err != nil {
		return nil
	}
	defer body.Close()
	most := min(10_000, room.count)
	defer func() { room.count -= len(out) }()
	z := html.NewTokenizer(body)
	z.SetMaxBuf(1 << 20)
	for len(out) < most && room.bytes > 0 {
		switch z.Next() {
		case html.ErrorToken:
			return out
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			element := string(name)
			at := attributes(z, more)
			if element == "base" && at["href"] != "" && len(at["href"]) <= mostReferenceURL {
				if b, err := base.Parse(at["href"]); err == nil {
					base = b
				}
			}
			r := referenceOf(element, at)
			if r.url = strings.TrimSpace(r.url); r.url == "" || len(r.url) > mostReferenceURL {
				continue
			}
			if u, err := base.Parse(r.url); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
				r.url = lab.ParseURL(u.String()).Sent()
				room.bytes -= len(r.url)
				out = append(out, r)
			}
		}
	}
	return out
}

// attributes are those of a tag that say what it refers to. A tag may have any number of others.
func attributes(z *html.Tokenizer, more bool) map[string]string {
	at := map[string]string{}
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch name := string(key); name {
		case "src", "href", "rel", "media", "loading", "nomodule", "disabled":
			if !hasKey(at, name) { // the first one counts
				at[name] = string(value)
			}
		}
	}
	return at
}

// referenceOf is what an element names, as written; its URL is empty for nothing.
func referenceOf(element string, at map[string]string) reference {
	switch element {
	case "script":
		return reference{at["src"], useScript, hasKey(at, "nomodule")}
	case "img":
		return reference{at["src"], useImage, at["loading"] == "lazy"}
	case "iframe":
		return reference{at["src"], useFrame, true} // it may be lazy, or a script may change it first
	case "link":
		rel := strings.Fields(strings.ToLower(at["rel"]))
		switch has := func(word string) bool { return slices.Contains(rel, word) }; {
		case has("stylesheet"):
			return reference{at["href"], useStyle, strings.Contains(at["media"], "print") || len(rel) > 1 || hasKey(at, "disabled")}
		case has("icon"), has("apple-touch-icon"), has("mask-icon"), has("manifest"), has("prefetch"), has("prerender"), has("dns-prefetch"):
			return reference{at["href"], useBackground, true}
		}
	}
	return reference{}
}

func hasKey(m map[string]string, k string) bool { _, ok := m[k]; return ok }
