package panel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"eidetic/internal/lab"
)

// Seats let people see the devices' screens and, one at a time, give a device input between runs.
type Seats interface {
	Screen(ctx context.Context, device string) (ScreenPicture, error)
	// View has the holder of a token begin to look at the screen; the caller closes it.
	View(device, who string) (View, error)
	// Drive takes or keeps the turn of giving input; Release gives it up.
	Drive(device string, who Driver) (Turn, error)
	Release(device string, who Driver) error
	Input(ctx context.Context, device string, who Driver, steps string) ([]lab.Event, error)
}

// ScreenPicture is what a device's screen shows now.
type ScreenPicture struct {
	PNG []byte
	Run bool // a run uses the device
}

// Driver is who gives input: a person may have several windows open.
type Driver struct{ Name, Window string }

// Turn is the right to give a device input.
type Turn struct {
	Driver  string  `json:"driver" doc:"Who gives input: the name of the token" example:"desk"`
	Seconds float64 `json:"seconds" doc:"How long the turn lasts without another input"`
}

// Input is what a device is to do.
type Input struct {
	Steps  string `json:"steps" minLength:"1" maxLength:"20000" doc:"Steps in the one-line form of appliance control" example:"click 50%,40%; type \"table\"; key Enter"`
	Window string `json:"window,omitempty" maxLength:"64" doc:"Which window of yours this is, as in the request for the turn"`
}

type (
	driverInput struct {
		Name   string `path:"name" maxLength:"300" doc:"Name of the device" example:"desk"`
		Window string `query:"window" maxLength:"64" doc:"Which window of yours this is: two with one token take turns"`
	}
	turnBody  struct{ Body Turn }
	inputBody struct {
		Name string `path:"name" maxLength:"300" doc:"Name of the device" example:"desk"`
		Body Input
	}
	eventsBody struct {
		Body struct {
			Events []lab.Event `json:"events" doc:"What the device was given, each with the interval in which it can have got it, in ns of the appliance's clock"`
		}
	}
)

// deviceName is the name in a path, which clients escape.
func deviceName(escaped string) string {
	if name, err := url.PathUnescape(escaped); err == nil {
		return name
	}
	return escaped
}

func driverOf(ctx context.Context, window string) Driver {
	name := identityOf(ctx).Name
	if name == "" {
		name = "a person at this machine"
	}
	return Driver{name, window}
}

// WithSeats lets people see and drive the devices.
func WithSeats(s Seats) Module { return func(p *Panel) { p.seats(s) } }

// seats registers the routes of screens and their drivers.
func (p *Panel) seats(s Seats) {
	errs := []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict}
	p.views(s)
	p.raw(p.router, p.api, &huma.Operation{
		OperationID: "get-screen", Method: http.MethodGet, Path: "/api/v1/devices/{name}/screen", Summary: "What a device's screen shows now",
		Description: "A lossless picture. During a run it is of the run's own film, a second old at most while somebody looks, and the header " +
			"Eidetic-Run is true; nobody can give input then. Ask with If-None-Match: a screen that has not changed is 304.",
		Tags:       []string{tagDevices},
		Parameters: []*huma.Param{{Name: "name", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}}},
		Responses:  file("200", "image/png", "The picture"),
	}, func(c echo.Context) error {
		shown, err := s.Screen(c.Request().Context(), deviceName(c.Param("name")))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(shown.PNG)
		h := c.Response().Header()
		h.Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
		if shown.Run {
			h.Set("Eidetic-Run", "true")
		}
		if c.Request().Header.Get("If-None-Match") == h.Get("ETag") {
			return c.NoContent(http.StatusNotModified)
		}
		return c.Blob(http.StatusOK, "image/png", shown.PNG)
	})
	huma.Register(p.api, huma.Operation{
		OperationID: "drive-device", Method: http.MethodPut, Path: "/api/v1/devices/{name}/driver", Summary: "Take the controls of a device",
		Description: "One at a time has them, until a minute has passed without input, or they are given back. During a run nobody has.",
		Tags:        []string{tagDevices}, Security: needsToken(), Errors: errs,
	}, func(ctx context.Context, in *driverInput) (*turnBody, error) {
		t, err := s.Drive(deviceName(in.Name), driverOf(ctx, in.Window))
		return &turnBody{t}, p.toHTTPError(err)
	})
	huma.Register(p.api, huma.Operation{
		OperationID: "release-device", Method: http.MethodDelete, Path: "/api/v1/devices/{name}/driver", Summary: "Give the controls back",
		Tags: []string{tagDevices}, Security: needsToken(), Errors: errs, DefaultStatus: http.StatusNoContent,
	}, func(ctx context.Context, in *driverInput) (*struct{}, error) {
		return nil, p.toHTTPError(s.Release(deviceName(in.Name), driverOf(ctx, in.Window)))
	})
	huma.Register(p.api, huma.Operation{
		OperationID: "give-input", Method: http.MethodPost, Path: "/api/v1/devices/{name}/input", Summary: "Give a device input",
		Tags: []string{tagDevices}, Security: needsToken(), Errors: append(errs, http.StatusUnprocessableEntity),
	}, func(ctx context.Context, in *inputBody) (*eventsBody, error) {
		events, err := s.Input(ctx, deviceName(in.Name), driverOf(ctx, in.Body.Window), in.Body.Steps)
		body := &eventsBody{}
		body.Body.Events = append([]lab.Event{}, events...)
		return body, p.toHTTPError(err)
	})
}
