package panel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/keep/store"
)

// keyHeader names the header with the key of a request that its client may repeat.
const keyHeader = "Idempotency-Key"

// keyPattern is what a key may be.
const keyPattern = "^[!-~]{1,128}$"

var validKey = regexp.MustCompile(keyPattern) // constant

const wrongKey = keyHeader + ": it has 1 to 128 printable ASCII characters without spaces"

// isKeyed says whether the answer to a POST is kept under its key. Those that start runs keep their key with the run;
// what is left makes nothing, or replaces all.
func isKeyed(path string) bool {
	switch path {
	case "/api/v1/webhooks", "/api/v1/bisects", "/api/v1/suite-results", "/api/v1/tokens", "/api/v1/retention", "/api/v1/references":
		return true
	}
	for _, of := range [][2]string{
		{"/api/v1/archives/", "/edit"}, {"/api/v1/runs/", "/annotations"}, {"/api/v1/devices/", "/input"}, {"/api/v1/webhooks/", "/test"},
		{"/api/v1/bisects/", "/resume"}, {"/api/v1/bisects/", "/again"}, {"/api/v1/schedules/", "/firings"},
		{"/api/v1/suite-results/", "/resume"},
	} {
		if ofOne(path, of[0], of[1]) {
			return true
		}
	}
	return isOfAlert(path) || isErrand(path)
}

// describeKeys adds the header to the operations.
func describeKeys(api *huma.OpenAPI) {
	most := 128
	for path, item := range api.Paths {
		if item.Post == nil || !isKeyed(path) {
			continue
		}
		item.Post.Parameters = append(item.Post.Parameters, &huma.Param{Name: keyHeader, In: "header",
			Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &most, Pattern: keyPattern},
			Description: "Chosen by you, different for each request: one that is repeated with its key, because the answer was lost, is answered as the first was and does nothing. " +
				"409 says that the first has no answer yet. Keys are kept for a day"})
	}
}

// WithAnswers keeps what was answered to requests with a key.
func WithAnswers(a Answers) Module {
	return func(p *Panel) { p.answers = a }
}

// maxKept bounds an answer that is kept.
const maxKept = 1 << 20

// once carries a request with a key out once.
func (p *Panel) once(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get(keyHeader)
		if r.Method != http.MethodPost || r.Header[keyHeader] == nil || !isKeyed(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		if !validKey.MatchString(key) {
			problem(w, http.StatusUnprocessableEntity, wrongKey)
			return
		}
		body, ok := readBody(w, r)
		if !ok {
			return
		}
		key = ownKey(r.Context(), key)
		once := store.Once{Key: key, Request: digestOf(r.URL.Path, r.URL.RawQuery, body)}
		switch first, err := p.answers.Claim(r.Context(), once, time.Now()); {
		case errors.Is(err, store.ErrKeyUsed):
			problem(w, http.StatusUnprocessableEntity, keyHeader+": it came with another request before; a new request needs a new key")
		case errors.Is(err, store.ErrUnanswered):
			w.Header().Set("Retry-After", "1")
			problem(w, http.StatusConflict, keyHeader+": the first request with it has no answer yet: ask again. "+
				"If this stays so, the box was stopped meanwhile: look whether it was carried out")
		case err != nil:
			said := p.internalError(err)
			var status huma.StatusError
			_ = errors.As(said, &status) // internalError makes no other
			problem(w, status.GetStatus(), said.Error())
		case first != nil:
			note(r.Context(), "repeated, nothing is done")
			writeKept(w, first)
		default:
			// A client that goes away does not end it: it may ask again for the answer.
			ctx := context.WithoutCancel(r.Context())
			r = r.WithContext(ctx)
			r.Body = io.NopCloser(bytes.NewReader(body))
			p.carryOut(ctx, w, r, key, next)
		}
	})
}

// ownKey is a token's key: that of another, which may be the same text, is another one, and nobody is told what was
// answered to it.
func ownKey(ctx context.Context, key string) string {
	if key == "" {
		return ""
	}
	return identityOf(ctx).Name + " " + key
}

// digestOf identifies a request.
func digestOf(path, query string, body []byte) string {
	h := sha256.New()
	for _, part := range []string{path, query} {
		fmt.Fprintf(h, "%d %s ", len(part), part)
	}
	h.Write(body)
	return fmt.Sprintf("%x", h.Sum(nil))
}

// carryOut has a request carried out whose key was claimed, and keeps its answer before it is sent.
func (p *Panel) carryOut(ctx context.Context, w http.ResponseWriter, r *http.Request, key string, next http.Handler) {
	held := &heldWriter{ResponseWriter: w, status: http.StatusOK}
	next.ServeHTTP(held, r)
	var err error
	if held.status < 200 || held.status > 299 { // nothing was made, and the key may come again
		err = p.answers.Unclaim(ctx, key)
	} else {
		err = p.answers.Answer(ctx, key, held.kept())
	}
	if err != nil {
		p.Log.Error("the answer to a request with a key is not kept", "path", r.URL.Path, "error", err)
	}
	w.WriteHeader(held.status)
	_, _ = w.Write(held.body.Bytes()) // an error means that the client has disconnected
}

// heldWriter holds an answer back.
type heldWriter struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (h *heldWriter) WriteHeader(status int) { h.status = status }

// Write implements http.ResponseWriter.
func (h *heldWriter) Write(b []byte) (int, error) { return h.body.Write(b) }

// Unwrap is for http.ResponseController.
func (h *heldWriter) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// keptHeaders are those of an answer that a repeated request gets, too.
func keptHeaders() []string { return []string{"Content-Type", "Etag", "Location"} }

// kept is the answer without its secret, which is shown once, and is in no file of answers.
func (h *heldWriter) kept() store.Answer {
	head := map[string]string{}
	for _, name := range keptHeaders() {
		if value := h.Header().Get(name); value != "" {
			head[name] = value
		}
	}
	text, err := json.Marshal(head)
	a := store.Answer{Status: h.status, Head: string(text), Body: h.body.Bytes()}
	if err != nil || len(a.Body) > maxKept {
		a.Body = []byte("{}")
	}
	var fields map[string]json.RawMessage
	if bytes.Contains(a.Body, []byte("\"secret\"")) && json.Unmarshal(a.Body, &fields) == nil {
		delete(fields, "secret")
		if a.Body, err = json.Marshal(fields); err != nil {
			a.Body = []byte("{}")
		}
	}
	if a.Body == nil {
		a.Body = []byte{}
	}
	return a
}

// writeKept answers as the first request was.
func writeKept(w http.ResponseWriter, a *store.Answer) {
	var head map[string]string
	_ = json.Unmarshal([]byte(a.Head), &head) // kept wrote it
	for name, value := range head {
		if !strings.ContainsAny(value, "\r\n") {
			w.Header().Set(name, value)
		}
	}
	w.Header().Set("Idempotency-Replayed", "true")
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // an error means that the client has disconnected
}
