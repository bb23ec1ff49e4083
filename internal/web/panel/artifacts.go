package panel

import (
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"eidetic/internal/keep/store"
	"eidetic/internal/tell/report"
)

// artifacts serves the files of runs: below /api/v1/runs/{id}/artifacts/ for programs, and
// below /runs/{id}/ so that the relative links of a report work as on disk.
func (p *Panel) artifacts(e *echo.Echo, api huma.API) {
	e.GET("/api/v1/runs/:id/artifacts/*", p.artifact)
	e.GET("/runs/:id/*", p.artifact)
	e.GET("/runs/:id", func(c echo.Context) error {
		return c.Redirect(http.StatusSeeOther, "/runs/"+url.PathEscape(c.Param("id"))+"/"+report.FileName)
	})
	huma.Register(api, huma.Operation{
		OperationID: "list-artifacts", Method: http.MethodGet, Path: "/api/v1/runs/{id}/artifacts", Summary: "The files of a run",
		Tags:        []string{tagRuns},
		Description: "Sorted by path. If the recording of a page failed, the files below recording/ show why.",
		Security:    needsToken(), Errors: []int{http.StatusUnauthorized, http.StatusNotFound},
	}, p.files)
	problems := map[string]*huma.MediaType{"application/problem+json": {Schema: &huma.Schema{Ref: "#/components/schemas/ErrorModel"}}}
	bytes := map[string]*huma.MediaType{"*/*": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
	api.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "get-artifact", Method: http.MethodGet, Path: "/api/v1/runs/{id}/artifacts/{path}",
		Summary: "A file of a run", Tags: []string{tagRuns}, Security: needsToken(),
		Description: "The path is relative to the run's folder, and its slashes are not escaped: trials/001/evidence.webm. Range and conditional requests work (RFC 9110).",
		Parameters: []*huma.Param{
			{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}, Description: "Identifier of the run"},
			{Name: "path", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}, Description: "Path of the file",
				Example: "trials/001/evidence.webm"},
			{Name: "Range", In: "header", Schema: &huma.Schema{Type: huma.TypeString}, Example: "bytes=0-1023"},
		},
		Responses: map[string]*huma.Response{
			"200": {Description: "The file", Content: bytes}, "206": {Description: "A part of it", Content: bytes},
			"304": {Description: "The file has not changed"}, "416": {Description: "The range is outside the file"},
			"401": {
				Description: "The token is missing",
				Content:     problems,
			}, "404": {Description: "There is no such file", Content: problems},
		},
	})
}

func (p *Panel) artifact(c echo.Context) error {
	id, name := c.Param("id"), c.Param("*")
	// Echo matches the raw path, where there is one, and leaves its escapes in the parameter; elsewhere
	// it has them unescaped, and a second time would make another name of a%20b.
	if c.Request().URL.RawPath != "" {
		plain, err := url.PathUnescape(name)
		if err != nil {
			return missing(name)
		}
		name = plain
	}
	if !fs.ValidPath(name) || isHidden(name) {
		return missing(name)
	}
	root, err := p.Store.Files(id)
	if errors.Is(err, store.ErrNotFound) {
		return echo.NewHTTPError(http.StatusNotFound, "there is no run "+clip(id))
	}
	if err != nil {
		return err
	}
	defer root.Close()
	f, info, err := p.openFile(c.Request().Context(), root, id, name)
	if thin, ok := p.Store.ThinnedAt(id); ok && errors.Is(err, fs.ErrNotExist) {
		return echo.NewHTTPError(http.StatusGone, fmt.Sprintf("the run has no file %s any more: its evidence was deleted on %s, because %s",
			clip(name), thin.At.Format(time.DateOnly), thin.Why))
	}
	var refused *Refusal
	if errors.As(err, &refused) {
		c.Response().Header().Set("Retry-After", "10")
		return err
	}
	if err != nil {
		return p.openError(name, err)
	}
	defer f.Close()
	h := c.Response().Header()
	kind, policy := kindOf(name)
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", ETagOf(info))
	if write := p.rewrites(c, id, name); write != nil {
		return write(f)
	}
	if kind == "application/octet-stream" {
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}))
	}
	http.ServeContent(c.Response(), restoreHead(c.Request()), "", info.ModTime(), f)
	return nil
}

// openError distinguishes a missing file from one that cannot be read. A name that leads
// out of the folder, by links or dots, counts as missing.
func (p *Panel) openError(name string, err error) error {
	if errors.Is(err, os.ErrPermission) {
		p.Log.Error("panel: artifact", "name", name, "err", err)
		return echo.NewHTTPError(http.StatusForbidden, "the appliance may not read "+clip(name))
	}
	return missing(name)
}

func missing(name string) error {
	return echo.NewHTTPError(http.StatusNotFound, "the run has no file "+clip(name))
}

// isHidden says whether a part of the path begins with a dot: locks and files that are
// being written.
func isHidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.Contains(name, "/.")
}

// kindOf returns the content type and the policy of a file. Only the report of a run and its timelines may be
// pages with scripts; any other HTML is shown as text.
func kindOf(name string) (kind, policy string) {
	if report.IsPage(name) {
		return "text/html; charset=utf-8", reportPolicy
	}
	switch path.Ext(name) {
	case ".json":
		return "application/json", filePolicy
	case ".jsonl":
		return "application/jsonl", filePolicy
	case ".webm":
		return "video/webm", filePolicy
	case ".png":
		return "image/png", filePolicy
	case ".jpg", ".jpeg":
		return "image/jpeg", filePolicy
	case ".webp":
		return "image/webp", filePolicy
	case ".txt", ".log", ".html", ".csv":
		return "text/plain; charset=utf-8", filePolicy
	case ".wacz":
		return "application/wacz", filePolicy
	}
	return "application/octet-stream", filePolicy
}
