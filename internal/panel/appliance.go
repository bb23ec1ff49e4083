package panel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
)

// Device is something that can be measured.
type Device struct {
	Name    string `json:"name" doc:"What a run calls it" example:"virtual"`
	Kind    string `json:"kind" enum:"virtual,port" doc:"virtual: a browser on the appliance itself; port: what is plugged into a network port"`
	Ready   bool   `json:"ready" doc:"Whether a run could begin now"`
	Problem string `json:"problem,omitempty" doc:"Why it could not"`
	Port    string `json:"port,omitempty" doc:"Network port of the appliance" example:"enp2s0"`
	Gateway string `json:"gateway,omitempty" doc:"The appliance's address there" example:"192.168.77.1/24"`
	Address string `json:"address,omitempty" doc:"The device's address, from its lease" example:"192.168.77.100"`
	MAC     string `json:"mac,omitempty" doc:"The device's hardware address" example:"52:54:00:12:34:56"`
	Host    string `json:"host,omitempty" doc:"What the device calls itself"`
	Screen  string `json:"screen,omitempty" doc:"How it is filmed" example:"VNC at its port 5900"`
	WiFi    *WiFi  `json:"wifi,omitempty" doc:"How to join, where the port is an access point"`
}

// WiFi is what a person needs to join an access point.
type WiFi struct {
	SSID       string `json:"ssid" doc:"Name of the network" example:"eidetic-7k2m"`
	Passphrase string `json:"passphrase" doc:"Passphrase (WPA2)" example:"abcd-efgh-jkmn-pqrs"`
	QR         string `json:"qr" doc:"Text of a QR code with which phones join" example:"WIFI:T:WPA;S:eidetic-7k2m;P:abcd-efgh-jkmn-pqrs;;"`
}

// Archive is a recording that was brought here.
type Archive struct {
	Name     string    `json:"name" doc:"What a run calls it" example:"shop.wacz"`
	Bytes    int64     `json:"bytes" doc:"Size of the file"`
	Modified time.Time `json:"modified" doc:"When it came"`
}

// Archives keeps recordings. Its errors are shown when they are a [Refusal].
type Archives interface {
	List(ctx context.Context) ([]Archive, error)
	// Put takes a recording in, or refuses what is none.
	Put(ctx context.Context, name string, content io.Reader) (Archive, error)
	Open(name string) (*os.File, error)
	Remove(name string) error
}

// Settings is the configuration, a text in YAML.
type Settings interface {
	Text() (string, error)
	// Set checks a configuration and has it taken over.
	Set(ctx context.Context, text string) error
}

// System is the box that the appliance runs on. A service on somebody's own
// machine has none.
type System interface {
	Update(ctx context.Context, bundle io.Reader) (Update, error)
	Updates() (Update, error)
	// Reset makes everything as it was when the box was new, and restarts it.
	Reset() error
}

// Update is the state of the box's software.
type Update struct {
	Running    string `json:"running" doc:"Version that runs"`
	Installing bool   `json:"installing" doc:"Whether an update was taken and waits for the restart"`
	Last       string `json:"last,omitempty" doc:"Version of the last update"`
	Error      string `json:"error,omitempty" doc:"Why the last update was not installed"`
	FellBack   bool   `json:"fell_back" doc:"Whether the last update was given up because it did not become healthy"`
}

// Refusal is an error that is about what was asked, and is shown to the one who asked.
type Refusal struct {
	Status int // 404, 409, 422 …
	Err    error
}

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns what is wrong.
func (r *Refusal) Unwrap() error { return r.Err }

const (
	tagDevices  = "devices"
	tagArchives = "archives"
	// MaxSettings bounds a configuration; a box has no room for more.
	MaxSettings = 64 << 10
)

type (
	devicesBody struct {
		Body struct {
			Devices []Device `json:"devices" doc:"The first is the one that is meant when a run names none"`
			Links   []string `json:"links" doc:"Names of access networks; parameters are possible as well"`
		}
	}
	archivesBody struct {
		Body struct {
			Archives []Archive `json:"archives"`
		}
	}
	updateBody struct{ Body Update }
	nameInput  struct {
		Name string `path:"name" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"Name of the recording" example:"shop.wacz"`
	}
)

