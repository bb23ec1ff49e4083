package panel

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"eidetic/internal/lab"
	"eidetic/internal/store"
)

// Progress is news of a run.
type Progress struct {
	Run   string `json:"run" doc:"Identifier of the run"`
	State string `json:"state" enum:"queued,running,done,failed,interrupted"`
	Trial int    `json:"trial,omitempty" doc:"The trial that is going on, from 1"`
	Of    int    `json:"of,omitempty" doc:"How many trials there will be"`
	Doing string `json:"doing,omitempty" doc:"What is being done, in words"`
	Error string `json:"error,omitempty" doc:"Why it failed"`
}

// ended says whether nothing more will come of the run.
func (p Progress) ended() bool { return p.State != "running" && p.State != "queued" }

// heartbeat is how often a silent stream shows that it lives, so that proxies keep it.
const heartbeat = 15 * time.Second

// hub passes news to all listeners. A listener gets the newest news of each
// run; those it was too slow for are replaced by newer ones of the same run.
type hub struct {
	mu        sync.Mutex
	latest    map[string]Progress // of the runs that go on
	listeners map[*listener]struct{}
}

type listener struct {
	run     string // "" for all
	pending map[string]Progress
	order   []string
	wake    chan struct{} // capacity 1
}

func newHub() *hub {
	return &hub{latest: map[string]Progress{}, listeners: map[*listener]struct{}{}}
}

func (h *hub) publish(s Progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.ended() {
		delete(h.latest, s.Run)
	} else {
		h.latest[s.Run] = s
	}
	for l := range h.listeners {
		l.offer(s)
	}
}

func (l *listener) offer(s Progress) {
	if l.run != "" && l.run != s.Run {
		return
	}
	if _, ok := l.pending[s.Run]; !ok {
		l.order = append(l.order, s.Run)
	}
	l.pending[s.Run] = s
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// listen begins with the newest news of the runs that go on.
func (h *hub) listen(run string) *listener {
	l := &listener{run: run, pending: map[string]Progress{}, wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners[l] = struct{}{}
	for _, s := range h.latest {
		l.offer(s)
	}
	return l
}

func (h *hub) leave(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
}

// take returns what is pending, the oldest run first.
func (h *hub) take(l *listener) []Progress {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []Progress
	for _, run := range l.order {
		out = append(out, l.pending[run])
	}
	l.order, l.pending = nil, map[string]Progress{}
	return out
}

// streams registers the streams of progress. They are written by hand, since
// they need comments as heartbeats, and described to OpenAPI beside.
func (p *Panel) streams(e *echo.Echo, api huma.API) {
	e.GET("/api/v1/events", func(c echo.Context) error { return p.stream(c, "") })
	e.GET("/api/v1/runs/:id/events", func(c echo.Context) error { return p.stream(c, c.Param("id")) })
	schema := api.OpenAPI().Components.Schemas.Schema(progressType(), true, "Progress")
	answer := map[string]*huma.Response{
		"200":     {Description: "Events of the type progress, whose data is a Progress", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: schema}}},
		"default": {Description: "Error", Content: map[string]*huma.MediaType{"application/problem+json": {Schema: &huma.Schema{Ref: "#/components/schemas/ErrorModel"}}}},
	}
	api.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "stream-events", Method: http.MethodGet, Path: "/api/v1/events", Summary: "Progress of all runs", Tags: []string{tagRuns},
		Description: "Server-sent events. The stream begins with the newest news of each run that goes on and stays open.", Security: needsToken(), Responses: answer,
	})
	api.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "stream-run-events", Method: http.MethodGet, Path: "/api/v1/runs/{id}/events", Summary: "Progress of a run", Tags: []string{tagRuns},
		Description: "Server-sent events. The stream ends after the run's last event; for a run that has ended it holds that event only.", Security: needsToken(), Responses: answer,
		Parameters: []*huma.Param{{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}, Description: "Identifier of the run"}},
	})
}

// planned is how many trials a run is to have.
func (p *Panel) planned(ctx context.Context, run *lab.Run) int {
	if p.Queue != nil {
		if job, err := p.Queue.Get(ctx, run.ID); err == nil {
			return job.Plan.Total()
		}
	}
	if n := run.Plan.Total(); n >= 1 && n <= store.MaxTrials {
		return n
	}
	return len(run.Trials)
}

func (p *Panel) stream(c echo.Context, run string) error {
	ctx, w := c.Request().Context(), c.Response()
	// Listening begins before the run's state is read, so that an end in between is not missed.
	l := p.events.listen(run)
	defer p.events.leave(l)
	var first *Progress
	if run != "" {
		got, err := p.get(ctx, &idInput{ID: run})
		if err != nil {
			return err
		}
		first = &Progress{Run: run, State: got.Body.State, Of: p.planned(ctx, got.Body), Error: got.Body.Error}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if isHead(c.Request()) {
		return nil
	}
	send := func(s Progress) error {
		b, err := json.Marshal(s)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "event: progress\ndata: %s\n\n", b)
		w.Flush()
		return err
	}
	if first != nil {
		if err := send(*first); err != nil || first.ended() {
			return nil // gone, or over
		}
	}
	w.Flush()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
			if _, err := fmt.Fprint(w, ": alive\n\n"); err != nil {
				return nil
			}
			w.Flush()
		case <-l.wake:
			for _, s := range p.events.take(l) {
				if err := send(s); err != nil || run != "" && s.ended() {
					return nil
				}
			}
		}
	}
}
