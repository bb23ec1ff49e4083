package panel

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/lab"
	"eidetic/internal/store"
)

// RunRequest asks for a run.
type RunRequest struct {
	Name    string `json:"name,omitempty" maxLength:"100" doc:"What you call it" example:"checkout page"`
	Device  string `json:"device,omitempty" maxLength:"100" doc:"Name of the device; without it the first of the list. Runs of one device wait for each other" example:"virtual"`
	Page    string `json:"page" format:"uri" minLength:"1" maxLength:"8192" doc:"URL under test" example:"https://www.shop.example/"`
	Archive string `json:"archive,omitempty" maxLength:"255" doc:"Recording to replay: its file name, or the ID of a run that made one. Without it the page is recorded first" example:"shop.wacz"`
	Link    string `json:"link,omitempty" maxLength:"1000" default:"native" doc:"Access network: the name of a profile, or parameters" example:"rtt=28ms,down=5mbit,up=1mbit"`
	Browser string `json:"browser,omitempty" enum:"chromium" doc:"Browser of a virtual device"`
	Trials  int    `json:"trials,omitempty" minimum:"1" maximum:"1000" default:"10" doc:"How many trials, of each arm"`
	Timing  string `json:"timing,omitempty" maxLength:"40" default:"recorded" doc:"When a replay answers: recorded, none, or fixed:DURATION" example:"fixed:20ms"`
	// Times are in seconds, as people write them.
	Still     float64    `json:"still_s,omitempty" minimum:"0.2" maximum:"60" default:"1.5" doc:"A page has loaded when screen and network have been still for so many seconds"`
	Limit     float64    `json:"limit_s,omitempty" minimum:"1" maximum:"3600" default:"60" doc:"A load that takes longer is ended, and invalid"`
	Seed      uint64     `json:"seed,omitempty" default:"1" doc:"Of everything that is drawn by lot"`
	Treatment *Treatment `json:"treatment,omitempty" doc:"Compares: its trials take turns with those of the control, which is the request itself"`
}

// Treatment is what differs in the second arm of a comparison; what is left
// out is as in the control.
type Treatment struct {
	Page    string `json:"page,omitempty" format:"uri" maxLength:"8192" doc:"URL under test"`
	Archive string `json:"archive,omitempty" maxLength:"255" doc:"Recording to replay"`
	Link    string `json:"link,omitempty" maxLength:"1000" doc:"Access network"`
}

// Runner carries out runs.
type Runner interface {
	// Accept fills in what a request leaves to the appliance, and says what is
	// wrong with it; the error is shown to the one who asked.
	Accept(ctx context.Context, r RunRequest) (RunRequest, error)
	// Run carries out a request as the run with the ID: it creates the run's
	// folder in the store, fills it, and tells of its progress. It returns
	// when the run has ended, soon after the context does. An error is for a run
	// that left no folder behind; one that did says in its run.json how it ended.
	Run(ctx context.Context, id string, r RunRequest, progress func(Progress)) error
}

func progressType() reflect.Type { return reflect.TypeFor[Progress]() }

func archiveType() reflect.Type { return reflect.TypeFor[Archive]() }

type (
	startInput struct{ Body RunRequest }
	startBody  struct {
		Location string `header:"Location" doc:"Address of the run"`
		Body     Accepted
	}
)

// Accepted is the answer to a request for a run.
type Accepted struct {
	ID     string `json:"id" doc:"Identifier of the run"`
	State  string `json:"state" enum:"queued"`
	Run    string `json:"run" doc:"Address of the run"`
	Events string `json:"events" doc:"Address of its progress, as server-sent events"`
}

func (p *Panel) starts(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "start-run", Method: http.MethodPost, Path: "/api/v1/runs", Summary: "Ask for a run", Tags: []string{tagRuns},
		Description:   "The run waits in the queue of its device, which survives a restart of the appliance.",
		DefaultStatus: http.StatusAccepted, Security: needsToken(), Errors: []int{http.StatusUnauthorized, http.StatusUnprocessableEntity},
	}, p.start)
	huma.Register(api, huma.Operation{
		OperationID: "cancel-run", Method: http.MethodDelete, Path: "/api/v1/runs/{id}", Summary: "Cancel a run that waits or goes on", Tags: []string{tagRuns},
		Description:   "A run that waits is forgotten. One that goes on is stopped and stays as an interrupted one. The files of a run are never deleted.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(), Errors: []int{http.StatusUnauthorized, http.StatusNotFound},
	}, p.cancel)
}

func (p *Panel) start(ctx context.Context, in *startInput) (*startBody, error) {
	accepted, err := p.Runner.Accept(ctx, in.Body)
	if err != nil {
		return nil, huma.Error422UnprocessableEntity(err.Error())
	}
	request, err := json.Marshal(accepted)
	if err != nil {
		return nil, p.ours(err)
	}
	now := p.Now()
	job := store.Job{ID: p.Store.FreeID(now, in.Body.Name), Device: accepted.Device, Created: now, Request: request}
	base := job.ID
	for n := 2; ; n++ {
		err := p.Queue.Add(ctx, job)
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrExists) || n > 1000 {
			return nil, p.ours(err)
		}
		job.ID = nth(base, n)
	}
	p.events.publish(Progress{Run: job.ID, State: store.StateQueued, Of: in.Body.Trials})
	p.worker.wake()
	address := "/api/v1/runs/" + job.ID
	return &startBody{address, Accepted{job.ID, store.StateQueued, address, address + "/events"}}, nil
}

func (p *Panel) cancel(ctx context.Context, in *idInput) (*struct{}, error) {
	job, err := p.Queue.Get(ctx, in.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, huma.Error404NotFound("no run " + clip(in.ID) + " waits or goes on")
	}
	if err != nil {
		return nil, p.ours(err)
	}
	if p.worker.stop(in.ID) {
		return nil, nil
	}
	if err := p.Queue.Finish(ctx, job.ID, ""); err != nil {
		return nil, p.ours(err)
	}
	p.events.publish(Progress{Run: job.ID, State: store.StateInterrupted, Error: "cancelled before it began"})
	return nil, nil
}

// waiting lists the jobs that are no folders yet.
func (p *Panel) waiting(ctx context.Context) ([]store.Entry, error) {
	jobs, err := p.Queue.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	var out []store.Entry
	for _, j := range jobs {
		// One that was cut off may be a folder on another page of the list.
		if !p.Store.Has(j.ID) {
			r := runOf(j)
			out = append(out, store.Entry{ID: r.ID, Name: r.Name, Wall: r.Wall, State: r.State, Error: r.Error, Page: r.Page, Summary: r.Summary})
		}
	}
	return out, nil
}

// runOf shows a job as the run that it will become.
func runOf(j store.Job) *lab.Run {
	var r RunRequest
	// The queue holds what we put in; a request of an older version shows as far as it fits.
	_ = json.Unmarshal(j.Request, &r)
	return &lab.Run{
		ID: j.ID, Name: r.Name, Wall: j.Created, State: j.State, Error: j.Error, Page: r.Page,
		Trials: []*lab.Trial{}, Summary: []lab.Summary{},
	}
}
