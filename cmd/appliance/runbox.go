package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/panel"
	"eidetic/internal/report"
	"eidetic/internal/store"
)

// boxClient talks to a panel. What comes back is bounded, and believed no more
// than any other text of strangers.
type boxClient struct {
	base     string
	token    string
	patience time.Duration
	first    time.Duration // pause after the first attempt that failed; later ones are longer
	http     *http.Client
}

const (
	// answerLimit is how long an answer may take, other than streams and files.
	answerLimit = 30 * time.Second
	// fileLimit is how long a file may take besides its bytes, which come or go at
	// slowest or faster: a recording is checked before the box answers.
	fileLimit = 5 * time.Minute
	slowest   = 100_000 // bytes a second
	// maxAnswer bounds an answer other than a run or a file.
	maxAnswer = 4 << 20
	// maxReport bounds a report: pictures are in it.
	maxReport = 1 << 30
	// longestPause is between two attempts.
	longestPause = 15 * time.Second
)

func newBoxClient(base, token string, patience, first time.Duration) *boxClient {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = fileLimit
	return &boxClient{
		base: strings.TrimSuffix(base, "/"), token: token, patience: patience, first: first,
		http: &http.Client{
			Transport: transport,
			// A token is for whom it was given to.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func (b *boxClient) close() { b.http.CloseIdleConnections() }

// report is the address of a run's report.
func (b *boxClient) report(id string) string {
	return b.base + "/runs/" + url.PathEscape(id) + "/" + report.FileName
}

// refusedError is an answer that says no.
type refusedError struct {
	status int
	field  string // what it is about: treatment.link
	detail string
}

func (e *refusedError) Error() string { return e.detail }

// passes says whether asking again may help.
func passes(err error) bool {
	var refused *refusedError
	if !errors.As(err, &refused) {
		return true
	}
	switch refused.status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return true
	}
	return false
}

// do makes a request once; the caller closes the body of an answer that is good.
func (b *boxClient) do(ctx context.Context, method, path string, body io.Reader, change func(*http.Request)) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, b.base+path, body)
	if err != nil {
		return nil, err
	}
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	if change != nil {
		change(r)
	}
	answer, err := b.http.Do(r)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // without the address, which the message has
		}
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, b.refused(answer)
}

// refused reads why an answer says no.
func (b *boxClient) refused(answer *http.Response) error {
	e := &refusedError{status: answer.StatusCode, detail: "it answers " + plain(answer.Status)}
	var said struct {
		Detail string
		Errors []struct{ Message, Location string }
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")) // what is none is no problem+json
	if kind == "application/problem+json" && json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&said) == nil && said.Detail != "" {
		e.detail = plain(said.Detail)
		for i, one := range said.Errors[:min(len(said.Errors), 5)] {
			field := plain(strings.TrimPrefix(one.Location, "body."))
			if i == 0 {
				e.field = field
			}
			e.detail += fmt.Sprintf("; %s: %s", field, plain(one.Message))
		}
	}
	switch {
	case answer.StatusCode == http.StatusUnauthorized && b.token == "":
		e.detail = noToken
	case answer.StatusCode == http.StatusUnauthorized:
		e.detail = "the token is not this box's. " + tokenIs
	case answer.StatusCode/100 == 3:
		e.detail = "it sends elsewhere, to " + plain(answer.Header.Get("Location")) + ": say that address with --box if it is the panel's"
	}
	return e
}

const (
	tokenIs = "appliance serve keeps its token in the file token of its data folder (out/box/token), and a box shows it on its screen: " +
		"pass it with --token-file FILE, or in the environment as " + tokenVariable
	noToken = "the box asks for a token, and there is none. " + tokenIs
)

// ask makes a request that may be made again, until it is answered or patience
// ends, and reads the answer as JSON.
func (b *boxClient) ask(ctx context.Context, method, path string, body []byte, change func(*http.Request), most int64) (content []byte, err error) {
	err = b.persist(ctx, func() error {
		limited, done := context.WithTimeout(ctx, answerLimit+time.Duration(most>>20)*time.Second)
		defer done()
		var sent io.Reader
		if body != nil {
			sent = bytes.NewReader(body)
		}
		answer, err := b.do(limited, method, path, sent, change)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		content, err = io.ReadAll(io.LimitReader(answer.Body, most+1))
		if err == nil && int64(len(content)) > most {
			return &refusedError{status: answer.StatusCode, detail: fmt.Sprintf("its answer has more than %d MiB", most>>20)}
		}
		return err
	})
	return content, err
}

