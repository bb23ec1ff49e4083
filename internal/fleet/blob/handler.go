package blob

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strconv"
	"time"

	"eidetic/internal/lab"
)

// The headers of the protocol.
const (
	headerOffset   = "Upload-Offset"
	headerLength   = "Upload-Length"
	headerComplete = "Upload-Complete"
	contentType    = "application/offset+octet-stream"
)

// The types of problems that the handler answers with.
const (
	problemOffset   = "/problems/upload-offset"   // 409, with the true Upload-Offset
	problemBusy     = "/problems/upload-busy"     // 423: another request writes this upload, or too many are written
	problemDigest   = "/problems/upload-digest"   // 422: it begins anew
	problemRoom     = "/problems/upload-no-room"  // 507: nothing is lost; try later
	problemRequest  = "/problems/upload-request"  // 400, 405, 413, 415
	problemInternal = "/problems/upload-internal" // 500, 503
)

// Handler serves HEAD and PATCH of …/{sha256}. The caller has checked who asks and what they may upload, and names
// them: owner returns the same text for all requests of one client, and another one for each client.
func (u *Uploads) Handler(owner func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		digest := path.Base(r.URL.Path)
		w.Header().Set("Cache-Control", "no-store")
		if err := CheckDigest(digest); err != nil {
			answer(w, http.StatusBadRequest, problemRequest, err)
			return
		}
		x := exchange{u: u, w: w, r: r, digest: digest, key: u.key(owner(r), digest)}
		switch r.Method {
		case http.MethodHead:
			x.head()
		case http.MethodPatch:
			x.patch()
		default:
			w.Header().Set("Allow", "HEAD, PATCH")
			answer(w, http.StatusMethodNotAllowed, problemRequest, fmt.Errorf("%.10q: an upload answers HEAD and PATCH", r.Method))
		}
	})
}

// exchange is a request with its answer.
type exchange struct {
	u      *Uploads
	w      http.ResponseWriter
	r      *http.Request
	digest string
	key    string
}

// whole answers for a blob that the store has.
func (x *exchange) whole(size int64, status int) {
	x.w.Header().Set(headerComplete, "?1")
	x.offset(size, size)
	x.w.WriteHeader(status)
}

func (x *exchange) offset(offset, length int64) {
	x.w.Header().Set(headerOffset, strconv.FormatInt(offset, 10))
	x.w.Header().Set(headerLength, strconv.FormatInt(length, 10))
}

// fail answers with the problem that an error is.
func (x *exchange) fail(err error) {
	var large *tooLarge
	var away *lab.AwayError
	switch {
	case errors.As(err, &large):
		answer(x.w, http.StatusRequestEntityTooLarge, problemRequest, err)
	case errors.Is(err, errBusy):
		x.w.Header().Set("Retry-After", strconv.Itoa(int(x.u.config.Silence.Seconds())))
		answer(x.w, http.StatusLocked, problemBusy, err)
	case errors.Is(err, ErrNoRoom):
		answer(x.w, http.StatusInsufficientStorage, problemRoom, err)
	case errors.Is(err, ErrDigest):
		answer(x.w, http.StatusUnprocessableEntity, problemDigest, err)
	case x.r.Context().Err() != nil:
		answer(x.w, http.StatusRequestTimeout, problemRequest, err) // nobody reads it
	case errors.As(err, &away):
		x.u.config.Log.Warn("upload", "blob", x.digest, "err", away.Err)
		x.w.Header().Set("Retry-After", strconv.Itoa(int(lab.AwayFor.Seconds())))
		answer(x.w, http.StatusServiceUnavailable, problemInternal, away)
	default:
		// What is wrong with our disk or store is for our log.
		x.u.config.Log.Error("upload", "blob", x.digest, "err", err)
		answer(x.w, http.StatusInternalServerError, problemInternal, errors.New("the upload could not be kept; the head's log says why"))
	}
}

func (x *exchange) head() {
	if x.has(http.StatusOK) {
		return
	}
	_, release, err := x.u.hold(x.r.Context(), x.key, func(time.Time) {})
	if err != nil {
		x.fail(err)
		return
	}
	defer release()
	if x.has(http.StatusOK) { // whoever held it has finished it
		return
	}
	s, ok, err := find(x.key)
	if err == nil && !ok {
		x.w.WriteHeader(http.StatusNotFound)
		return
	}
	var f *os.File
	if err == nil {
		f, err = lockFile(s.path, 0)
	}
	if err != nil {
		x.fail(err)
		return
	}
	defer f.Close()
	if s, ok, err = find(x.key); err == nil && ok {
		err = s.sync(f)
	}
	if err != nil {
		x.fail(noRoom(err))
		return
	}
	x.offset(s.size, s.length)
	x.w.WriteHeader(http.StatusOK)
}

// has answers if the store has the blob.
func (x *exchange) has(status int) bool {
	size, has, err := x.u.config.Store.Has(x.r.Context(), x.digest)
	switch {
	case err != nil:
		x.fail(err)
		return true
	case has:
		if s, ok, err := find(x.key); err == nil && ok { // another owner was faster
			x.u.discard(s)
		}
		x.whole(size, status)
	}
	return has
}

