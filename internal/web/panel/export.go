package panel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"path"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/keep/store"
	"eidetic/internal/tell/export"
)

type (
	exportInput struct {
		ID      string `path:"id" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"Identifier of the run" example:"20261122-091400-demo"`
		Format  string `query:"format" required:"true" maxLength:"40" doc:"Name of the format" example:"junit"`
		Report  string `query:"report" maxLength:"2000" doc:"Address of the run's report, for formats with a link to it"`
		Trial   int    `query:"trial" minimum:"0" maximum:"100000" doc:"Of the formats trace, har, spans and memory: this trial alone; without it, or 0, all"`
		Picture string `query:"picture" maxLength:"2000" doc:"Address of the picture of both arms, for formats that show it"`
	}
	exportBody struct {
		Type   string `header:"Content-Type"`
		Saved  string `header:"Content-Disposition"`
		Policy string `header:"Content-Security-Policy"`
		Body   []byte
	}
)

func (p *Panel) exports(api huma.API) {
	text := ""
	names := []any{}
	for _, f := range export.Formats() {
		text += "\n- `" + f.Name + "`: " + f.Says
		names = append(names, f.Name)
	}
	huma.Register(api, huma.Operation{
		OperationID: "export-run", Method: http.MethodGet, Path: "/api/v1/runs/{id}/export",
		Summary: "A run in a format of other programs", Tags: []string{tagRuns},
		Description: "The formats:" + text,
		Security:    needsToken(), Errors: []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict,
			http.StatusUnprocessableEntity},
		// A []byte would be described as a text in JSON, in Base64.
		Responses: map[string]*huma.Response{"200": {Description: "The run in that format, of the media type of the format",
			Content: map[string]*huma.MediaType{"*/*": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}},
	}, p.export)
	for _, param := range api.OpenAPI().Paths["/api/v1/runs/{id}/export"].Get.Parameters {
		if param.Name == "format" {
			param.Schema.Enum = names
		}
	}
}

// maxExport bounds what a run may be in a format, which is in memory until it has been sent.
const maxExport = 128 << 20

// boundedText keeps what is written to it, up to maxExport.
type boundedText struct{ kept bytes.Buffer }

var errLarge = fmt.Errorf("the run has more than %d MiB in this format: ask for one trial (trial=N), or let appliance export write a file of the run's folder",
	maxExport>>20) // constant

// Write implements io.Writer.
func (b *boundedText) Write(text []byte) (int, error) {
	if b.kept.Len()+len(text) > maxExport {
		return 0, errLarge
	}
	return b.kept.Write(text)
}

func (p *Panel) export(ctx context.Context, in *exportInput) (*exportBody, error) {
	format, err := export.Find(in.Format)
	if err != nil {
		return nil, huma.Error422UnprocessableEntity(err.Error(), &huma.ErrorDetail{Location: "query.format", Message: err.Error()})
	}
	found, err := p.get(ctx, &idInput{in.ID})
	if err != nil {
		return nil, err
	}
	source := &export.Source{Run: found.Body, Report: in.Report, Picture: in.Picture, Trial: in.Trial}
	source.Files, err = p.Store.Files(in.ID)
	switch {
	case err == nil:
		defer source.Files.Close()
	case !errors.Is(err, store.ErrNotFound) && !errors.Is(err, os.ErrNotExist): // it may wait in the queue
		return nil, p.internalError(err)
	}
	done, err := p.telling.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var text boundedText
	if err := format.WriteTo(&text, source); err != nil {
		return nil, huma.Error409Conflict(err.Error())
	}
	name := in.ID + "-" + format.Name + path.Ext(format.File)
	return &exportBody{
		Type: format.Type, Saved: mime.FormatMediaType("attachment", map[string]string{"filename": name}),
		Policy: filePolicy, Body: text.kept.Bytes(),
	}, nil
}
