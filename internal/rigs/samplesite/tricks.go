package samplesite

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// Tricks is the URL below which pages are that are hard to measure, each with what gets in the way alone:
// pad?delay=50, consent, login, carousel, worker and dialog.
const Tricks = "https://" + WWW + "/tricks/"

// loginPage asks for a name and a password. The token is a new one in each answer, and good for one
// attempt.
const loginPage = `<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,"><title>Login</title>
<style>body{margin:0;font:22px sans-serif;background:#f6f3ec;color:#222}main{padding:40px}label{display:block;margin:12px 0}input,button{font:inherit;padding:10px}</style>
<main>{{if .User}}<h1 id="welcome">Welcome, {{.User}}</h1><p>Your last order is on its way.</p>{{else}}<h1>Login</h1>{{with .Problem}}<p id="problem">{{.}}</p>{{end}}
<form method="post" action="/tricks/login"><input type="hidden" name="token" value="{{.Token}}">
<label>Name <input id="name" name="name" autocomplete="off"></label><label>Password <input id="password" name="password" type="password"></label>
<button id="go">Log in</button></form>{{end}}</main>`

// tokens are the one-time tokens of login forms that were not used yet.
type tokens struct {
	mu   sync.Mutex
	open map[string]bool
}

// maxTokens bounds the forms that nobody sent.
const maxTokens = 1000

func (t *tokens) make() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open) >= maxTokens {
		t.open = nil
	}
	if t.open == nil {
		t.open = map[string]bool{}
	}
	token := rand.Text()
	t.open[token] = true
	return token
}

func (t *tokens) use(token string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	good := t.open[token]
	delete(t.open, token)
	return good
}

// pagesOf serves a folder of pages with their scripts and styles; a page is named without its ending.
func pagesOf(folder string) http.HandlerFunc {
	types := map[string]string{"": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
		".webm": "video/webm"}
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		kind := types[path.Ext(name)]
		if path.Ext(name) == "" {
			name += ".html"
		}
		body, err := embedded.ReadFile("assets/" + folder + "/" + name)
		if err != nil || kind == "" || strings.HasPrefix(name, ".") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeContent(w, r, name, built(), bytes.NewReader(body))
	}
}

// tricks serves them.
func (s *Site) tricks(mux *http.ServeMux) {
	mux.HandleFunc("GET /tricks/{name}", pagesOf("tricks"))
	mux.HandleFunc("GET /tricks/worker-data", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = fmt.Fprint(w, "answered by the server")
	})
	forms := &tokens{}
	page := template.Must(template.New("login").Parse(loginPage)) // constant
	show := func(w http.ResponseWriter, user, problem string) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_ = page.Execute(w, map[string]string{"User": user, "Problem": problem, "Token": forms.make()})
	}
	mux.HandleFunc("GET /tricks/login", func(w http.ResponseWriter, _ *http.Request) { show(w, "", "") })
	mux.HandleFunc("POST /tricks/login", func(w http.ResponseWriter, r *http.Request) {
		if !s.think(r, "document", 40*time.Millisecond) {
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		switch {
		case !forms.use(r.PostFormValue("token")):
			show(w, "", "This form was used already.")
		case r.PostFormValue("password") != "secret":
			show(w, "", "Name or password are wrong.")
		default:
			show(w, r.PostFormValue("name"), "")
		}
	})
}
