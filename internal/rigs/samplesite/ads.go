package samplesite

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	_ "embed" // the advertisement's frame
)

//go:embed assets/ads/frame.html
var adFrame string

// ads is the third party: a tag, a frame with a script of its own, a picture and a pixel.
func (s *Site) ads() http.Handler {
	mux := http.NewServeMux()
	static := func(name string, d time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if s.think(r, "widget", d) {
				s.serve(w, r, name)
			}
		}
	}
	mux.HandleFunc("GET /tag.js", static("ads/tag.js", 25*time.Millisecond))
	mux.HandleFunc("GET /banner.webp", static("img/banner.webp", 30*time.Millisecond))
	mux.HandleFunc("GET /pixel.gif", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "image/gif")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(s.files.byPath["pixel.gif"].body)
	})
	mux.HandleFunc("GET /frame", func(w http.ResponseWriter, r *http.Request) {
		if !s.think(r, "widget", 60*time.Millisecond) {
			return
		}
		s.mu.Lock()
		campaign := s.dice.frame.IntN(9000) + 1000
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write([]byte(strings.ReplaceAll(adFrame, "{{campaign}}", fmt.Sprint(campaign))))
	})
	return mux
}
