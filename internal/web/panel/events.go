package panel

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Progress is a progress report of a run.
type Progress = runqueue.Progress

// heartbeat is how often an idle stream sends a comment, so that proxies keep it open.
const heartbeat = 15 * time.Second

// waitsPeriod is how often a stream looks what its run waits for.
const waitsPeriod = 5 * time.Second

// streams registers the streams of progress. They are ordinary handlers, because heartbeats
// are comments; their OpenAPI description is written separately.
func (p *Panel) streams(e *echo.Echo, api huma.API) {
	e.GET("/api/v1/events", func(c echo.Context) error { return p.stream(c, "") })
	e.GET("/api/v1/runs/:id/events", func(c echo.Context) error { return p.stream(c, c.Param("id")) })
	schema := api.OpenAPI().Components.Schemas.Schema(progressType(), true, "Progress")
	answer := map[string]*huma.Response{
		"200": {Description: "Events of the type progress, whose data is a Progress",
			Content: map[string]*huma.MediaType{"text/event-stream": {Schema: schema}}},
		"default": {
			Description: "Error",
			Content: map[string]*huma.MediaType{
				"application/problem+json": {Schema: &huma.Schema{Ref: "#/components/schemas/ErrorModel"}},
			},
		},
	}
	api.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "stream-events", Method: http.MethodGet, Path: "/api/v1/events", Summary: "Progress of all runs", Tags: []string{tagRuns},
		Description: "Server-sent events. The stream begins with the latest progress of each run that has not ended, and stays open. With the ID of the last event in Last-Event-ID it begins with the ends of runs since then, too; an event of the type reset says that some may be missing, and the list must be read again.",
		Security:    needsToken(), Responses: answer,
		Parameters: []*huma.Param{{Name: "Last-Event-ID", In: "header", Schema: &huma.Schema{Type: huma.TypeString},
			Description: "The ID of the last event that was received"}},
	})
	api.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "stream-run-events", Method: http.MethodGet, Path: "/api/v1/runs/{id}/events", Summary: "Progress of a run",
		Tags:        []string{tagRuns},
		Description: "Server-sent events. The stream ends after the run's last event; for a run that has ended it holds that event only. While the run is queued, doing says what it waits for, and an event comes when that changes.",
		Security:    needsToken(), Responses: answer,
		Parameters: []*huma.Param{{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
			Description: "Identifier of the run"}},
	})
}

// planned is the number of trials that a run's plan asks for.
func (p *Panel) planned(ctx context.Context, run *lab.Run) int {
	if job, err := p.queue.Get(ctx, run.ID); err == nil {
		return job.Plan.Total()
	}
	if n := run.Plan.Total(); n >= 1 && n <= store.MaxTrials {
		return n
	}
	return len(run.Trials)
}

func (p *Panel) stream(c echo.Context, run string) error {
	ctx, w := c.Request().Context(), c.Response()
	// Subscribe before reading the run's state, so that an end in between is not missed.
	last := c.Request().Header.Get("Last-Event-ID")
	l, complete := p.queue.Events().ListenAfter(run, last)
	defer l.Close()
	var now *Progress // of a stream of one run: how it is, as the client knows it
	if run != "" {
		done, err := p.read(ctx, run)
		if err != nil {
			return err
		}
		got, err := p.get(ctx, &idInput{ID: run})
		done() // the stream goes on without it
		if err != nil {
			return err
		}
		now = &Progress{Run: run, State: got.Body.State, Of: p.planned(ctx, got.Body), Error: got.Body.Error}
		if now.State == store.StateQueued {
			now.Doing = got.Body.Waits
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if isHead(c.Request()) {
		return nil
	}
	if last != "" && !complete {
		if _, err := fmt.Fprint(w, "event: reset\ndata: {}\n\n"); err != nil {
			return nil
		}
	}
	send := func(s Progress, place string) error {
		b, err := json.Marshal(forReader(ctx, s))
		if err != nil {
			return err
		}
		if place != "" {
			place = "id: " + place + "\n"
		}
		_, err = fmt.Fprintf(w, "%sevent: progress\ndata: %s\n\n", place, b)
		w.Flush()
		return err
	}
	if now != nil {
		if err := send(*now, ""); err != nil || now.Terminal() {
			return nil // the client has disconnected, or the run has ended
		}
	}
	w.Flush()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	var look <-chan time.Time
	if now != nil {
		ticker := time.NewTicker(waitsPeriod)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
			if !p.isStill(ctx) { // the session was closed, or the token revoked
				return nil
			}
			if _, err := fmt.Fprint(w, ": alive\n\n"); err != nil {
				return nil
			}
			w.Flush()
		case <-look: // what a run waits for changes without news of the run
			if now.State != store.StateQueued {
				continue
			}
			waits, err := p.waits(ctx, now.State, run)
			if err != nil || waits == now.Doing || !p.isStill(ctx) {
				continue
			}
			now.Doing = waits
			if err := send(*now, ""); err != nil {
				return nil
			}
		case <-l.Wake():
			if !p.isStill(ctx) {
				return nil
			}
			all := l.Take()
			for i, s := range all {
				if now != nil && s.State == store.StateQueued {
					s.Doing = now.Doing
				}
				place := "" // only with the last may a reader say that it has all of them
				if i == len(all)-1 {
					place = l.Place()
				}
				if err := send(s, place); err != nil || now != nil && s.Terminal() {
					return nil
				}
				if now != nil {
					now.State = s.State
				}
			}
		}
	}
}
