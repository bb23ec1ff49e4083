package panel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"eidetic/internal/box/credentials"
)

// Device is a device that can be measured.
type Device struct {
	Name    string `json:"name" doc:"Name of the device, for a plan" example:"virtual"`
	Kind    string `json:"kind" enum:"virtual,port" doc:"virtual: a browser on the appliance itself; port: the device plugged into a network port"`
	Ready   bool   `json:"ready" doc:"Whether a run could begin now"`
	Problem string `json:"problem,omitempty" doc:"Why it is not ready"`
	Port    string `json:"port,omitempty" doc:"Network port of the appliance" example:"enp2s0"`
	Gateway string `json:"gateway,omitempty" doc:"The appliance's address there" example:"192.168.77.1/24"`
	Address string `json:"address,omitempty" doc:"The device's address, from its lease" example:"192.168.77.100"`
	MAC     string `json:"mac,omitempty" doc:"The device's hardware address" example:"52:54:00:12:34:56"`
	Host    string `json:"host,omitempty" doc:"Host name that the device announces"`
	Screen  string `json:"screen,omitempty" doc:"How it is filmed" example:"VNC at its port 5900"`
	// Browsers are those of a virtual device.
	Browsers []string `json:"browsers,omitempty" doc:"What plans may name as its browser: those that are installed, and those of browsers: in the configuration" example:"[\"chromium\",\"nightly\"]"`
	WiFi     *WiFi    `json:"wifi,omitempty" doc:"How to join, if the port is an access point"`
	// SetUp is that of a device at a port.
	SetUp *SetUp `json:"set_up,omitempty" doc:"What the device has shown since the service started"`
	// Errands are what can be asked of it between runs.
	Errands []string `json:"errands,omitempty" doc:"What can be asked of it between runs, without a plan" example:"[\"film\",\"record\",\"noise\"]"`
	// Parts are those of a device at a port.
	Parts []DevicePart `json:"parts,omitempty" doc:"What its screen is seen by and what gives it input"`
}

// SetUp is how far a device at a port has been set up.
type SetUp struct {
	Opened  *time.Time `json:"opened,omitempty" doc:"When it last opened http://box.test/, where it gets the certificate"`
	Trusted *time.Time `json:"trusted,omitempty" doc:"When it last showed that it trusts the certificate: that page tries it"`
}

// DevicePart is a part of a device at a port.
type DevicePart struct {
	Part    string `json:"part" enum:"screen,controls" doc:"What it is for"`
	Use     string `json:"use" doc:"What it is" example:"ch9329:/dev/serial/by-id/usb-1a86_USB_Serial-if00-port0"`
	Ready   bool   `json:"ready" doc:"Whether nothing is known to be wrong with it"`
	State   string `json:"state,omitempty" doc:"What is known of it: a signal, a connection"`
	Problem string `json:"problem,omitempty" doc:"What is wrong with it, and how to mend it"`
}

// PluggedPart is something plugged into the appliance of which a device can be made.
type PluggedPart struct {
	Kind    string `json:"kind" enum:"grabber,serial port,USB device port,phone" doc:"What it is"`
	Use     string `json:"use" doc:"How commands name it" example:"ch9329:/dev/serial/by-id/usb-1a86_USB_Serial-if00-port0"`
	Name    string `json:"name,omitempty" doc:"What it calls itself" example:"1a86 USB Serial"`
	State   string `json:"state,omitempty" doc:"What is known of it"`
	Ready   bool   `json:"ready" doc:"Whether nothing is known to be wrong with it"`
	Problem string `json:"problem,omitempty" doc:"What is wrong with it, and how to mend it"`
}

// WiFi is what a person needs to join an access point.
type WiFi struct {
	SSID       string `json:"ssid" doc:"Name of the network" example:"eidetic-7k2m"`
	Passphrase string `json:"passphrase" doc:"Passphrase (WPA2); empty for a token that may only look" example:"abcd-efgh-jkmn-pqrs"`
	QR         string `json:"qr" doc:"Text of a QR code with which phones join" example:"WIFI:T:WPA;S:eidetic-7k2m;P:abcd-efgh-jkmn-pqrs;;"`
}

