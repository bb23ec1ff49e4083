package panel

import (
	"embed"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
)

//go:embed web
var webFiles embed.FS

// web serves the pages and their assets, and sessions for browsers.
func (p *Panel) web(e *echo.Echo) {
	e.GET("/", func(c echo.Context) error { return webFile(c, "index.html") })
	e.GET("/history", func(c echo.Context) error { return webFile(c, "history.html") })
	e.GET("/assets/:name", func(c echo.Context) error { return webFile(c, c.Param("name")) })
	e.GET("/favicon.ico", func(c echo.Context) error { return c.Redirect(http.StatusSeeOther, "/assets/icon.svg") })
	e.POST("/api/v1/session", p.login)
	e.DELETE("/api/v1/session", p.logout)
	p.api.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "log-in", Method: http.MethodPost, Path: "/api/v1/session", Summary: "Exchange the token for a cookie",
		Tags:        []string{tagSystem},
		Description: "For browsers. The body is the token as plain text; the cookie is HttpOnly and SameSite=Strict.",
		RequestBody: &huma.RequestBody{Required: true,
			Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}},
		Responses: map[string]*huma.Response{"204": {Description: "The cookie is set"}, "401": {Description: "That is not the token"}},
	})
	p.api.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "log-out", Method: http.MethodDelete, Path: "/api/v1/session", Summary: "Forget the cookie", Tags: []string{tagSystem},
		Responses: map[string]*huma.Response{"204": {Description: "The cookie is deleted"}},
	})
}

func webFile(c echo.Context, name string) error {
	b, err := fs.ReadFile(webFiles, path.Join("web", name))
	if err != nil {
		return echo.NewHTTPError(http.StatusNotFound, "there is no such page")
	}
	c.Response().Header().Set("Cache-Control", "no-cache")
	kind := map[string]string{".html": "text/html", ".js": "text/javascript", ".css": "text/css"}[path.Ext(name)]
	if kind == "" {
		kind = mime.TypeByExtension(path.Ext(name))
	}
	return c.Blob(http.StatusOK, kind, b)
}

func (p *Panel) login(c echo.Context) error {
	b, err := io.ReadAll(io.LimitReader(c.Request().Body, 4096))
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest, "the body could not be read")
	}
	if p.Token != "" && !p.isToken(string(b)) {
		return echo.NewHTTPError(http.StatusUnauthorized, "that is not the token")
	}
	if p.Token != "" {
		c.SetCookie(p.cookie(p.session(), 0, c.Request().TLS != nil))
	}
	return c.NoContent(http.StatusNoContent)
}

func (p *Panel) logout(c echo.Context) error {
	c.SetCookie(p.cookie("", -1, c.Request().TLS != nil))
	return c.NoContent(http.StatusNoContent)
}

func (p *Panel) cookie(value string, age int, secure bool) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: secure}
}