func (x *exchange) patch() {
	offset, length, status, err := parsePatch(x.r)
	if err != nil {
		answer(x.w, status, problemRequest, err)
		return
	}
	if x.has(http.StatusNoContent) {
		return
	}
	control := http.NewResponseController(x.w)
	// A writer that knows no deadlines is a test's; its reads end by themselves. The server's own limits are for short
	// requests: each read has a limit of its own here.
	_ = control.SetWriteDeadline(time.Time{})
	h, release, err := x.u.hold(x.r.Context(), x.key, func(at time.Time) { _ = control.SetReadDeadline(at) })
	if err != nil {
		x.fail(err)
		return
	}
	defer release()
	if x.has(http.StatusNoContent) { // whoever held it has finished it
		return
	}
	if offset > 0 {
		s, ok, err := find(x.key)
		if err == nil && (!ok || s.length != length) {
			x.conflict(0, length)
			return
		}
		if err != nil {
			x.fail(err)
			return
		}
	}
	f, s, err := x.u.openStaged(x.key, length)
	if err != nil {
		x.fail(noRoom(err))
		return
	}
	defer f.Close()
	if s.size != offset {
		if err := s.sync(f); err != nil {
			x.fail(noRoom(err))
			return
		}
		x.conflict(s.size, length)
		return
	}
	x.receive(h, f, s)
}

func (x *exchange) conflict(offset, length int64) {
	x.offset(offset, length)
	answer(x.w, http.StatusConflict, problemOffset, fmt.Errorf("the upload has %d bytes: go on there", offset))
}

// receive appends the body, and finishes the upload if it is whole.
func (x *exchange) receive(h *holder, f *os.File, s staged) {
	err := x.u.room(s.length - s.size)
	var cut error
	if err == nil {
		s.size, cut, err = x.append(h, f, s)
	}
	h.limitOff()
	whole := s.size == s.length && cut == nil && err == nil
	if whole {
		if err = x.u.finish(x.r.Context(), f, s); err == nil {
			x.whole(s.length, http.StatusNoContent)
			return
		}
	} else if unsynced := s.sync(f); err == nil {
		err = noRoom(unsynced)
	}
	switch {
	case err != nil:
		if !errors.Is(err, ErrDigest) {
			x.offset(s.size, s.length)
		}
		x.fail(err)
	case errors.Is(cut, errTooLong):
		answer(x.w, http.StatusBadRequest, problemRequest, cut)
	case cut != nil:
		x.offset(s.size, s.length)
		answer(x.w, http.StatusRequestTimeout, problemRequest, fmt.Errorf("the request broke off: %w", cut))
	default:
		x.offset(s.size, s.length)
		x.w.WriteHeader(http.StatusNoContent)
	}
}

var errTooLong = errors.New("the body goes on beyond Upload-Length")

// append writes the body to the end of the file. It returns how long the file is then, what was wrong with the request
// (cut), and what was wrong with the disk.
func (x *exchange) append(h *holder, f *os.File, s staged) (size int64, cut, err error) {
	size = s.size
	buffer := make([]byte, 128<<10)
	for {
		if !h.alive(6 * x.u.config.Silence) {
			return size, errBusy, nil
		}
		n, cut := x.r.Body.Read(buffer)
		if int64(n) > s.length-size {
			return size, errTooLong, nil
		}
		if n > 0 {
			written, err := f.WriteAt(buffer[:n], size)
			size += int64(written)
			if err != nil {
				return size, nil, noRoom(err)
			}
		}
		if errors.Is(cut, io.EOF) {
			return size, nil, nil
		}
		if cut != nil {
			return size, cut, nil
		}
	}
}

func (h *holder) limitOff() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limit(time.Time{}) // the server notices a client that leaves by reading
}

// parsePatch reads the headers of a PATCH; status is for an error.
func parsePatch(r *http.Request) (offset, length int64, status int, err error) {
	if got := r.Header.Values("Content-Type"); len(got) != 1 || got[0] != contentType {
		return 0, 0, http.StatusUnsupportedMediaType, fmt.Errorf("Content-Type: %.60q is not %s", got, contentType)
	}
	if len(r.Header.Values("Content-Encoding")) > 0 {
		return 0, 0, http.StatusUnsupportedMediaType, errors.New("Content-Encoding: send the bytes as they are")
	}
	for name, to := range map[string]*int64{headerOffset: &offset, headerLength: &length} {
		values := r.Header.Values(name)
		if len(values) != 1 {
			return 0, 0, http.StatusBadRequest, fmt.Errorf("%s: %d values; one is needed", name, len(values))
		}
		if *to, err = parseCount(values[0]); err != nil {
			return 0, 0, http.StatusBadRequest, fmt.Errorf("%s: %w", name, err)
		}
	}
	switch {
	case offset > length:
		err = fmt.Errorf("%s: %d is beyond %s: %d", headerOffset, offset, headerLength, length)
	case r.ContentLength > length-offset:
		err = fmt.Errorf("Content-Length: %d bytes from %d on go beyond %s: %d", r.ContentLength, offset, headerLength, length)
	}
	return offset, length, http.StatusBadRequest, err
}

// parseCount reads a number of bytes: a non-negative integer of RFC 9651, which has at most 15 digits.
func parseCount(text string) (int64, error) {
	if text == "" || len(text) > 15 {
		return 0, fmt.Errorf("%.20q is no number of bytes", text)
	}
	var n int64
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%.20q is no number of bytes", text)
		}
		n = 10*n + int64(c-'0')
	}
	return n, nil
}

// problem is an error as in RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func answer(w http.ResponseWriter, status int, kind string, err error) {
	text, bad := json.Marshal(problem{kind, http.StatusText(status), status, err.Error()})
	if bad != nil {
		panic("blob: a problem has only strings: " + bad.Error())
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that has gone misses it
}
