// Package panel is the appliance's web interface: REST under /api/v1, described by OpenAPI
// 3.1 at /openapi.json, with errors as RFC 9457 problem details and progress as server-sent
// events (WHATWG HTML, section 9.2); and web pages that list the runs of a store, open
// their reports and show how their numbers change from run to run.
//
// Its input is a store of runs, and a list of modules: features, each of which brings its routes (see [Module]). Its
// output is an http.Handler. A request passes, in this order: the guard (Host header against DNS
// rebinding, security headers, cross-origin writes, token), the router, the handler. The
// guard knows which paths are public; everywhere else it requires a token or a session whose
// scope allows the request, and writes what changes something into the audit log.
package panel

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
	"golang.org/x/sync/semaphore"

	"eidetic/internal/base/slots"
	"eidetic/internal/box/credentials"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/history"
)

// MinToken is the fewest characters of a token. Only the token protects the recordings, and
// it can be guessed as fast as the network allows.
const MinToken = 16

// Config holds what a panel needs.
type Config struct {
	// Store holds the runs.
	Store *store.Store
	// Token is the box's own token. A token must come with every call that reads a recording
	// or changes anything, as "Authorization: Bearer TOKEN", or a session in the cookie that
	// the page sets. It may be empty only on a loopback listener.
	Token lab.Secret
	// Credentials are the tokens and sessions, and the audit log; nil is a store in memory
	// that knows only Token.
	Credentials *credentials.Store
	// TLS is the panel's certificate, and Fingerprint its SHA-256: see Serve. Without one
	// the panel speaks plain HTTP.
	TLS         *tls.Certificate
	Fingerprint string
	// Version is shown to people and machines.
	Version string
	// Hosts are the host names, without ports, that the panel accepts besides localhost and
	// addresses. Other names are refused against DNS rebinding.
	Hosts []string
	// Reaches says where pages may be that are recorded; "" is ReachesPublic.
	Reaches Reaches
	// Warnings are problems to fix, in words that anybody may read without a token.
	Warnings []string
	// Modules are the features besides looking at the runs.
	Modules []Module
	// Log receives internal errors; nil discards them.
	Log *slog.Logger
}

// Queue takes runs: that of this box, a [runqueue.Queue], or that of a fleet's head.
type Queue interface {
	Add(ctx context.Context, plan lab.Plan, once store.Once) (id string, err error)
	Cancel(ctx context.Context, id string) error
	Get(ctx context.Context, id string) (store.Job, error)
	List(ctx context.Context) ([]store.Job, error)
	// Waits says of runs, in words, what they wait for. One that does not wait is left out.
	Waits(ctx context.Context, runs ...string) (map[string]string, error)
	InProgress(ctx context.Context) (id string, err error)
	Events() *runqueue.Events
}

// Answers keeps what was answered to requests with a key; a [store.Queue] does.
type Answers interface {
	Claim(ctx context.Context, o store.Once, now time.Time) (*store.Answer, error)
	Unclaim(ctx context.Context, key string) error
	Answer(ctx context.Context, key string, a store.Answer) error
}

// Panel is the HTTP handler.
type Panel struct {
	Config
	shared
	handler  http.Handler
	router   *echo.Echo
	missing  func(echo.Context) error // answers a person whose browser asks for a page that is not there
	api      huma.API
	finder   *history.Finder
	checking *slots.Turn         // of a plan's text that is read
	telling  *slots.Turn         // of a comparison or an export of a run, a series of releases, or a preview of retention
	looking  *slots.Turn         // into a recording
	reading  *semaphore.Weighted // bytes of the runs that are read
	readers  slots.Lines         // for them
	holding  *slots.Turn         // of a large body
	counted  counting
	numbers  *boxCollector // for Prometheus
	// How connections are served; [WithMachines] changes it.
	limits    slots.Limits
	beside    func(http.Handler) http.Handler
	configure func(*tls.Config) *tls.Config
}

