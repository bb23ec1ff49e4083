package blob

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Policy says how Send goes about errors. What is 0 has the default that its comment names.
type Policy struct {
	Pause     time.Duration // before the second attempt; it doubles with each attempt that brings nothing: 500 ms
	MostPause time.Duration // 1 min
	// Patience is for how long Send tries without getting further before it gives up: 10 min.
	Patience time.Duration
	// Silence is for how long a connection may take no byte before it counts as broken: 1 min.
	Silence time.Duration
	// Random is uniform in [0, 1): pauses are spread, so that boxes do not come back all at once.
	Random func() float64
	// Progress is told how many bytes the head has, as far as is known.
	Progress func(bytes int64)
}

// StatusError is an answer of the head that trying again does not change.
type StatusError struct {
	Status int
	Type   string // of the problem, or ""
	Detail string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("upload: the head answers %d %s: %s", e.Status, http.StatusText(e.Status), cmp.Or(e.Detail, e.Type, "no reason"))
}

// LocalError is an error of the file that is sent, not of the network.
type LocalError struct{ Err error }

func (e *LocalError) Error() string { return "upload: read the file: " + e.Err.Error() }
func (e *LocalError) Unwrap() error { return e.Err }

// inOne is the size up to which a file is sent without asking first how much of it is there.
const inOne = 1 << 20

// Send uploads content of a size to an address of Handler (…/{sha256}), from where an earlier attempt ended. It returns
// nil when the head has the blob. It tries again after what may pass, and returns a *LocalError when the content cannot
// be read, a *StatusError for an answer that stays as it is, ErrDigest when the head says again and again that the
// content is not what the address says, and else the last error.
func Send(ctx context.Context, client *http.Client, url string, header http.Header, content io.ReaderAt, size int64, p Policy) error {
	p.Pause = cmp.Or(p.Pause, 500*time.Millisecond)
	p.MostPause = cmp.Or(p.MostPause, time.Minute)
	p.Patience = cmp.Or(p.Patience, 10*time.Minute)
	p.Silence = cmp.Or(p.Silence, time.Minute)
	if p.Random == nil {
		p.Random = rand.Float64
	}
	if p.Progress == nil {
		p.Progress = func(int64) {}
	}
	s := &sender{client: client, url: url, header: header, content: content, size: size, Policy: p, offset: -1}
	if size <= inOne {
		s.offset = 0
	}
	return s.run(ctx)
}

type sender struct {
	Policy
	client  *http.Client
	url     string
	header  http.Header
	content io.ReaderAt
	size    int64

	offset   int64 // that the head has; -1: it must be asked
	most     int64 // the highest offset that was told
	restarts int   // how often it told less than before
	wrong    int   // how often the head has found another digest
	attempts int   // since the last that got further
	after    time.Duration
}

// mostWrong is how often content is sent anew whose digest did not match.
const mostWrong = 3

var errAgain = errors.New("the head asks to try again")

func (s *sender) run(ctx context.Context) error {
	last := time.Now() // when it got further
	for {
		s.after = 0
		before := s.most
		done, err := s.step(ctx)
		if done || err != nil && !s.passes(ctx, err) {
			return err
		}
		if s.most > before {
			last, s.attempts = time.Now(), 0
			s.Progress(s.most)
		}
		if err == nil {
			continue
		}
		if time.Since(last) > s.Patience {
			return fmt.Errorf("upload: given up after %s without progress: %w", s.Patience, err)
		}
		pause := min(s.Pause<<min(s.attempts, 20), s.MostPause)
		pause = max(time.Duration(float64(pause)*(0.5+s.Random()/2)), min(s.after, s.MostPause))
		s.attempts++
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause):
		}
	}
}

// passes says whether an error may pass.
func (s *sender) passes(ctx context.Context, err error) bool {
	var local *LocalError
	var status *StatusError
	return ctx.Err() == nil && !errors.As(err, &local) && !errors.As(err, &status) && (!errors.Is(err, ErrDigest) || s.wrong < mostWrong)
}

// step asks for the offset, or sends what is missing.
func (s *sender) step(ctx context.Context) (done bool, err error) {
	if s.offset < 0 {
		return s.ask(ctx)
	}
	return s.patch(ctx)
}

func (s *sender) ask(ctx context.Context) (done bool, err error) {
	response, err := s.do(ctx, http.MethodHead, http.NoBody, nil)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusNotFound:
		s.offset = 0
		return false, nil
	case http.StatusOK:
		return s.told(response)
	}
	return false, s.refused(response)
}

