package panel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
)

// Backups writes the box into one file, and puts such a file in its place.
type Backups interface {
	// Backup writes all that the box keeps; secrets says whether tokens, keys and passwords are in it.
	Backup(ctx context.Context, w io.Writer, secrets bool) error
	// Restore checks a backup, and has it replace what the box keeps.
	Restore(ctx context.Context, r io.Reader) (Backup, error)
}

// Backup says what is in a backup.
type Backup struct {
	Made       time.Time `json:"made"`
	Software   string    `json:"software" doc:"What made it"`
	Secrets    bool      `json:"secrets" doc:"Whether tokens, keys, passwords and webhooks are in it"`
	Runs       int       `json:"runs"`
	Recordings int       `json:"recordings" doc:"Uploaded recordings; those that runs made are in the runs"`
	Bytes      int64     `json:"bytes"`
}

// backupFeature has the routes of backups.
type backupFeature struct {
	*Panel
	Backups Backups
}

// WithBackups writes backups and restores them.
func WithBackups(b Backups) Module {
	return func(p *Panel) { backupFeature{p, b}.backups(p.router, p.api) }
}

func (p backupFeature) backups(e *echo.Echo, api huma.API) {
	p.raw(e, api, &huma.Operation{
		OperationID: "backup", Method: http.MethodGet, Path: "/api/v1/backup", Summary: "All that the box keeps, as one file", Tags: []string{tagSystem},
		Description: "A tar file: runs, recordings, queue, workflows and schedules, configuration, digests of tokens, the log. It ends with SHA256SUMS; a file without that is incomplete. Runs that go on are left out.",
		Parameters: []*huma.Param{{Name: "secrets", In: "query", Schema: &huma.Schema{Type: huma.TypeBoolean},
			Description: "Also the box's token, keys, Wi-Fi network, webhooks, and the passwords of the configuration"}},
		Responses: file("200", "application/x-tar", "The backup"),
	}, p.backup)
	p.raw(e, api, &huma.Operation{
		OperationID: "restore", Method: http.MethodPost, Path: "/api/v1/restore", Summary: "Replace all that the box keeps by a backup",
		Tags:        []string{tagSystem},
		Description: "The body is a backup. It is checked as a whole before it counts; then the service starts again with its content, and what the box kept before is gone.",
		Parameters: []*huma.Param{{Name: "replace", In: "query", Required: true, Description: "Confirms that everything is replaced",
			Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"everything"}}}},
		RequestBody: &huma.RequestBody{Required: true, Content: bytesOf("application/x-tar")},
		Responses: map[string]*huma.Response{"202": {Description: "The box starts again with it", Content: map[string]*huma.MediaType{
			"application/json": {Schema: api.OpenAPI().Components.Schemas.Schema(backupType(), true, "Backup")}}}, "409": runGoesOn()},
	}, p.restore)
}

func (p backupFeature) backup(c echo.Context) error {
	secrets := c.QueryParam("secrets")
	if secrets != "" && secrets != "true" && secrets != "false" {
		return echo.NewHTTPError(http.StatusUnprocessableEntity, "secrets: "+clip(secrets)+" is neither true nor false")
	}
	h := c.Response().Header()
	h.Set("Content-Type", "application/x-tar")
	h.Set("Content-Disposition", `attachment; filename="eidetic-backup.tar"`)
	h.Set("Content-Security-Policy", filePolicy)
	if isHead(c.Request()) {
		return c.NoContent(http.StatusOK)
	}
	err := p.Backups.Backup(c.Request().Context(), c.Response(), secrets == "true")
	status := http.StatusOK
	if err != nil {
		status = http.StatusInternalServerError
	}
	what := "GET /api/v1/backup"
	if secrets == "true" {
		what += " with secrets"
	}
	p.Credentials.Record(identityOf(c.Request().Context()), what, from(c.Request()), status)
	if err == nil || !c.Response().Committed {
		if err != nil {
			h.Del("Content-Disposition")
		}
		return err
	}
	p.Log.Error("panel: backup", "err", err)
	panic(http.ErrAbortHandler) // the client must see that it is incomplete
}

func (p backupFeature) restore(c echo.Context) error {
	ctx := c.Request().Context()
	if c.QueryParam("replace") != "everything" {
		return echo.NewHTTPError(http.StatusUnprocessableEntity,
			"a restore replaces all runs, recordings, workflows and tokens: send ?replace=everything, after a backup")
	}
	if err := p.refuseIfRunning(ctx, false); err != nil {
		return err
	}
	got, err := p.Backups.Restore(ctx, c.Request().Body)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return echo.NewHTTPError(http.StatusBadRequest, "the body could not be read to its end")
	}
	if err != nil {
		return err
	}
	note(ctx, fmt.Sprintf("a backup of %s with %d runs", got.Made.Format(time.DateTime), got.Runs))
	return c.JSON(http.StatusAccepted, got)
}