// persist tries until it works, the box says no, or patience ends.
func (b *boxClient) persist(ctx context.Context, try func() error) error {
	began, pause := time.Now(), b.first
	for {
		err := try()
		if err == nil || !passes(err) || ctx.Err() != nil || time.Since(began) > b.patience {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// explain turns an error into one with its exit status and what to do.
func (b *boxClient) explain(err error) error {
	var refused *refusedError
	var exit *exitError
	switch {
	case err == nil || errors.As(err, &exit):
		return err
	case !errors.As(err, &refused):
		return cannot(fmt.Errorf("the box at %s does not answer: %w; is appliance serve running there, and is --box its address?", b.base, err))
	case refused.status/100 == 4 && refused.status != http.StatusTooManyRequests && refused.status != http.StatusConflict:
		return usage(fmt.Errorf("the box refuses: %w", err))
	}
	return cannot(fmt.Errorf("the box at %s: %w", b.base, err))
}

// meet finds out whether there is a box that takes runs. It asks once: an
// address that is wrong does not get better.
func (b *boxClient) meet(ctx context.Context) error {
	limited, done := context.WithTimeout(ctx, answerLimit)
	defer done()
	answer, err := b.do(limited, http.MethodGet, "/api/v1/health", nil, nil)
	var refused *refusedError
	if errors.As(err, &refused) && refused.status == http.StatusServiceUnavailable {
		return nil // a part does not turn; what that means for a run is said there
	}
	if err != nil {
		return b.explain(err)
	}
	defer answer.Body.Close()
	var health panel.Health
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&health); err != nil || health.Status == "" {
		return usage(fmt.Errorf("what answers at %s is no panel of ours: --box is the address that appliance serve prints", b.base))
	}
	switch {
	case health.Token && b.token == "":
		return usage(errors.New(noToken))
	case !health.Starts:
		return usage(fmt.Errorf("the panel at %s only shows runs, as that of a demo does; appliance serve is one that starts them", b.base))
	}
	return nil
}

// start asks for a run. The key makes sure that it is one, however often it is asked for.
func (b *boxClient) start(ctx context.Context, body []byte) (id string, err error) {
	key := rand.Text()
	text, err := b.ask(ctx, http.MethodPost, "/api/v1/runs", body, func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
	}, maxAnswer)
	if err != nil {
		return "", err
	}
	var accepted panel.Accepted
	if err := json.Unmarshal(text, &accepted); err != nil || !store.ValidID(accepted.ID) {
		return "", &refusedError{status: http.StatusAccepted, detail: "its answer names no run"}
	}
	return accepted.ID, nil
}

// run reads a run as far as it is. One that waits has no more than a state.
func (b *boxClient) run(ctx context.Context, id string) (run *lab.Run, size int, err error) {
	text, err := b.ask(ctx, http.MethodGet, "/api/v1/runs/"+url.PathEscape(id), nil, nil, store.MaxRunBytes)
	if err != nil {
		return nil, 0, err
	}
	var head struct{ State, Error string }
	if json.Unmarshal(text, &head) == nil && head.State == store.StateQueued {
		return &lab.Run{ID: id, State: head.State}, len(text), nil
	}
	run, err = store.DecodeRun(bytes.NewReader(text))
	if err != nil {
		return nil, 0, &refusedError{status: http.StatusOK, detail: "run.json: " + plain(err.Error())}
	}
	if run.ID != id {
		return nil, 0, &refusedError{status: http.StatusOK, detail: "it answers with another run"}
	}
	return run, len(text), nil
}

// cancel stops a run.
func (b *boxClient) cancel(ctx context.Context, id string) error {
	_, err := b.ask(ctx, http.MethodDelete, "/api/v1/runs/"+url.PathEscape(id), nil, nil, maxAnswer)
	return err
}

// archives lists the recordings there.
func (b *boxClient) archives(ctx context.Context) ([]panel.Archive, error) {
	text, err := b.ask(ctx, http.MethodGet, "/api/v1/archives", nil, nil, maxAnswer)
	if err != nil {
		return nil, b.explain(err)
	}
	var list struct{ Archives []panel.Archive }
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, b.explain(&refusedError{status: http.StatusOK, detail: "its list of recordings cannot be read"})
	}
	return list.Archives, nil
}

// bring uploads a recording.
func (b *boxClient) bring(ctx context.Context, name string, content io.ReadSeeker, size int64) error {
	return b.explain(b.persist(ctx, func() error {
		if _, err := content.Seek(0, io.SeekStart); err != nil {
			return cannot(err)
		}
		limited, done := context.WithTimeout(ctx, fileTime(size))
		defer done()
		answer, err := b.do(limited, http.MethodPut, "/api/v1/archives/"+url.PathEscape(name), io.NopCloser(content), func(r *http.Request) {
			r.ContentLength = size
			r.Header.Set("Content-Type", "application/wacz")
		})
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}))
}

// fileTime is how long a file of so many bytes may take.
func fileTime(size int64) time.Duration {
	return fileLimit + time.Duration(size/slowest)*time.Second
}

// fetchAll gets what a run left for people and for scripts.
func (b *boxClient) fetchAll(ctx context.Context, id, dir string) error {
	for _, f := range []struct {
		name string
		most int64
	}{{"run.json", store.MaxRunBytes}, {"report.json", store.MaxRunBytes}, {report.FileName, maxReport}} {
		err := b.persist(ctx, func() error { return b.fetch(ctx, id, f.name, dir, f.most) })
		var refused *refusedError
		if errors.As(err, &refused) && refused.status == http.StatusNotFound {
			continue // a run that failed early has no report
		}
		if err != nil {
			return b.explain(err)
		}
	}
	return nil
}

// fetch gets a file of a run; under its name there is the whole of it or what was there before.
func (b *boxClient) fetch(ctx context.Context, id, name, dir string, most int64) error {
	limited, done := context.WithTimeout(ctx, fileTime(most))
	defer done()
	answer, err := b.do(limited, http.MethodGet, "/api/v1/runs/"+url.PathEscape(id)+"/artifacts/"+name, nil, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	f, err := os.CreateTemp(dir, ".fetching-")
	if err != nil {
		return cannot(fmt.Errorf("--out: %w", err))
	}
	defer os.Remove(f.Name()) // gone already when all went well
	n, err := io.Copy(f, io.LimitReader(answer.Body, most+1))
	local := errors.Join(f.Chmod(0o644), f.Close())
	switch {
	case err != nil:
		return err
	case n > most:
		return cannot(fmt.Errorf("the box's %s has more than %d MiB", name, most>>20))
	case local == nil:
		local = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if local != nil {
		return cannot(fmt.Errorf("--out: %w", local))
	}
	return nil
}