// Archive is an uploaded recording.
type Archive struct {
	Name     string    `json:"name" doc:"Its name, for a plan" example:"shop.wacz"`
	Bytes    int64     `json:"bytes" doc:"Size of the file"`
	Modified time.Time `json:"modified" doc:"When it was uploaded"`
	ETag     string    `json:"etag" doc:"Identifies this version of the file, for If-Match" example:"\"16e360-18b2c40f3ae\""`
	// Warnings and Quality are only in the answer to an upload.
	Warnings []string `json:"warnings,omitempty" doc:"What reading the upload repaired, left out or changed"`
	Quality  *Quality `json:"quality,omitempty" doc:"What a replay of the upload will lack"`
}

// Quality is the assessment of an uploaded recording, as appliance archive verify makes it.
type Quality struct {
	Score    float64          `json:"score" doc:"Share of what a replay needs that is present and complete; 0 with a grave problem"`
	Problems []ArchiveProblem `json:"problems"`
}

// ArchiveProblem is one defect of a recording.
type ArchiveProblem struct {
	Kind  string `json:"kind" doc:"damaged, truncated, main-document, error, undecodable, missing or import" example:"truncated"`
	URL   string `json:"url,omitempty"`
	What  string `json:"what" doc:"For people" example:"the body was cut off after 4096 bytes (length)"`
	Grave bool   `json:"grave" doc:"Whether it makes the recording unfit for a measurement"`
	Gap   bool   `json:"gap,omitempty" doc:"Whether it lacks something that the page shows"`
}

// Archives keeps uploaded recordings. Its errors are shown to the client if they are a [Refusal].
type Archives interface {
	List(ctx context.Context) ([]Archive, error)
	// Put stores a recording, and refuses a file that is not one. It replaces another of that name only
	// if match is that one's ETag, or "*", and if free, which is asked when all of the new one is there, returns nil.
	Put(ctx context.Context, name, match string, content io.Reader, free func() error) (Archive, error)
	Open(name string) (*os.File, error)
	// Contents looks into the recording in a file.
	Contents(ctx context.Context, file string) (ArchiveContents, error)
	Remove(name string) error
	// Rename refuses a name that is taken.
	Rename(name, to string) (Archive, error)
	// Edit makes a changed recording of that in a file. It replaces one of the name into as Put does.
	// logs are the replay logs of the run that the change names.
	Edit(ctx context.Context, file, into, match string, e ArchiveEdit, logs []string, free func() error) (EditedArchive, error)
}

// Settings is the configuration, a text in YAML.
type Settings interface {
	Text() (string, error)
	// Set checks a configuration and has it applied.
	Set(ctx context.Context, text string) error
}

// System is the box that the appliance runs on.
type System interface {
	Update(ctx context.Context, bundle io.Reader) (Update, error)
	Updates() (Update, error)
	// Reset restores the factory state and restarts the box.
	Reset() error
}

// Update is the state of the box's software.
type Update struct {
	Running    string `json:"running" doc:"Version that runs"`
	Installing bool   `json:"installing" doc:"Whether an update was accepted and waits for the restart"`
	Last       string `json:"last,omitempty" doc:"Version of the last update"`
	Error      string `json:"error,omitempty" doc:"Why the last update was not installed"`
	FellBack   bool   `json:"fell_back" doc:"Whether the last update was rolled back because it did not become healthy"`
}

// Refusal is an error in the request; its text is sent to the client.
type Refusal struct {
	Status int // 404, 409, 422 …
	Err    error
}

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns the reason.
func (r *Refusal) Unwrap() error { return r.Err }

const (
	tagDevices  = "devices"
	tagArchives = "archives"
	// MaxSettings bounds a configuration, which a box stores in a small partition.
	MaxSettings = 64 << 10
)

