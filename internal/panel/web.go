package panel

import (
	"embed"
	"io/fs"
	"mime"
	"net/http"
	"path"

	"github.com/labstack/echo/v4"
)

//go:embed web
var webFiles embed.FS

// web serves the pages and their assets.
func (p *Panel) web(e *echo.Echo) {
	e.GET("/", func(c echo.Context) error { return webFile(c, "index.html") })
	e.GET("/history", func(c echo.Context) error { return webFile(c, "history.html") })
	e.GET("/access", func(c echo.Context) error { return webFile(c, "access.html") })
	e.GET("/assets/:name", func(c echo.Context) error { return webFile(c, c.Param("name")) })
	e.GET("/favicon.ico", func(c echo.Context) error { return c.Redirect(http.StatusSeeOther, "/assets/icon.svg") })
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
