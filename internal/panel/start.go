package panel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	Tolerance float64    `json:"tolerance_ms,omitempty" minimum:"0" maximum:"60000" doc:"How late, in ms, the link or the recorder may be in a valid trial, and never more. Without it one frame (16.7), relaxed where the machine cannot keep that" example:"16.7"`
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
	startInput struct {
		Key  string `header:"Idempotency-Key" minLength:"1" maxLength:"128" pattern:"^[!-~]+$" doc:"Of your choice, another one for each run: a request that is made again with its key, because the answer was lost, gets the answer of the first and starts nothing. It is remembered for a day"`
		Body RunRequest
	}
	cancelInput struct {
		ID    string `path:"id" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"Identifier of the run" example:"20261121-091400-demo"`
		Files bool   `query:"files" doc:"Delete the files of a run that has ended"`
	}
	startBody struct {
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
		OperationID: "cancel-run", Method: http.MethodDelete, Path: "/api/v1/runs/{id}", Summary: "Cancel a run that waits or goes on, or delete one that has ended", Tags: []string{tagRuns},
		Description:   "A run that waits is forgotten. One that goes on is stopped and stays as an interrupted one. With files=true one that has ended is deleted with all its files, and so is the recording that it made; nothing brings them back.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(), Errors: []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict},
	}, p.cancel)
}

func (p *Panel) start(ctx context.Context, in *startInput) (*startBody, error) {
	once, err := onceOf(in)
	if err != nil {
		return nil, p.ours(err)
	}
	if once.Key != "" { // before anything is checked: what was accepted then may not be now
		switch id, err := p.Queue.Known(ctx, once); {
		case err == nil:
			return startedAs(id), nil
		case !errors.Is(err, store.ErrNotFound):
			return nil, p.keyed(err)
		}
	}
	accepted, err := p.Runner.Accept(ctx, in.Body)
	if err != nil && ctx.Err() != nil {
		return nil, p.ours(ctx.Err())
	}
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
		id, err := p.add(ctx, job, once)
		if err == nil && id != job.ID { // it came twice at the same time
			return startedAs(id), nil
		}
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrExists) || n > 1000 {
			return nil, p.keyed(err)
		}
		job.ID = nth(base, n)
	}
	p.events.publish(Progress{Run: job.ID, State: store.StateQueued, Of: accepted.planned()})
	p.worker.wake()
	return startedAs(job.ID), nil
}

// startedAs is the answer to a request that became a run, each time it is made.
func startedAs(id string) *startBody {
	address := "/api/v1/runs/" + id
	return &startBody{address, Accepted{id, store.StateQueued, address, address + "/events"}}
}

// onceOf names a request by its key and what it asks for.
func onceOf(in *startInput) (store.Once, error) {
	asked, err := json.Marshal(in.Body)
	if err != nil {
		return store.Once{}, err
	}
	digest := sha256.Sum256(asked)
	return store.Once{Key: in.Key, Request: hex.EncodeToString(digest[:])}, nil
}

func (p *Panel) add(ctx context.Context, job store.Job, once store.Once) (string, error) {
	if once.Key == "" {
		return job.ID, p.Queue.Add(ctx, job)
	}
	return p.Queue.AddOnce(ctx, job, once)
}

// keyed is the answer to an error of the queue.
func (p *Panel) keyed(err error) error {
	if errors.Is(err, store.ErrKeyUsed) {
		return huma.Error422UnprocessableEntity("Idempotency-Key: it came with another request before; a new request needs a new key")
	}
	return p.ours(err)
}

func (p *Panel) cancel(ctx context.Context, in *cancelInput) (*struct{}, error) {
	job, err := p.Queue.Get(ctx, in.ID)
	if errors.Is(err, store.ErrNotFound) && in.Files {
		return nil, p.remove(in.ID)
	}
	if err == nil && in.Files && (job.State == store.StateQueued || job.State == store.StateRunning) {
		return nil, huma.NewError(http.StatusConflict, "the run waits or goes on: cancel it first, without files=true")
	}
	if errors.Is(err, store.ErrNotFound) && p.Store.Has(in.ID) {
		return nil, huma.Error404NotFound("run " + clip(in.ID) + " has ended: files=true deletes it with its files")
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, huma.Error404NotFound("no run " + clip(in.ID) + " waits or goes on")
	}
	if err != nil {
		return nil, p.ours(err)
	}
	// One that has ended may still be in the worker's hands for a moment.
	if job.State == store.StateRunning && p.worker.stop(in.ID) {
		return nil, nil
	}
	if in.Files && p.Store.Has(in.ID) { // one that was cut off is in the queue as well
		if err := p.remove(in.ID); err != nil {
			return nil, err
		}
	}
	gone, err := p.Queue.Forget(ctx, job.ID)
	if err != nil {
		return nil, p.ours(err)
	}
	if !gone { // it has begun since it was asked for
		if p.worker.stop(in.ID) {
			return nil, nil
		}
		return nil, huma.NewError(http.StatusConflict, "the run is about to end; look at it again")
	}
	p.events.publish(Progress{Run: job.ID, State: store.StateInterrupted, Error: "cancelled before it began"})
	return nil, nil
}

// planned is how many trials a request asks for.
func (r RunRequest) planned() int {
	if r.Treatment != nil {
		return 2 * r.Trials
	}
	return r.Trials
}

// runOf shows a job as the run that it will become.
func runOf(j store.Job) *lab.Run {
	r := requestOf(j)
	return &lab.Run{
		ID: j.ID, Name: r.Name, Wall: j.Created, State: j.State, Error: j.Error, Page: r.Page,
		Trials: []*lab.Trial{}, Summary: []lab.Summary{},
	}
}

// requestOf is what was asked for.
func requestOf(j store.Job) (r RunRequest) {
	// The queue holds what we put in; a request of an older version shows as far as it fits.
	_ = json.Unmarshal(j.Request, &r)
	return r
}