type (
	devicesBody struct {
		Body struct {
			Devices []Device      `json:"devices" doc:"The first is the default"`
			Links   []string      `json:"links" doc:"Names of access networks; a plan may also give parameters"`
			Parts   []PluggedPart `json:"parts" doc:"Grabbers, serial ports, USB device ports and phones that are plugged in"`
			Reaches Reaches       `json:"reaches" enum:"public,pages,private" doc:"Where a page may be that a run of this token records: public: at public addresses; pages: its own host also on this machine and in private networks; private: anywhere, with what it loads"`
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

// hidePassphrases removes what a device needs to join. Whoever may only look need not be able
// to join.
func hidePassphrases(devices []Device) {
	for i := range devices {
		if wifi := devices[i].WiFi; wifi != nil {
			devices[i].WiFi = &WiFi{SSID: wifi.SSID}
		}
	}
}

// deviceFeature has the routes that list devices and lead to their set-up.
type deviceFeature struct {
	*Panel
	Devices func(context.Context) []Device
	Links   []string
	Parts   []func(context.Context) []PluggedPart
}

// WithDevices lists the devices, the names of access networks that a plan can use, and the parts that are plugged in, of
// which devices can be made.
func WithDevices(devices func(context.Context) []Device, links []string, parts ...func(context.Context) []PluggedPart) Module {
	return func(shell *Panel) {
		p := deviceFeature{shell, devices, links, parts}
		p.listDevices(p.api)
		p.codes(p.router, p.api)
	}
}

func (p deviceFeature) listDevices(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "list-devices", Method: http.MethodGet, Path: "/api/v1/devices", Summary: "List devices", Tags: []string{tagDevices},
		Security: needsToken(), Errors: []int{http.StatusUnauthorized},
	}, func(ctx context.Context, _ *noInput) (*devicesBody, error) {
		body := &devicesBody{}
		body.Body.Devices, body.Body.Links = append([]Device{}, p.Devices(ctx)...), append([]string{}, p.Links...)
		body.Body.Reaches = p.reaches(ctx)
		if !identityOf(ctx).Scope.Allows(credentials.Run) {
			hidePassphrases(body.Body.Devices)
		}
		body.Body.Parts = []PluggedPart{}
		for _, list := range p.Parts {
			body.Body.Parts = append(body.Body.Parts, list(ctx)...)
		}
		return body, nil
	})
}

// WithCertificate gives devices the authority that they must trust, in PEM form.
func WithCertificate(pem []byte) Module {
	return func(p *Panel) {
		p.raw(p.router, p.api, &huma.Operation{
			OperationID: "get-certificate", Method: http.MethodGet, Path: "/api/v1/certificate",
			Summary: "The authority that devices must trust", Tags: []string{tagDevices},
			Responses: file("200", "application/x-pem-file", "The certificate, in PEM form"),
		}, func(c echo.Context) error { return c.Blob(http.StatusOK, "application/x-pem-file", pem) })
		p.devices = true
	}
}

// raw registers an operation whose body is not JSON.
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

func (p archiveFeature) archives(e *echo.Echo, api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "list-archives", Method: http.MethodGet, Path: "/api/v1/archives", Summary: "List recordings", Tags: []string{tagArchives},
		Description: "The recordings that were uploaded. A run can also replay the recording that another run made, by that run's ID.",
		Security:    needsToken(), Errors: []int{http.StatusUnauthorized},
	}, func(ctx context.Context, _ *noInput) (*archivesBody, error) {
		all, err := p.Archives.List(ctx)
		if err != nil {
			return nil, p.toHTTPError(err)
		}
		body := &archivesBody{}
		body.Body.Archives = append([]Archive{}, all...)
		return body, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "remove-archive", Method: http.MethodDelete, Path: "/api/v1/archives/{name}", Summary: "Remove a recording",
		Tags:          []string{tagArchives},
		Description:   "One that a waiting run, a bisect or a suite that goes on, or a workflow replays is kept: the answer is 409 and says which.",
		DefaultStatus: http.StatusNoContent, Security: needsToken(),
		Errors: []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict},
	}, p.removeArchive)
	p.recordings(api)
	p.recordingEdits(api)
	name := []*huma.Param{{Name: "name", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
		Description: "Name of the recording", Example: "shop.wacz"}}
	p.raw(e, api, &huma.Operation{
		OperationID: "put-archive", Method: http.MethodPut, Path: "/api/v1/archives/{name}", Summary: "Upload a recording",
		Tags:        []string{tagArchives},
		Description: "A WACZ file, or a HAR (also .har.gz), a WARC (also compressed) or an archive of Web Page Replay (.wprgo), which is imported as by appliance archive import. It is checked before it takes its name; the answer says what is wrong with it, and what an import lost. A recording of that name is replaced only with If-Match.",
		Parameters: append(slices.Clone(name), &huma.Param{Name: "If-Match", In: "header", Schema: &huma.Schema{Type: huma.TypeString},
			Description: "The ETag of the recording to replace, or *"}),
		RequestBody: &huma.RequestBody{Required: true, Content: bytesOf("application/wacz")},
		Responses: map[string]*huma.Response{"412": {Description: "There is another recording of that name"}, "201": {Description: "The recording is stored",
			Content: map[string]*huma.MediaType{"application/json": {Schema: api.OpenAPI().Components.Schemas.Schema(archiveType(), true,
				"Archive")}}}},
	}, func(c echo.Context) error {
		match := c.Request().Header.Get("If-Match")
		name := c.Param("name")
		// The later trials of a bisect or suite, also of one that begins meanwhile, would be of something else.
		free := func() error { return p.free(c.Request().Context(), name, p.heldBy) }
		if match != "" {
			if err := free(); err != nil {
				return err
			}
		}
		a, err := p.Archives.Put(c.Request().Context(), name, match, c.Request().Body, free)
		if err != nil {
			return err
		}
		c.Response().Header().Set("ETag", a.ETag)
		return c.JSON(http.StatusCreated, a)
	})
	p.raw(e, api, &huma.Operation{
		OperationID: "get-archive", Method: http.MethodGet, Path: "/api/v1/archives/{name}", Summary: "A recording's file",
		Tags:       []string{tagArchives},
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
		c.Response().Header().Set("ETag", ETagOf(info))
		c.Response().Header().Set("Content-Security-Policy", filePolicy)
		http.ServeContent(c.Response(), restoreHead(c.Request()), "", info.ModTime(), f)
		return nil
	})
}

