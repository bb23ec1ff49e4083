package panel

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
)

// maxTagged bounds an answer that is held in memory until its ETag is known; a larger one has none.
const maxTagged = 8 << 20

// isTagged says whether the answers of a path have an ETag, made of their content: lists and
// states that scripts and pages ask for again and again.
func isTagged(path string) bool {
	switch path {
	case "/api/v1/runs", "/api/v1/archives", "/api/v1/history", "/api/v1/alerts", "/api/v1/schedules", "/api/v1/retention",
		"/api/v1/boxes", "/api/v1/suite-results":
		return true
	}
	id, ok := strings.CutPrefix(path, "/api/v1/runs/")
	return ok && id != "" && !strings.Contains(strings.TrimSuffix(id, "/view"), "/")
}

// conditional gives answers an ETag, and answers 304 to a client that has the content (RFC 9110,
// section 13.1.2).
func conditional(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || isHead(r) || !isTagged(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		t := &taggedWriter{ResponseWriter: w}
		next.ServeHTTP(t, r)
		t.end(r.Header.Get("If-None-Match"))
	})
}

// taggedWriter holds an answer back.
type taggedWriter struct {
	http.ResponseWriter
	held   bytes.Buffer
	begun  bool // the answer is one that can have an ETag
	passed bool // it goes to the client as it comes
}

// WriteHeader implements http.ResponseWriter.
func (t *taggedWriter) WriteHeader(status int) {
	if t.begun = status == http.StatusOK; !t.begun && !t.passed {
		t.passed = true
		t.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (t *taggedWriter) Write(p []byte) (int, error) {
	t.begun = true
	if !t.passed && t.held.Len()+len(p) <= maxTagged {
		return t.held.Write(p)
	}
	if err := t.release(); err != nil {
		return 0, err
	}
	return t.ResponseWriter.Write(p)
}

// release sends what is held back.
func (t *taggedWriter) release() error {
	t.passed = true
	_, err := t.held.WriteTo(t.ResponseWriter)
	return err
}

// Unwrap is for http.ResponseController.
func (t *taggedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// end sends the answer, or says that the client has it.
func (t *taggedWriter) end(has string) {
	if t.passed || !t.begun {
		return
	}
	h, sum := t.Header(), sha256.Sum256(t.held.Bytes())
	tag := fmt.Sprintf(`"%x"`, sum[:12])
	h.Set("ETag", tag)
	h.Set("Cache-Control", "private, no-cache")
	if !matches(has, tag) {
		_ = t.release() // an error means that the client has disconnected
		return
	}
	h.Del("Content-Type")
	t.ResponseWriter.WriteHeader(http.StatusNotModified)
}

// matches says whether a list of ETags has one; weak ones count (RFC 9110, section 8.8.3.2).
func matches(list, tag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
			return true
		}
	}
	return false
}
