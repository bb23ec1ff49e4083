package panel

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/lab"
)

// Errands are what a person may ask of a device between runs, without a plan.
type Errands interface {
	Start(device string, r ErrandRequest, by string) (Errand, error)
	Get(device string) (Errand, error)
	// Trigger begins a film that waits.
	Trigger(device string) (Errand, error)
	// End ends it, and keeps what there is or nothing.
	End(device string, keep bool) (Errand, error)
}

// ErrandRequest is what a device is asked for.
type ErrandRequest struct {
	Do      string  `json:"do" enum:"film,record,qualify,noise" doc:"film: its screen; record: what it asks its network for; qualify: how well its grabber delivers pictures; noise: what its screen does while it stands still"`
	Seconds float64 `json:"seconds,omitempty" minimum:"0" maximum:"3600" doc:"How long: of a film 1 … 600 (10), of a qualification 1 … 300 (30), of a recording at most 1 … 3600 (600); 0 is the usual time"`
	PreRoll float64 `json:"pre_roll_s,omitempty" minimum:"0" maximum:"60" doc:"Of a film: it waits for its trigger, and begins so many seconds before"`
	Name    string  `json:"name,omitempty" maxLength:"100" doc:"Of the result" example:"crash after the second click"`
}

// Errand is how a device does what it was asked for, or how that ended.
type Errand struct {
	Do        string       `json:"do,omitempty" enum:"film,record,qualify,noise"`
	Name      string       `json:"name,omitempty"`
	State     string       `json:"state" enum:"none,waiting,working,keeping,done,failed,stopped" doc:"none: nothing was asked of the device since the appliance started; waiting: for the trigger of a film with pre-roll, or for the device's browser to show the page of a qualification; keeping: the result is being written; stopped: nothing was kept"`
	By        string       `json:"by,omitempty" doc:"Who asked for it: the name of the token" example:"desk"`
	Began     time.Time    `json:"began,omitzero"`
	Ends      *time.Time   `json:"ends,omitempty" doc:"When it ends by itself"`
	Ended     *time.Time   `json:"ended,omitempty"`
	Doing     string       `json:"doing,omitempty" doc:"In words"`
	Error     string       `json:"error,omitempty" doc:"Why it failed"`
	Note      string       `json:"note,omitempty" doc:"What is to be known of the result"`
	Frames    int          `json:"frames,omitempty" doc:"Filmed until now"`
	Requests  int          `json:"requests,omitempty" doc:"Recorded until now"`
	Run       string       `json:"run,omitempty" doc:"The result of film and qualify: the ID of a run without a plan" example:"20261121-091400-film-of-desk"`
	Recording string       `json:"recording,omitempty" doc:"The result of record: its name among the recordings" example:"20261121-091400-desk.wacz"`
	Noise     *ErrandNoise `json:"noise,omitempty" doc:"The result of noise"`
}

// ErrandNoise is what the pictures of a still screen do, and what change is seen for certain.
type ErrandNoise struct {
	lab.ScreenNoise
	Floor    string `json:"floor" doc:"How much the pictures move by themselves" example:"none: pictures of a still screen are equal"`
	Sees     string `json:"sees" doc:"What change is seen for certain" example:"1 pixel by 1 of 255"`
	Screen   string `json:"screen" doc:"What was watched" example:"v4l2:/dev/video0, 1920 × 1080 YUYV at 60/s"`
	Exact    bool   `json:"exact" doc:"Whether there is no noise at all"`
	TooNoisy bool   `json:"too_noisy" doc:"Whether a run on this screen would count nothing"`
}

type (
	ofDevice struct {
		Name string `path:"name" maxLength:"300" doc:"Name of the device" example:"desk"`
	}
	errandInput struct {
		Name string `path:"name" maxLength:"300" doc:"Name of the device" example:"desk"`
		Body ErrandRequest
	}
	endInput struct {
		Name string `path:"name" maxLength:"300" doc:"Name of the device" example:"desk"`
		Keep bool   `query:"keep" doc:"Keep what was filmed or recorded until now"`
	}
	errandBody    struct{ Body Errand }
	startedErrand struct {
		Location string `header:"Location" doc:"Where to ask how it goes"`
		Body     Errand
	}
)

// WithErrands lets people ask things of the devices between runs.
func WithErrands(all Errands) Module { return func(p *Panel) { p.errands(all) } }

// errands registers the routes of what is asked of devices between runs.
func (p *Panel) errands(all Errands) {
	errs := []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict}
	const path = "/api/v1/devices/{name}/errand"
	huma.Register(p.api, huma.Operation{
		OperationID: "start-errand", Method: http.MethodPost, Path: path, Summary: "Film, record or qualify a device now, or watch its noise",
		Description: "Without a plan. A run that comes meanwhile waits; while a run uses the device, or another errand, the answer is 409. A film and a " +
			"qualification become runs without a plan, a recording comes to the others.",
		Tags: []string{tagDevices}, Security: needsToken(),
		Errors: append(errs, http.StatusUnprocessableEntity), DefaultStatus: http.StatusAccepted,
	}, func(ctx context.Context, in *errandInput) (*startedErrand, error) {
		name := deviceName(in.Name)
		e, err := all.Start(name, in.Body, driverOf(ctx, "").Name)
		if err == nil {
			note(ctx, fmt.Sprintf("%s %s", in.Body.Do, clip(name)))
		}
		return &startedErrand{"/api/v1/devices/" + in.Name + "/errand", e}, p.toHTTPError(err)
	})
	huma.Register(p.api, huma.Operation{
		OperationID: "get-errand", Method: http.MethodGet, Path: path, Summary: "How what was asked of a device goes, or how it ended",
		Description: "The newest since the appliance started.", Tags: []string{tagDevices}, Security: needsToken(), Errors: errs[:2],
	}, func(_ context.Context, in *ofDevice) (*errandBody, error) {
		e, err := all.Get(deviceName(in.Name))
		return &errandBody{e}, p.toHTTPError(err)
	})
	huma.Register(p.api, huma.Operation{
		OperationID: "trigger-errand", Method: http.MethodPost, Path: path + "/trigger", Summary: "Begin a film that keeps its pre-roll",
		Tags: []string{tagDevices}, Security: needsToken(), Errors: errs,
	}, func(_ context.Context, in *ofDevice) (*errandBody, error) {
		e, err := all.Trigger(deviceName(in.Name))
		return &errandBody{e}, p.toHTTPError(err)
	})
	huma.Register(p.api, huma.Operation{
		OperationID: "end-errand", Method: http.MethodDelete, Path: path, Summary: "End it",
		Description: "With keep=true what was filmed or recorded until now is the result; without it nothing is kept.",
		Tags:        []string{tagDevices}, Security: needsToken(), Errors: errs, DefaultStatus: http.StatusOK,
	}, func(_ context.Context, in *endInput) (*errandBody, error) {
		e, err := all.End(deviceName(in.Name), in.Keep)
		return &errandBody{e}, p.toHTTPError(err)
	})
}
