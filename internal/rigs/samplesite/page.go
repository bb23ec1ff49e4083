package samplesite

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	_ "embed" // the page's templates
)

//go:embed assets/page.gohtml
var pageSource string

// pieces are the chunks of the document, in the order they are sent, with the think time
// before each: about 300 ms in total, as of a shop's data sources.
func pieces() []piece {
	return []piece{
		{"head", 40 * time.Millisecond}, {"hero", 60 * time.Millisecond}, {"grid", 90 * time.Millisecond},
		{"stories", 70 * time.Millisecond}, {"foot", 40 * time.Millisecond},
	}
}

type piece struct {
	name  string
	think time.Duration
}

// policy is the strict content security policy of a load (CSP level 3).
func policy(nonce string) string {
	return strings.Join([]string{
		"default-src 'none'",
		"script-src 'self' 'nonce-" + nonce + "' https://" + Ads,
		"style-src https://" + CDN,
		"font-src https://" + CDN,
		"img-src https://" + CDN + " https://" + Ads + " data:",
		"connect-src https://" + API + " https://" + CDN,
		"frame-src https://" + Ads,
		"base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'",
	}, "; ")
}

// www serves the document and its scripts.
func (s *Site) www() http.Handler {
	page, err := template.New("page").Parse(pageSource)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.document(w, r, page)
	})
	s.store(mux)
	s.tricks(mux)
	s.suite(mux)
	mux.HandleFunc("GET /js/{name}", func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, "js/"+r.PathValue("name"))
	})
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, "svg/icon.svg") })
	return mux
}

// document streams one page load; each piece is flushed through the content coding.
func (s *Site) document(w http.ResponseWriter, r *http.Request, page *template.Template) {
	v := s.visit()
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy(v.Nonce))
	h.Set("Referrer-Policy", "strict-origin-when-cross-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Request-Id", v.Request)
	h.Set("Cache-Control", "private, max-age=0, must-revalidate")
	h.Set("Expires", v.Rendered.UTC().Format(http.TimeFormat))
	h.Set("Vary", "Accept-Encoding, Cookie")
	http.SetCookie(w, &http.Cookie{Name: "__Host-visit", Value: v.Request, Path: "/", Secure: true, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Expires: v.Rendered.Add(30 * 24 * time.Hour), MaxAge: 30 * 24 * 3600})
	coding := negotiate(r.Header.Get("Accept-Encoding"), "br")
	body, err := newEncoder(w, coding)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if body != nil {
		h.Set("Content-Encoding", coding)
	}
	// The header waits for the first piece: a document's server thinks before its header.
	for i, p := range pieces() {
		part := ""
		if i == 0 {
			part = "document"
		}
		if !s.think(r, part, p.think) {
			return
		}
		var text bytes.Buffer
		if err := page.ExecuteTemplate(&text, p.name, v); err != nil {
			panic(http.ErrAbortHandler) // abort the response, so that no client takes it for complete
		}
		if err := flush(w, body, text.Bytes()); err != nil {
			return
		}
	}
	if body != nil {
		_ = body.Close() // an error means that the client has disconnected
	}
}

// flush sends a piece immediately.
func flush(w http.ResponseWriter, body encoder, text []byte) error {
	if body == nil {
		if _, err := w.Write(text); err != nil {
			return fmt.Errorf("write a piece: %w", err)
		}
	} else {
		if _, err := body.Write(text); err != nil {
			return fmt.Errorf("encode a piece: %w", err)
		}
		if err := body.Flush(); err != nil {
			return fmt.Errorf("flush a piece: %w", err)
		}
	}
	return http.NewResponseController(w).Flush()
}
