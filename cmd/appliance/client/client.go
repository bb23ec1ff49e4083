// Package client is the public Go client of a box, and the other side of package panel: it asks
// a box over REST for runs, follows them to their end, brings and fetches files, and keeps
// workflows, schedules, webhooks and alerts. appliance's own commands use it. Requests that a
// lost connection or a restarting box may have swallowed are made again, and
// start nothing twice. What comes back is bounded in size, and text in it is
// made fit for a terminal. Errors are typed, so that a program can tell a
// request that is wrong ([RefusedError], [UnsuitableError]) from a box that does
// not answer ([UnreachableError]) and from one that is not the box ([UntrustedError]).
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report"
	"eidetic/internal/web/panel"
)

// Config says where a panel is and how patiently it is asked.
type Config struct {
	Base  string // the panel's address, such as http://127.0.0.1:8080
	Token Secret // the zero value: none
	Trust        // of a box whose address begins with https
	// Patience is how long a box that does not answer is asked again; 0 is not at all.
	Patience time.Duration
	// FirstPause is the pause after the first attempt that failed; each pause
	// after it is twice as long, up to a quarter of a minute. 0 is a second.
	FirstPause time.Duration
}

// Client asks one panel.
type Client struct {
	config Config
	http   *http.Client
}

const (
	// answerLimit is how long an answer may take that is neither a stream nor a file.
	answerLimit = 30 * time.Second
	// fileLimit is how long a file may take besides its bytes, which are
	// transferred at slowestRate or faster: a box checks a recording before it answers.
	fileLimit   = 5 * time.Minute
	slowestRate = 100_000 // bytes a second
	// maxAnswer bounds an answer that is neither a run nor a file.
	maxAnswer = 4 << 20
	// longestPause bounds the pause between two attempts.
	longestPause = 15 * time.Second
)