// New makes a panel. Use Serve, or pass the panel as a handler to another server.
func New(c Config) (*Panel, error) {
	switch {
	case c.Store == nil:
		return nil, errors.New("panel: no store")
	case !c.Token.IsZero() && len(c.Token.Reveal()) < MinToken:
		return nil, fmt.Errorf("panel: the token has %d characters, it needs at least %d", len(c.Token.Reveal()), MinToken)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Credentials == nil {
		c.Credentials = credentials.Open(credentials.Options{Own: c.Token, Log: c.Log})
	}
	p := &Panel{Config: c, shared: alone(), finder: history.NewFinder(),
		checking: slots.NewTurn(1), telling: slots.NewTurn(1), looking: slots.NewTurn(1),
		counted: counting{turn: slots.NewTurn(1)}, reading: semaphore.NewWeighted(mostRuns), holding: slots.NewTurn(mostBodies),
		limits:    slots.DefaultLimits(),
		beside:    func(people http.Handler) http.Handler { return people },
		configure: func(c *tls.Config) *tls.Config { return c },
	}
	e := echo.New()
	e.HTTPErrorHandler = p.fail
	p.router = e
	p.routes(e)
	p.web(e)
	p.handler = p.guard(p.bodies(p.once(conditional(p.large(describe(e))))))
	return p, nil
}

// describe has huma write all forms of the API's description when the first of them is asked
// for. Huma keeps the text without a lock: two first requests at once are a data race.
func describe(e *echo.Echo) http.Handler {
	once := sync.OnceFunc(func() {
		for _, path := range descriptions() {
			r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}, Header: http.Header{}}
			e.ServeHTTP(nowhere{}, r)
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(descriptions(), r.URL.Path) {
			once()
		}
		e.ServeHTTP(w, r)
	})
}

// descriptions are the paths of the forms.
func descriptions() []string {
	return []string{"/openapi.json", "/openapi.yaml", "/openapi-3.0.json", "/openapi-3.0.yaml"}
}

// nowhere is an answer that nobody reads.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteHeader(int)             {}

// ServeHTTP answers a request.
func (p *Panel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.handler.ServeHTTP(w, headAsGet(r))
}

// fail writes an error as problem details.
func (p *Panel) fail(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	status, detail := http.StatusInternalServerError, "something went wrong on our side; the log says what"
	var he *echo.HTTPError
	var se huma.StatusError
	var refused *Refusal
	var away *lab.AwayError
	switch {
	case errors.As(err, &away):
		status, detail = http.StatusServiceUnavailable, away.Error()
		c.Response().Header().Set("Retry-After", retryAway)
		p.Log.Warn("panel", "method", c.Request().Method, "path", c.Request().URL.Path, "err", away.Err)
	case errors.As(err, &refused):
		status, detail = refused.Status, refused.Error()
	case errors.As(err, &he):
		status, detail = he.Code, fmt.Sprint(he.Message)
	case errors.As(err, &se):
		status, detail = se.GetStatus(), se.Error()
	case errors.Is(err, store.ErrNotFound):
		status, detail = http.StatusNotFound, err.Error()
	case errors.Is(err, context.Canceled):
		status, detail = http.StatusServiceUnavailable, stopping
	case isNoSpace(err):
		status, detail = http.StatusInsufficientStorage, noSpace
		p.Log.Error("panel", "method", c.Request().Method, "path", c.Request().URL.Path, "err", err)
	default:
		p.Log.Error("panel", "method", c.Request().Method, "path", c.Request().URL.Path, "err", err)
	}
	if status == http.StatusNotFound && wantsPage(c.Request()) && p.missing(c) == nil {
		return
	}
	problem(c.Response(), status, detail)
}

// wantsPage says whether a person's browser asks for a page, and no script for data.
func wantsPage(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") &&
		!strings.HasPrefix(r.URL.Path, "/api/") && !strings.HasPrefix(r.URL.Path, "/assets/")
}
