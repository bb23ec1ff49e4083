package client

import (
	"errors"
	"fmt"
	"net/http"

	"eidetic/internal/tell/terminal"
)

// RefusedError is an answer of the box that says no.
type RefusedError struct {
	Base   string // the panel's address
	Status int    // of HTTP
	Field  string // the field of the request that it is about, such as treatment.link; may be empty
	Detail string // why
}

func (e *RefusedError) Error() string {
	if e.Rejected() {
		return "the box refuses: " + e.Detail
	}
	return fmt.Sprintf("the box at %s: %s", e.Base, e.Detail)
}

// Rejected says that the box refuses the request, as it would again: a value is wrong, a name is taken, what is to be
// removed is needed.
func (e *RefusedError) Rejected() bool {
	return e.Status/100 == 4 && e.Status != http.StatusTooManyRequests
}

// UnreachableError says that the box did not answer until patience ended.
type UnreachableError struct {
	Base string // the panel's address
	Err  error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the box at %s does not answer: %v", e.Base, e.Err)
}

// Unwrap returns the error of the last attempt.
func (e *UnreachableError) Unwrap() error { return e.Err }

// UnsuitableError says that what answers at an address is nothing that takes runs.
type UnsuitableError struct{ Base, Reason string }

func (e *UnsuitableError) Error() string {
	return fmt.Sprintf("what answers at %s %s", e.Base, e.Reason)
}

// NotRunning says whether err is the answer that a run neither waits nor goes on:
// the box does not know it, it has ended, or it is about to end.
func NotRunning(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && (refused.Status == http.StatusNotFound || refused.Status == http.StatusConflict)
}

// localError is an error of this machine, such as a full disk: asking the box again does not help.
type localError struct{ error }

func (e *localError) Unwrap() error { return e.error }

// isRetryable says whether the same request may succeed later.
func isRetryable(err error) bool {
	var local *localError
	var refused *RefusedError
	var untrusted *UntrustedError
	switch {
	case errors.As(err, &local), errors.As(err, &untrusted):
		return false
	case !errors.As(err, &refused):
		return true // the connection failed
	}
	switch refused.Status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return true
	}
	return false
}

// outcome is the error that a caller gets to see: without a type of its own it
// comes from the connection.
func (c *Client) outcome(err error) error {
	var local *localError
	var refused *RefusedError
	var unsuitable *UnsuitableError
	var untrusted *UntrustedError
	switch {
	case errors.As(err, &untrusted):
		return untrusted // without what the layers between add
	case err == nil || errors.As(err, &refused) || errors.As(err, &unsuitable):
		return err
	case errors.As(err, &local):
		return local.error
	}
	return &UnreachableError{c.config.Base, err}
}

// noToken is the refusal of a request that came without the token that the box asks for.
func (c *Client) noToken() error {
	return &RefusedError{Base: c.config.Base, Status: http.StatusUnauthorized, Detail: "it asks for a token, and none was given"}
}

// garbled is the error of an answer that says yes and cannot be used.
func (c *Client) garbled(detail string) error {
	return &RefusedError{Base: c.config.Base, Status: http.StatusOK, Detail: detail}
}

// Plain makes a text that others wrote fit for a terminal: one line, which moves no cursor and sets no colour.
func Plain(text string) string { return terminal.Plain(text) }
