// Package panel is the appliance's face on the network: a REST interface
// under /api/v1 described by OpenAPI 3.1 at /openapi.json, errors as RFC 9457
// problem details, progress as server-sent events (WHATWG HTML, section 9.2),
// and web pages that list the runs of a store, open their reports and show
// how their numbers change from run to run.
//
// In go a store of runs and, where runs can be started, a queue of runs;
// out comes an http.Handler. Requests pass, in this order: the guard (Host
// header against DNS rebinding, security headers, cross-origin writes, token),
// the router, the handler. The guard knows what is public and asks for the
// token everywhere else.
package panel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"eidetic/internal/history"
	"eidetic/internal/runqueue"
	"eidetic/internal/store"
)

// MinToken is the fewest characters of a token. It is all that keeps others
// from the recordings, and may be guessed at as fast as the network allows.
const MinToken = 16

// Config is what a panel needs.
type Config struct {
	// Store holds the runs.
	Store *store.Store
	// Token must come with every call that reads a recording or changes
	// anything, as "Authorization: Bearer TOKEN" or in the cookie that the
	// page sets. It may be empty on a loopback listener only.
	Token string
	// Version is shown to people and machines.
	Version string
	// Hosts are the names by which the panel may be called besides localhost
	// and addresses, without ports. It guards against DNS rebinding.
	Hosts []string
	// Queue lets runs be started; without it the panel only reads.
	Queue *runqueue.Queue
	// Devices lists what can be measured; nil when nothing can.
	Devices func(context.Context) []Device
	// Links are the names of access networks that a run can ask for.
	Links []string
	// Archives, Settings and System are what else can be looked at and changed;
	// what is nil cannot.
	Archives Archives
	Settings Settings
	System   System
	// Certificate is the authority that devices must trust, in PEM form.
	Certificate []byte
	// Parts tells which parts of the service turn; nil when nothing watches them.
	Parts func() []Part
	// Warnings are what somebody should mend, in words that a stranger may read.
	Warnings []string
	// Log receives what went wrong on our side; nil discards it.
	Log *slog.Logger
}

// Panel is the HTTP handler.
type Panel struct {
	Config
	handler http.Handler
	api     huma.API
	events  *runqueue.Events
	finder  *history.Finder
}

// New makes a panel. It serves by Serve, or as a handler of another server.
func New(c Config) (*Panel, error) {
	switch {
	case c.Store == nil:
		return nil, errors.New("panel: no store")
	case c.Token != "" && len(c.Token) < MinToken:
		return nil, fmt.Errorf("panel: the token has %d characters, it needs at least %d", len(c.Token), MinToken)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	p := &Panel{Config: c, events: runqueue.NewEvents(), finder: history.NewFinder()}
	if c.Queue != nil {
		p.events = c.Queue.Events()
	}
	e := echo.New()
	e.HTTPErrorHandler = p.fail
	p.api = p.routes(e)
	p.web(e)
	p.handler = p.guard(e)
	return p, nil
}

// ServeHTTP answers a request.
func (p *Panel) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, asked(r)) }

// fail writes any error as problem details.
func (p *Panel) fail(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	status, detail := http.StatusInternalServerError, "something went wrong on our side; the log says what"
	var he *echo.HTTPError
	var se huma.StatusError
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		status, detail = refused.Status, refused.Error()
	case errors.As(err, &he):
		status, detail = he.Code, fmt.Sprint(he.Message)
	case errors.As(err, &se):
		status, detail = se.GetStatus(), se.Error()
	case errors.Is(err, store.ErrNotFound):
		status, detail = http.StatusNotFound, err.Error()
	case errors.Is(err, context.Canceled):
		status, detail = http.StatusServiceUnavailable, stops
	case full(err):
		status, detail = http.StatusInsufficientStorage, noSpace
		p.Log.Error("panel", "method", c.Request().Method, "path", c.Request().URL.Path, "err", err)
	default:
		p.Log.Error("panel", "method", c.Request().Method, "path", c.Request().URL.Path, "err", err)
	}
	problem(c.Response(), status, detail)
}