// appliance registers what there is besides runs.
func (p *Panel) appliance(e *echo.Echo, api huma.API) {
	if p.Devices != nil {
		huma.Register(api, huma.Operation{
			OperationID: "list-devices", Method: http.MethodGet, Path: "/api/v1/devices", Summary: "What can be measured", Tags: []string{tagDevices},
			Security: needsToken(), Errors: []int{http.StatusUnauthorized},
		}, func(ctx context.Context, _ *noInput) (*devicesBody, error) {
			body := &devicesBody{}
			body.Body.Devices, body.Body.Links = append([]Device{}, p.Devices(ctx)...), append([]string{}, p.Links...)
			return body, nil
		})
	}
	if p.Archives != nil {
		p.archives(e, api)
	}
	if p.Certificate != nil {
		p.raw(e, api, &huma.Operation{
			OperationID: "get-certificate", Method: http.MethodGet, Path: "/api/v1/certificate", Summary: "The authority that devices must trust", Tags: []string{tagDevices},
			Responses: file("200", "application/x-pem-file", "The certificate, in PEM form"),
		}, func(c echo.Context) error { return c.Blob(http.StatusOK, "application/x-pem-file", p.Certificate) })
	}
	if p.Settings != nil {
		p.settings(e, api)
	}
	if p.System != nil {
		p.system(e, api)
	}
}

// raw registers an operation whose body is no JSON.
func (p *Panel) raw(e *echo.Echo, api huma.API, o *huma.Operation, h echo.HandlerFunc) {
	o.Security = needsToken()
	o.Responses["default"] = &huma.Response{Description: "Error", Content: map[string]*huma.MediaType{
		"application/problem+json": {Schema: &huma.Schema{Ref: "#/components/schemas/ErrorModel"}},
	}}
	api.OpenAPI().AddOperation(o)
	e.Add(o.Method, strings.NewReplacer("{", ":", "}", "").Replace(o.Path), h)
}

func file(status, kind, what string) map[string]*huma.Response {
	return map[string]*huma.Response{status: {Description: what, Content: bytesOf(kind)}}
}

func bytesOf(kind string) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{kind: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
}

func (p *Panel) archives(e *echo.Echo, api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "list-archives", Method: http.MethodGet, Path: "/api/v1/archives", Summary: "Recordings to replay", Tags: []string{tagArchives},
		Description: "Those that were brought here. A run can also replay the recording that another run made, by that run's ID.",
		Security:    needsToken(), Errors: []int{http.StatusUnauthorized},
	}, func(ctx context.Context, _ *noInput) (*archivesBody, error) {
		all, err := p.Archives.List(ctx)
		if err != nil {
			return nil, p.shown(err)
		}
		body := &archivesBody{}
		body.Body.Archives = append([]Archive{}, all...)
		return body, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "remove-archive", Method: http.MethodDelete, Path: "/api/v1/archives/{name}", Summary: "Remove a recording", Tags: []string{tagArchives},
		DefaultStatus: http.StatusNoContent, Security: needsToken(), Errors: []int{http.StatusUnauthorized, http.StatusNotFound},
	}, func(_ context.Context, in *nameInput) (*struct{}, error) {
		return nil, p.shown(p.Archives.Remove(in.Name))
	})
	name := []*huma.Param{{Name: "name", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}, Description: "Name of the recording", Example: "shop.wacz"}}
	p.raw(e, api, &huma.Operation{
		OperationID: "put-archive", Method: http.MethodPut, Path: "/api/v1/archives/{name}", Summary: "Bring a recording", Tags: []string{tagArchives},
		Description: "A WACZ file. It is checked before it takes its name.", Parameters: name,
		RequestBody: &huma.RequestBody{Required: true, Content: bytesOf("application/wacz")},
		Responses:   map[string]*huma.Response{"201": {Description: "It is here", Content: map[string]*huma.MediaType{"application/json": {Schema: api.OpenAPI().Components.Schemas.Schema(archiveType(), true, "Archive")}}}},
	}, func(c echo.Context) error {
		a, err := p.Archives.Put(c.Request().Context(), c.Param("name"), c.Request().Body)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusCreated, a)
	})
	p.raw(e, api, &huma.Operation{
		OperationID: "get-archive", Method: http.MethodGet, Path: "/api/v1/archives/{name}", Summary: "A recording's file", Tags: []string{tagArchives},
		Parameters: name, Responses: file("200", "application/wacz", "The file"),
	}, func(c echo.Context) error {
		f, err := p.Archives.Open(c.Param("name"))
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		c.Response().Header().Set("Content-Type", "application/wacz")
		c.Response().Header().Set("Content-Security-Policy", filePolicy)
		http.ServeContent(c.Response(), asCame(c.Request()), "", info.ModTime(), f)
		return nil
	})
}

