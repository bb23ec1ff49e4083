package panel

import (
	"context"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
)

// Supporter makes a file for whoever helps with the box, without secrets.
type Supporter interface {
	Support(ctx context.Context, w io.Writer, health Health) error
}

// WithSupport makes support bundles.
func WithSupport(s Supporter) Module { return func(p *Panel) { p.support(s) } }

func (p *Panel) support(s Supporter) {
	p.raw(p.router, p.api, &huma.Operation{
		OperationID: "support", Method: http.MethodGet, Path: "/api/v1/support", Summary: "A file for whoever helps with the box", Tags: []string{tagSystem},
		Description: "A gzipped tar file: versions, what the doctor found, health, configuration, log, queue, hardware. Passwords, tokens, keys, cookies and queries of addresses are removed; names are not.",
		Responses:   file("200", "application/gzip", "The bundle"),
	}, func(c echo.Context) error {
		ctx, h := c.Request().Context(), c.Response().Header()
		health, err := p.health(ctx, nil)
		if err != nil {
			return err
		}
		h.Set("Content-Type", "application/gzip")
		h.Set("Content-Disposition", `attachment; filename="eidetic-support.tar.gz"`)
		h.Set("Content-Security-Policy", filePolicy)
		if isHead(c.Request()) {
			return c.NoContent(http.StatusOK)
		}
		err = s.Support(ctx, c.Response(), health.Body)
		p.Credentials.Record(identityOf(ctx), "GET /api/v1/support", from(c.Request()), http.StatusOK)
		if err != nil && c.Response().Committed {
			p.Log.Error("panel: support", "err", err)
			panic(http.ErrAbortHandler) // the client must see that it is incomplete
		}
		return err
	})
}
