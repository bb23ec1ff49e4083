package samplesite

import (
	"bytes"
	"embed"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed assets
var embedded embed.FS

// built is the Last-Modified of every file: a fixed day, so that every build serves the same site.
func built() time.Time { return time.Date(2026, time.January, 15, 9, 30, 0, 0, time.UTC) }

// file is a static body with its preferred coding, and the codings made on request so far.
type file struct {
	body   []byte
	kind   string // media type
	coding string // the preferred one, "" for none (pictures, fonts)
	tag    string

	mu      sync.Mutex
	encoded map[string][]byte
}

// files holds all static bodies by path ("css/base.css").
type files struct{ byPath map[string]*file }

// kinds maps file name extensions to media types; the system's table differs between machines.
func kinds() map[string]string {
	return map[string]string{
		".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
		".jpg": "image/jpeg", ".png": "image/png", ".webp": "image/webp", ".woff2": "font/woff2",
		".bin": "application/octet-stream", ".gif": "image/gif",
	}
}

func loadFiles() (*files, error) {
	fsys := &files{byPath: map[string]*file{}}
	types, prefer := kinds(), codings()
	err := fs.WalkDir(embedded, "assets", func(name string, d fs.DirEntry, err error) error {
		kind := types[path.Ext(name)]
		if err != nil || d.IsDir() || kind == "" {
			return err
		}
		body, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(name, "assets/")
		f := fsys.add(name, kind, prefer[name], body)
		// Files are encoded in advance, as on a CDN: a style sheet encoded at its first request
		// would arrive later than pictures, and queue behind them on a slow link.
		if f.coding != "" {
			_, err = f.in(f.coding)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the embedded files: %w", err)
	}
	fsys.add("media/swatches.bin", types[".bin"], "", swatches())
	fsys.add(
		"pixel.gif",
		types[".gif"],
		"",
		[]byte(
			"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;",
		),
	)
	return fsys, nil
}

// codings says which file prefers which coding, so that every kind of client code meets each.
func codings() map[string]string {
	return map[string]string{
		"css/base.css": "zstd", "css/shop.css": "br", "css/theme.css": "gzip",
		"js/app.js": "zstd", "js/dice.js": "br", "js/greeting.js": "gzip", "js/stock.js": "br",
		"js/quote.js": "zstd", "js/recommend.js": "gzip", "js/material.js": "br", "ads/tag.js": "gzip",
		"svg/logo.svg": "br", "svg/search.svg": "gzip", "svg/bag.svg": "zstd", "svg/truck.svg": "br",
		"svg/leaf.svg": "gzip", "svg/return.svg": "zstd", "svg/shield.svg": "br", "svg/heart.svg": "gzip",
	}
}

func (f *files) add(name, kind, coding string, body []byte) *file {
	one := &file{body: body, kind: kind, coding: coding,
		tag: fmt.Sprintf(`"%08x-%x"`, crc32.ChecksumIEEE(body), len(body)), encoded: map[string][]byte{}}
	f.byPath[name] = one
	return one
}

// in returns the body in a coding, and encodes it only once.
func (f *file) in(coding string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b, ok := f.encoded[coding]; ok {
		return b, nil
	}
	b, err := encode(f.body, coding)
	if err == nil {
		f.encoded[coding] = b
	}
	return b, err
}

// serve responds with the named file. Range and conditional requests work for files that are not encoded.
func (s *Site) serve(w http.ResponseWriter, r *http.Request, name string) {
	f := s.files.byPath[name]
	if f == nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Expires", s.opt.Clock().Add(365*24*time.Hour).UTC().Format(http.TimeFormat))
	h.Set("X-Content-Type-Options", "nosniff")
	coding := "identity"
	if f.coding != "" {
		h.Set("Vary", "Accept-Encoding")
		coding = negotiate(r.Header.Get("Accept-Encoding"), f.coding)
	}
	if coding == "identity" {
		h.Set("ETag", f.tag)
		http.ServeContent(w, r, "", built(), bytes.NewReader(f.body))
		return
	}
	body, err := f.in(coding)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// A strong validator names one representation (RFC 9110 §8.8.3).
	tag := strings.TrimSuffix(f.tag, `"`) + "-" + coding + `"`
	h.Set("ETag", tag)
	h.Set("Last-Modified", built().Format(http.TimeFormat))
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Encoding", coding)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // an error means that the client has disconnected
	}
}

// cdn serves styles, fonts, pictures and media to pages of the shop.
func (s *Site) cdn() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allow(w)
		if !method(w, r, http.MethodGet) {
			return
		}
		name := strings.TrimPrefix(r.URL.Path, "/")
		folder, _, _ := strings.Cut(name, "/")
		part, d := "", time.Duration(0)
		switch {
		case name == "img/hero.jpg":
			part, d = "hero", 700*time.Millisecond
		case folder == "css" || folder == "font":
			part = folder
		case folder == "img":
			part = "pictures"
		case folder != "svg" && folder != "media":
			http.NotFound(w, r)
			return
		}
		if s.think(r, part, d) {
			s.serve(w, r, name)
		}
	})
}

// allow lets the shop's pages read the response (CORS, Fetch §3.2).
func allow(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "https://"+WWW)
	h.Set("Timing-Allow-Origin", "https://"+WWW)
	h.Add("Vary", "Origin")
}

// method handles OPTIONS and wrong methods; it returns true if the handler is to continue.
func method(w http.ResponseWriter, r *http.Request, want string) bool {
	switch {
	case r.Method == want, want == http.MethodGet && r.Method == http.MethodHead:
		return true
	case r.Method == http.MethodOptions:
		h := w.Header()
		h.Set("Access-Control-Allow-Methods", want)
		h.Set("Access-Control-Allow-Headers", "content-type, range")
		h.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", want+", OPTIONS")
		http.Error(w, "this wants "+want, http.StatusMethodNotAllowed)
	}
	return false
}
