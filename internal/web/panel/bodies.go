package panel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Bounds of the bodies that are in memory at once. To read a plan and check it takes up to 200 MB, in as many requests as
// a client likes.
const (
	freeBody   = 256 << 10 // one that is smaller waits for nobody
	mostBodies = 2
	bodyLimit  = time.Minute // for its turn, and then for its bytes: of 7 MiB, 1 Mbit/s
)

// isStreamed says whether a request's body goes to the disk as it comes, and may take hours.
func isStreamed(r *http.Request) bool {
	switch path := r.URL.Path; r.Method {
	case http.MethodPost:
		return path == "/api/v1/update" || path == "/api/v1/restore" || path == "/api/v1/boxes/update"
	case http.MethodPut:
		name, ok := strings.CutPrefix(path, "/api/v1/archives/")
		return ok && !strings.Contains(name, "/")
	}
	return false
}

// bodies has requests with large bodies wait for each other before they are read.
func (p *Panel) bodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 || isPublic(r) || isStreamed(r) {
			next.ServeHTTP(w, r)
			return
		}
		inTime := &bodyInTime{r.Body, http.NewResponseController(w)}
		r.Body = inTime
		large := r.ContentLength < 0 || r.ContentLength > freeBody
		if large {
			// Whoever leaves before the body is read is not noticed, so the wait is bounded.
			ctx, cancel := context.WithTimeout(r.Context(), bodyLimit)
			done, err := p.holding.Take(ctx)
			cancel()
			if err != nil {
				w.Header().Set("Retry-After", "10")
				problem(w, http.StatusServiceUnavailable, "others send large plans: ask again")
				return
			}
			defer done()
		}
		_ = inTime.control.SetReadDeadline(time.Now().Add(bodyLimit)) // a listener without deadlines bounds the time itself
		if large {
			body, ok := readBody(w, r)
			if !ok {
				return
			}
			r.Body = &bodyInTime{io.NopCloser(bytes.NewReader(body)), inTime.control}
		}
		next.ServeHTTP(w, r)
	})
}

// readBody reads a body, or answers that it cannot.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPlanBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		problem(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d MiB", maxPlanBody>>20))
	case err != nil:
		problem(w, http.StatusBadRequest, "the body could not be read")
	}
	return body, err == nil
}

// bodyInTime is a body whose bytes come before a deadline. The deadline is over with the body: it would end the
// connection of a request that takes longer to be carried out.
type bodyInTime struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read implements io.Reader.
func (b *bodyInTime) Read(to []byte) (int, error) {
	n, err := b.ReadCloser.Read(to)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