// ETagOf identifies a version of a file by its size and its date.
func ETagOf(info fs.FileInfo) string {
	return fmt.Sprintf(`"%x-%x"`, info.Size(), info.ModTime().UnixNano())
}

// WithSettings lets the configuration be read and replaced.
func WithSettings(s Settings) Module { return func(p *Panel) { p.settings(s) } }

func (p *Panel) settings(s Settings) {
	yaml := map[string]*huma.MediaType{"application/yaml": {Schema: &huma.Schema{Type: huma.TypeString}}}
	p.raw(p.router, p.api, &huma.Operation{
		OperationID: "get-config", Method: http.MethodGet, Path: "/api/v1/config", Summary: "The configuration", Tags: []string{tagSystem},
		Responses: map[string]*huma.Response{"200": {Description: "The file, in YAML", Content: yaml}},
	}, func(c echo.Context) error {
		text, err := s.Text()
		if err != nil {
			return err
		}
		return c.Blob(http.StatusOK, "application/yaml", []byte(text))
	})
	p.raw(p.router, p.api, &huma.Operation{
		OperationID: "set-config", Method: http.MethodPut, Path: "/api/v1/config", Summary: "Replace the configuration",
		Tags:        []string{tagSystem},
		Description: "The configuration is checked first; an error names the line. The box stores it and restarts to apply it.",
		Parameters:  interruptParam(),
		RequestBody: &huma.RequestBody{Required: true, Content: yaml},
		Responses:   map[string]*huma.Response{"202": {Description: "The box restarts with it"}, "409": runGoesOn()},
	}, func(c echo.Context) error {
		if err := p.refuseIfRunning(c.Request().Context(), c.QueryParam("interrupt") == "true"); err != nil {
			return err
		}
		text, err := io.ReadAll(io.LimitReader(c.Request().Body, MaxSettings+1))
		if err != nil {
			return echo.NewHTTPError(http.StatusBadRequest, "the body could not be read")
		}
		if len(text) > MaxSettings {
			return echo.NewHTTPError(
				http.StatusRequestEntityTooLarge,
				fmt.Sprintf("the configuration is too large: at most %d bytes", MaxSettings),
			)
		}
		if err := s.Set(c.Request().Context(), string(text)); err != nil {
			return err
		}
		return c.NoContent(http.StatusAccepted)
	})
}

