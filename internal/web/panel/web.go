package panel

import (
	"bytes"
	"embed"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"

	"github.com/labstack/echo/v4"
)

//go:embed web
var webFiles embed.FS

// page is a page of the panel: what shell.html, which all pages share, needs of it.
type page struct {
	Title  string
	Script string
	Styles []string
	Help   string // the document that explains it, with a place in it
	Fleet  bool   // the panel is that of a fleet's head
	// Storage and Certificate say what the panel has: no device trusts a head.
	Storage, Certificate bool
}

// route is a page and the file of its content.
type route struct {
	file string
	page
}

// pages are all that a panel may have. Without what they show of this panel, which needs a token, they are no secret.
var pages = map[string]route{ // constant
	"/":           {"index.html", page{Title: "Runs", Script: "app.js", Help: "panel#measure-a-page"}},
	"/history":    {"history.html", page{Title: "History", Script: "history.js", Styles: []string{"history.css"}, Help: "compare#from-day-to-day"}},
	"/browsers":   {"browsers.html", page{Title: "Browsers", Script: "browsers.js", Styles: []string{"lists.css", "browsers.css"}, Help: "panel#browsers"}},
	"/recordings": {"recordings.html", page{Title: "Recordings", Script: "recordings.js", Styles: []string{"lists.css", "recordings.css"}, Help: "panel#recordings"}},
	"/plan":       {"plan.html", page{Title: "Plan", Script: "plan.js", Styles: []string{"lists.css", "plan.css"}, Help: "panel#plan"}},
	"/automation": {"automation.html", page{Title: "Automation", Script: "automation.js", Styles: []string{"lists.css"}, Help: "panel#automation"}},
	"/alerts":     {"alerts.html", page{Title: "Alerts", Script: "alerts.js", Styles: []string{"lists.css", "alerts.css"}, Help: "panel#alerts"}},
	"/bisections": {"bisections.html", page{Title: "Bisections", Script: "bisections.js", Styles: []string{"lists.css", "alerts.css"}, Help: "panel#bisections"}},
	"/suites":     {"suites.html", page{Title: "Suites", Script: "suites.js", Styles: []string{"lists.css", "alerts.css", "dots.css", "suites.css"}, Help: "panel#suites"}},
	"/access":     {"access.html", page{Title: "Access", Script: "access.js", Styles: []string{"access.css"}, Help: "security#how-the-panel-is-protected"}},
	"/run":        {"run.html", page{Title: "Run", Script: "run.js", Styles: []string{"lists.css", "film.css", "dots.css", "run.css"}, Help: "panel#run"}},
	"/trial":      {"trial.html", page{Title: "Frames", Script: "trial.js", Styles: []string{"film.css", "trial.css"}, Help: "frames"}},
	"/device":     {"device.html", page{Title: "Device", Script: "device.js", Styles: []string{"device.css"}, Help: "devices/index"}},
	"/gesture":    {"gesture.html", page{Title: "Gesture", Script: "gesture.js", Styles: []string{"gesture.css"}, Help: "scenarios"}},
	"/boxes":      {"boxes.html", page{Title: "Boxes", Script: "boxes.js", Styles: []string{"lists.css", "history.css", "boxes.css"}, Help: "fleet"}},
	"/storage":    {"storage.html", page{Title: "Storage", Script: "storage.js", Styles: []string{"lists.css", "storage.css"}, Help: "panel#storage"}},
}

// has says whether this panel has the page: a box has no boxes, and a head deletes no evidence.
func (p *Panel) has(path string) bool {
	switch path {
	case "/boxes":
		return p.fleet
	case "/storage":
		return p.storage
	}
	return true
}

// web serves the pages and their assets.
func (p *Panel) web(e *echo.Echo) {
	templates := template.Must(template.ParseFS(webFiles, "web/*.html"))
	show := func(c echo.Context, status int, file string, data any) error {
		var b bytes.Buffer
		if err := templates.ExecuteTemplate(&b, file, data); err != nil {
			return err
		}
		return webBlob(c, status, ".html", b.Bytes())
	}
	common := page{Script: "common.js", Styles: []string{"help.css"}, Help: "index", Fleet: p.fleet, Storage: p.storage}
	for at, page := range pages {
		if !p.has(at) {
			continue
		}
		page.Fleet, page.Storage, page.Certificate = p.fleet, p.storage, p.devices
		e.GET(at, func(c echo.Context) error { return show(c, http.StatusOK, page.file, page.page) })
	}
	p.help(e, show, common)
	missing := common
	missing.Title = "No such page"
	p.missing = func(c echo.Context) error { return show(c, http.StatusNotFound, "missing.html", missing) }
	e.GET("/assets/:name", func(c echo.Context) error {
		name := c.Param("name")
		b, err := fs.ReadFile(webFiles, path.Join("web", name))
		if err != nil || path.Ext(name) == ".html" {
			return echo.NewHTTPError(http.StatusNotFound, "there is no such page")
		}
		return webBlob(c, http.StatusOK, path.Ext(name), b)
	})
	e.GET("/favicon.ico", func(c echo.Context) error { return c.Redirect(http.StatusSeeOther, "/assets/icon.svg") })
}

func webBlob(c echo.Context, status int, ext string, b []byte) error {
	c.Response().Header().Set("Cache-Control", "no-cache")
	kind := map[string]string{".html": "text/html", ".js": "text/javascript", ".css": "text/css"}[ext]
	if kind == "" {
		kind = mime.TypeByExtension(ext)
	}
	return c.Blob(status, kind, b)
}
