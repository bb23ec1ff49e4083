package panel

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeMembership is a box that belongs to a head, holds a part, and waits for the head.
type fakeMembership struct {
	mu   sync.Mutex
	left bool
}

func (f *fakeMembership) Status() (FleetStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left {
		return FleetStatus{Parts: []FleetPart{}}, nil
	}
	at := time.Date(2026, 11, 21, 9, 14, 0, 0, time.UTC)
	return FleetStatus{
		Joined: true, Head: "head.example.org:8443", Name: "lab-1", ID: "k3v7m2qx", Since: &at, Contact: &at, Health: "good",
		Problem: "the head cannot be reached: connection refused",
		Parts: []FleetPart{
			{Part: "20261121-091400-shop.02", Run: "20261121-091400-shop.02", Device: "virtual", Attempt: 1, State: "running", Trial: 3, Of: 40, Since: at},
			{Part: "20261121-081400-shop.01", Run: "20261121-081400-shop.01", Device: "virtual", Attempt: 2, State: "handing in", Since: at},
		},
	}, nil
}

func (f *fakeMembership) Join(_ context.Context, link, _ string) error {
	if !strings.HasPrefix(link, "eidetic-head://") {
		return &Refusal{Status: http.StatusUnprocessableEntity, Err: errors.New("the join link: it does not begin with eidetic-head://")}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = false
	return nil
}

func (f *fakeMembership) Leave(_ context.Context, force bool) error {
	if !force {
		return &Refusal{Status: http.StatusConflict, Err: errors.New("the box holds 2 parts of its head's runs")}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = true
	return nil
}

// A box tells how it stands with its head, does not leave by accident, and the audit log has no code.
func TestFleetRoutes(t *testing.T) {
	config, _, _ := whole(t)
	s := newServer(t, config)
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/api/v1/fleet", "", 200, `"state":"handing in"`},
		{"DELETE", "/api/v1/fleet", "", 409, "holds 2 parts"},
		{"DELETE", "/api/v1/fleet?force=true", "", 204, ""},
		{"GET", "/api/v1/fleet", "", 200, `"joined":false`},
		{"PUT", "/api/v1/fleet", `{"link":"https://x"}`, 422, "does not begin with"},
		{"PUT", "/api/v1/fleet", `{"link":"eidetic-head://head.example.org:8443/secretsecretsecret?pin=x","name":"lab-1"}`, 200, `"joined":true`},
		{"PUT", "/api/v1/fleet", `{"link":"` + strings.Repeat("x", 2000) + `"}`, 422, "link"},
	} {
		got := ask(t, s, c.method, c.path, func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", "application/json")
			if c.body != "" {
				r.Body = io.NopCloser(strings.NewReader(c.body))
			}
		})
		if got.StatusCode != c.status || !strings.Contains(got.text, c.want) {
			t.Errorf("%s %s = %d %s; want %d with %q", c.method, c.path, got.StatusCode, got.text, c.status, c.want)
		}
	}
	audit := ask(t, s, "GET", "/api/v1/audit", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) })
	if text := audit.text; strings.Contains(text, "secretsecret") || !strings.Contains(text, "head head.example.org:8443, as lab-1") {
		t.Errorf("the audit log = %s; want the head and the name, and no code", text)
	}
}