// New returns a client; nothing is asked yet.
func New(c Config) *Client {
	c.Base, c.FirstPause = strings.TrimSuffix(c.Base, "/"), cmp.Or(c.FirstPause, time.Second)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = fileLimit
	transport.TLSClientConfig = c.tlsConfig(c.Base)
	return &Client{config: c, http: &http.Client{
		Transport: transport,
		// The token is only for the address that it was given with.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the connections that are kept for more requests.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Base is the panel's address.
func (c *Client) Base() string { return c.config.Base }

// ReportURL is the address of a run's report.
func (c *Client) ReportURL(id string) string {
	return c.config.Base + "/runs/" + url.PathEscape(id) + "/" + report.FileName
}

// CheckReady returns nil if there is a panel that takes runs. It asks once,
// because an address that is wrong does not get better.
func (c *Client) CheckReady(ctx context.Context) error {
	health, err := c.Health(ctx)
	if isFailing(err) {
		return nil // a part of the service hangs; the answer to the run says whether that matters
	}
	if err != nil {
		return err
	}
	switch {
	case health.Token && c.config.Token.IsZero():
		return c.noToken()
	case !health.Starts:
		return &UnsuitableError{c.config.Base, "only shows runs, as the panel of a demo does; appliance serve is one that starts them"}
	}
	return nil
}

// Start asks for a run, which body describes in JSON, and returns its ID. An
// idempotency key makes sure that it is one run, however often it is asked for.
func (c *Client) Start(ctx context.Context, body []byte) (id string, err error) {
	return c.start(ctx, "/api/v1/runs", json.RawMessage(body))
}

func (c *Client) start(ctx context.Context, path string, in any) (id string, err error) {
	text, err := c.send(ctx, http.MethodPost, path, in, "Idempotency-Key", rand.Text())
	if err != nil {
		return "", err
	}
	var accepted panel.Accepted
	if err := json.Unmarshal(text, &accepted); err != nil || !store.ValidID(accepted.ID) {
		return "", c.garbled("the answer names no run")
	}
	return accepted.ID, nil
}

// Run reads a run as far as it is. A run that waits has an ID and a state only.
func (c *Client) Run(ctx context.Context, id string) (*lab.Run, error) {
	run, _, err := c.run(ctx, id)
	return run, c.outcome(err)
}

// run is [Client.Run], with the size of the answer.
func (c *Client) run(ctx context.Context, id string) (run *lab.Run, size int, err error) {
	text, err := c.request(ctx, http.MethodGet, "/api/v1/runs/"+url.PathEscape(id), nil, nil, store.MaxRunBytes)
	if err != nil {
		return nil, 0, err
	}
	var head struct{ State, Waits string }
	if json.Unmarshal(text, &head) == nil && head.State == store.StateQueued {
		return &lab.Run{ID: id, State: head.State, Waits: head.Waits}, len(text), nil
	}
	run, err = store.DecodeRun(bytes.NewReader(text))
	if err != nil {
		return nil, 0, c.garbled("run.json: " + Plain(err.Error()))
	}
	if run.ID != id {
		return nil, 0, c.garbled("it answers with another run")
	}
	return run, len(text), nil
}

// Cancel stops a run.
func (c *Client) Cancel(ctx context.Context, id string) error {
	_, err := c.request(ctx, http.MethodDelete, "/api/v1/runs/"+url.PathEscape(id), nil, nil, maxAnswer)
	return c.outcome(err)
}

// request makes a request that may be made again until it is answered or
// patience ends, and returns the answer, which may have most bytes.
func (c *Client) request(ctx context.Context, method, path string, body []byte, change func(*http.Request),
	most int64) (content []byte, err error) {
	err = c.retry(ctx, func() error {
		limited, done := context.WithTimeout(ctx, answerLimit+time.Duration(most>>20)*time.Second)
		defer done()
		var sent io.Reader
		if body != nil {
			sent = bytes.NewReader(body)
		}
		answer, err := c.do(limited, method, path, sent, change)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		content, err = io.ReadAll(io.LimitReader(answer.Body, most+1))
		if err == nil && int64(len(content)) > most {
			return c.garbled(fmt.Sprintf("the answer has more than %d MiB", most>>20))
		}
		return err
	})
	return content, err
}

// retry calls try until it succeeds, fails for good, or patience ends.
func (c *Client) retry(ctx context.Context, try func() error) error {
	began, pause := time.Now(), c.config.FirstPause
	for {
		err := try()
		if err == nil || !isRetryable(err) || ctx.Err() != nil || time.Since(began) > c.config.Patience {
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

// do makes a request once. The caller closes the body of an answer without an error.
func (c *Client) do(ctx context.Context, method, path string, body io.Reader, change func(*http.Request)) (*http.Response, error) {
	answer, err := c.ask(ctx, method, path, body, change)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, c.refusal(answer)
}

// ask is do, with an answer of any status.
func (c *Client) ask(ctx context.Context, method, path string, body io.Reader, change func(*http.Request)) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.config.Base+path, body)
	if err != nil {
		return nil, err
	}
	if !c.config.Token.IsZero() {
		r.Header.Set("Authorization", "Bearer "+c.config.Token.Reveal())
	}
	if change != nil {
		change(r)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // without the address, which the message names anyway
		}
		return nil, err
	}
	return answer, nil
}

// refusal reads why an answer says no.
func (c *Client) refusal(answer *http.Response) error {
	e := &RefusedError{Base: c.config.Base, Status: answer.StatusCode, Detail: "it answers " + Plain(answer.Status)}
	var problem struct {
		Detail string
		Errors []struct{ Message, Location string }
	}
	// A missing or malformed Content-Type counts as not problem+json.
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if kind == "application/problem+json" && json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&problem) == nil &&
		problem.Detail != "" {
		e.Detail = Plain(problem.Detail)
		for i, one := range problem.Errors[:min(len(problem.Errors), 5)] {
			field := Plain(strings.TrimPrefix(one.Location, "body."))
			if i == 0 {
				e.Field = field
			}
			e.Detail += fmt.Sprintf("; %s: %s", field, Plain(one.Message))
		}
	}
	switch {
	case answer.StatusCode == http.StatusUnauthorized && c.config.Token.IsZero():
		return c.noToken()
	case answer.StatusCode == http.StatusUnauthorized:
		e.Detail = "the token is not the token of this box"
	case answer.StatusCode/100 == 3:
		e.Detail = "it sends elsewhere, to " + Plain(answer.Header.Get("Location"))
	}
	return e
}
