package panel

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/labstack/echo/v4"

	"eidetic/internal/box/credentials"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// rewrites returns what answers with a file of a run that has secrets of its plan, for whoever only reads; nil for all
// other files. A head keeps files of attempts below folders of their own, so names count wherever they are.
func (p *Panel) rewrites(c echo.Context, id, name string) func(io.Reader) error {
	ctx := c.Request().Context()
	if identityOf(ctx).Scope.Allows(credentials.Run) {
		return nil
	}
	var read func(io.Reader) (any, error)
	switch base := path.Base(name); {
	case strings.HasPrefix(name, planFiles+"/") || strings.Contains(name, "/"+planFiles+"/"):
		return func(io.Reader) error {
			return echo.NewHTTPError(http.StatusForbidden, "the files that a run's plan names need a token of the scope run")
		}
	case base == store.RunFile:
		read = func(f io.Reader) (any, error) { return store.DecodeRun(f) }
	case base == store.TrialFile:
		read = func(f io.Reader) (any, error) { return store.DecodeTrial(f) }
	case base == lab.EventsFile:
		return func(f io.Reader) error { answerEvents(c, f); return nil }
	default:
		return nil
	}
	return func(f io.Reader) error {
		done, err := p.read(ctx, id)
		if err != nil {
			return err
		}
		defer done()
		said, err := read(f)
		if err != nil {
			return echo.NewHTTPError(http.StatusUnprocessableEntity, clip(name)+" cannot be read: "+err.Error())
		}
		c.Response().Header().Del("ETag") // it is another text
		return c.JSON(http.StatusOK, forReader(ctx, said))
	}
}

// answerEvents copies a log of events without what was typed. A line that is no event is left out.
func answerEvents(c echo.Context, f io.Reader) {
	c.Response().Header().Del("ETag") // it is another text
	c.Response().WriteHeader(http.StatusOK)
	lines, out := bufio.NewScanner(f), json.NewEncoder(c.Response())
	lines.Buffer(nil, store.MaxLineBytes)
	for lines.Scan() { // the answer has begun: what cannot be read is missing
		var e lab.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		if out.Encode(forReader(c.Request().Context(), e)) != nil {
			return // the client has gone
		}
	}
}
