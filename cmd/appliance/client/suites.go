package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"eidetic/internal/box/suites"
	"eidetic/internal/tell/suite"
	"eidetic/internal/web/panel"
)

// SuiteResult is what a box knows of a suite that it measures.
type SuiteResult = suites.Result

// maxSuiteFile bounds a result's file.
const maxSuiteFile = 64 << 20

// PutSuite uploads a suite, in place of what the box has under its name.
func (c *Client) PutSuite(ctx context.Context, s *suite.Suite) error {
	body := map[string]string{"yaml": string(s.Text())}
	_, err := c.send(ctx, http.MethodPut, "/api/v1/suites/"+url.PathEscape(s.Name), body, "If-Match", "*")
	return err
}

// Suite reads a suite that the box has.
func (c *Client) Suite(ctx context.Context, name string) (s suites.Suite, err error) {
	return s, c.exchange(ctx, http.MethodGet, "/api/v1/suites/"+url.PathEscape(name), "", nil, &s)
}

// MeasureSuite asks for a result. An idempotency key makes sure that it is one, however often it is asked for.
func (c *Client) MeasureSuite(ctx context.Context, q panel.NewSuiteResult) (r SuiteResult, err error) {
	text, err := c.send(ctx, http.MethodPost, "/api/v1/suite-results", q, "Idempotency-Key", rand.Text())
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil || r.ID == "" {
		return r, c.garbled("the answer names no result")
	}
	return r, nil
}

func suiteResult(id string) string { return "/api/v1/suite-results/" + url.PathEscape(id) }

// SuiteResult reads what a result says so far. A box that does not answer is waited for.
func (c *Client) SuiteResult(ctx context.Context, id string) (r SuiteResult, err error) {
	return r, c.exchange(ctx, http.MethodGet, suiteResult(id), "", nil, &r)
}

// StopSuiteResult stops measuring a result. One that has ended meanwhile is no error.
func (c *Client) StopSuiteResult(ctx context.Context, id string) error {
	_, err := c.send(ctx, http.MethodDelete, suiteResult(id), nil)
	var refused *RefusedError
	if errors.As(err, &refused) && refused.Status == http.StatusConflict {
		return nil
	}
	return err
}

// SuiteFile reads the file of a result.
func (c *Client) SuiteFile(ctx context.Context, id string) (*suite.Result, error) {
	text, err := c.request(ctx, http.MethodGet, suiteResult(id)+"/file", nil, nil, maxSuiteFile)
	if err != nil {
		return nil, c.outcome(err)
	}
	r, err := suite.ParseResult(text)
	if err != nil {
		return nil, c.garbled("its suite.json: " + Plain(err.Error()))
	}
	return r, nil
}