func (p *Panel) settings(e *echo.Echo, api huma.API) {
	yaml := map[string]*huma.MediaType{"application/yaml": {Schema: &huma.Schema{Type: huma.TypeString}}}
	p.raw(e, api, &huma.Operation{
		OperationID: "get-config", Method: http.MethodGet, Path: "/api/v1/config", Summary: "The configuration", Tags: []string{tagSystem},
		Responses: map[string]*huma.Response{"200": {Description: "The file, in YAML", Content: yaml}},
	}, func(c echo.Context) error {
		text, err := p.Settings.Text()
		if err != nil {
			return err
		}
		return c.Blob(http.StatusOK, "application/yaml", []byte(text))
	})
	p.raw(e, api, &huma.Operation{
		OperationID: "set-config", Method: http.MethodPut, Path: "/api/v1/config", Summary: "Replace the configuration", Tags: []string{tagSystem},
		Description: "It is checked first; what is wrong is said with its line. The box keeps it, and restarts to take it over.",
		Parameters:  interruptParam(),
		RequestBody: &huma.RequestBody{Required: true, Content: yaml},
		Responses:   map[string]*huma.Response{"202": {Description: "The box takes it over"}, "409": runGoesOn()},
	}, func(c echo.Context) error {
		if err := p.idle(c.Request().Context(), c.QueryParam("interrupt") == "true"); err != nil {
			return err
		}
		text, err := io.ReadAll(io.LimitReader(c.Request().Body, MaxSettings+1))
		if err != nil {
			return echo.NewHTTPError(http.StatusBadRequest, "the body could not be read")
		}
		if len(text) > MaxSettings {
			return echo.NewHTTPError(http.StatusRequestEntityTooLarge, fmt.Sprintf("that is too much for a configuration: at most %d bytes", MaxSettings))
		}
		if err := p.Settings.Set(c.Request().Context(), string(text)); err != nil {
			return err
		}
		return c.NoContent(http.StatusAccepted)
	})
}

func (p *Panel) system(e *echo.Echo, api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "get-update", Method: http.MethodGet, Path: "/api/v1/update", Summary: "Which software runs, and what became of the last update", Tags: []string{tagSystem},
		Security: needsToken(), Errors: []int{http.StatusUnauthorized},
	}, func(context.Context, *noInput) (*updateBody, error) {
		u, err := p.System.Updates()
		if err != nil {
			return nil, p.shown(err)
		}
		return &updateBody{u}, nil
	})
	p.raw(e, api, &huma.Operation{
		OperationID: "update", Method: http.MethodPost, Path: "/api/v1/update", Summary: "Update the box", Tags: []string{tagSystem},
		Description: "The body is a signed bundle. When all of it is good it is installed beside the running system, and the box restarts into it; one that does not become healthy is given up by itself.",
		Parameters:  interruptParam(),
		RequestBody: &huma.RequestBody{Required: true, Content: bytesOf("application/octet-stream")},
		Responses:   map[string]*huma.Response{"409": runGoesOn(), "202": {Description: "It is being installed", Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Ref: "#/components/schemas/Update"}}}}},
	}, func(c echo.Context) error {
		if err := p.idle(c.Request().Context(), c.QueryParam("interrupt") == "true"); err != nil {
			return err
		}
		u, err := p.System.Update(c.Request().Context(), c.Request().Body)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusAccepted, u)
	})
	huma.Register(api, huma.Operation{
		OperationID: "reset", Method: http.MethodPost, Path: "/api/v1/reset", Summary: "Make the box as it was when it was new", Tags: []string{tagSystem},
		Description:   "Runs, recordings, configuration, token and certificate are deleted, and the box restarts. The body says that it is meant.",
		DefaultStatus: http.StatusAccepted, Security: needsToken(), Errors: []int{http.StatusUnauthorized, http.StatusConflict, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, in *struct {
		Interrupt bool `query:"interrupt" doc:"Do it although a run goes on"`
		Body      struct {
			Delete string `json:"delete" enum:"everything" doc:"What is deleted"`
		}
	}) (*struct{}, error) {
		if err := p.idle(ctx, in.Interrupt); err != nil {
			return nil, p.shown(err)
		}
		return nil, p.shown(p.System.Reset())
	})
}

// shown makes an error an answer: a Refusal is shown, anything else is ours.
func (p *Panel) shown(err error) error {
	var refused *Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return huma.NewError(refused.Status, refused.Error())
	}
	return p.ours(err)
}