// WithSystem updates and resets the box that the appliance runs on.
func WithSystem(s System) Module { return func(p *Panel) { p.system(s) } }

func (p *Panel) system(s System) {
	huma.Register(p.api, huma.Operation{
		OperationID: "get-update", Method: http.MethodGet, Path: "/api/v1/update",
		Summary: "The running version, and the result of the last update", Tags: []string{tagSystem},
		Security: needsToken(), Errors: []int{http.StatusUnauthorized},
	}, func(context.Context, *noInput) (*updateBody, error) {
		u, err := s.Updates()
		if err != nil {
			return nil, p.toHTTPError(err)
		}
		return &updateBody{u}, nil
	})
	p.raw(p.router, p.api, &huma.Operation{
		OperationID: "update", Method: http.MethodPost, Path: "/api/v1/update", Summary: "Update the box", Tags: []string{tagSystem},
		Description: "The body is a signed bundle. A valid bundle is installed beside the running system, and the box restarts into it; a system that does not become healthy is rolled back.",
		Parameters:  interruptParam(),
		RequestBody: &huma.RequestBody{Required: true, Content: bytesOf("application/octet-stream")},
		Responses: map[string]*huma.Response{"409": runGoesOn(),
			"202": {Description: "The update is being installed",
				Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Ref: "#/components/schemas/Update"}}}}},
	}, func(c echo.Context) error {
		if err := p.refuseIfRunning(c.Request().Context(), c.QueryParam("interrupt") == "true"); err != nil {
			return err
		}
		u, err := s.Update(c.Request().Context(), c.Request().Body)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusAccepted, u)
	})
	huma.Register(p.api, huma.Operation{
		OperationID: "reset", Method: http.MethodPost, Path: "/api/v1/reset", Summary: "Restore the box's factory state",
		Tags:          []string{tagSystem},
		Description:   "Runs, recordings, configuration, token and certificate are deleted, and the box restarts. The body confirms it.",
		DefaultStatus: http.StatusAccepted, Security: needsToken(),
		Errors: []int{http.StatusUnauthorized, http.StatusConflict, http.StatusUnprocessableEntity},
	}, func(ctx context.Context, in *struct {
		Interrupt bool `query:"interrupt" doc:"Restart even if a run is in progress"`
		Body      struct {
			Delete string `json:"delete" enum:"everything" doc:"What is deleted"`
		}
	}) (*struct{}, error) {
		if err := p.refuseIfRunning(ctx, in.Interrupt); err != nil {
			return nil, p.toHTTPError(err)
		}
		return nil, p.toHTTPError(s.Reset())
	})
}

// toHTTPError shows a Refusal to the client, and what is an answer already; any other error becomes an internal error.
func (p *Panel) toHTTPError(err error) error {
	var refused *Refusal
	var said huma.StatusError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return huma.NewError(refused.Status, refused.Error())
	case errors.As(err, &said):
		return said
	}
	return p.internalError(err)
}