// told takes the offset from an answer.
func (s *sender) told(response *http.Response) (done bool, err error) {
	if response.Header.Get(headerComplete) == "?1" {
		s.most = s.size
		s.Progress(s.size)
		return true, nil
	}
	offset, err := parseCount(response.Header.Get(headerOffset))
	if err != nil || offset > s.size {
		s.offset = 0 // one of another length is not ours
		return false, nil
	}
	if offset < s.most && s.restarts < mostWrong { // the head has lost something: getting there again is progress
		s.restarts++
		s.most = offset
	}
	s.offset = offset
	s.most = max(s.most, offset)
	return false, nil
}

func (s *sender) patch(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b := &body{from: io.NewSectionReader(s.content, s.offset, s.size-s.offset), left: s.size - s.offset, silence: s.Silence}
	b.watch = time.AfterFunc(s.Silence, func() { cancel(errors.New("the connection takes no more bytes")) })
	b.answer = 5*time.Minute + time.Duration(s.size>>20)*time.Second
	defer b.watch.Stop()
	from := s.offset
	s.offset = -1
	var reader io.Reader = b
	if b.left == 0 {
		reader = http.NoBody
		b.watch.Reset(b.answer)
	}
	response, err := s.do(ctx, http.MethodPatch, reader, func(r *http.Request) {
		r.ContentLength = s.size - from
		r.Header.Set("Content-Type", contentType)
		r.Header.Set(headerOffset, strconv.FormatInt(from, 10))
		r.Header.Set(headerLength, strconv.FormatInt(s.size, 10))
	})
	if local := b.error(); local != nil {
		if err == nil {
			response.Body.Close()
		}
		return false, &LocalError{local}
	}
	if err != nil {
		if why := context.Cause(ctx); why != nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
		return false, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusNoContent, http.StatusOK:
		done, err = s.told(response)
		if !done && err == nil && s.offset <= from {
			err = errAgain // an answer that brings nothing must not be repeated without a pause
		}
		return done, err
	case http.StatusUnprocessableEntity:
		s.wrong++
		s.most = 0
		return false, fmt.Errorf("upload: %w: the head has received other content; has the file changed?", ErrDigest)
	}
	return false, s.refused(response)
}

// refused reads an answer that is no success: what may pass becomes an error, what stays a *StatusError.
func (s *sender) refused(response *http.Response) error {
	p := readProblem(response)
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		s.after = time.Duration(min(seconds, 3600)) * time.Second
	}
	status := response.StatusCode
	switch {
	case status == http.StatusConflict && p.Type == problemOffset:
		_, err := s.told(response)
		return cmp.Or(err, errAgain)
	case status == http.StatusInsufficientStorage:
		return fmt.Errorf("upload: the head has %w: %s", ErrNoRoom, p.Detail)
	case status == http.StatusRequestTimeout, status == http.StatusLocked, status == http.StatusTooEarly,
		status == http.StatusTooManyRequests, status >= 500:
		return fmt.Errorf("%w: %d %s: %s", errAgain, status, http.StatusText(status), p.Detail)
	}
	return &StatusError{status, p.Type, p.Detail}
}

func readProblem(response *http.Response) (p problem) {
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind == "application/problem+json" {
		_ = json.NewDecoder(io.LimitReader(response.Body, 1<<16)).Decode(&p) // what cannot be read says nothing
	}
	return p
}

func (s *sender) do(ctx context.Context, method string, body io.Reader, edit func(*http.Request)) (*http.Response, error) {
	if method == http.MethodHead {
		// The head answers within the time that it waits for another request of the same upload.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(s.Silence, time.Minute))
		defer cancel() // a HEAD has no body to read
	}
	r, err := http.NewRequestWithContext(ctx, method, s.url, body)
	if err != nil {
		return nil, &StatusError{Detail: err.Error()}
	}
	if s.header != nil {
		r.Header = s.header.Clone()
	}
	if edit != nil {
		edit(r)
	}
	return s.client.Do(r)
}

// body is the rest of the content. It keeps its own errors, to tell them apart from the network's.
type body struct {
	from    io.Reader
	silence time.Duration
	answer  time.Duration // for the answer, once all was read
	watch   *time.Timer

	mu   sync.Mutex
	left int64
	err  error
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF) && b.left > 0:
		b.err = fmt.Errorf("%w: %d bytes are missing at its end", io.ErrUnexpectedEOF, b.left)
		return n, b.err
	case err != nil && !errors.Is(err, io.EOF):
		b.err = err
	case b.left > 0:
		b.watch.Reset(b.silence)
	default:
		b.watch.Reset(b.answer)
	}
	return n, err
}

func (b *body) error() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
