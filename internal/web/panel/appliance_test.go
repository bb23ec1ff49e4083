package panel

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// fakeArchives holds one recording and accepts files that begin with PK.
type fakeArchives struct {
	file      string
	meanwhile func() // is called while a recording is brought; nil is not
}

func (fakeArchives) List(context.Context) ([]Archive, error) {
	return []Archive{{Name: "shop.wacz", Bytes: 1_500_000, Modified: time.Unix(1_800_000_000, 0).UTC()}}, nil
}

func (a fakeArchives) Put(_ context.Context, name, match string, content io.Reader, free func() error) (Archive, error) {
	text, err := io.ReadAll(content)
	if err != nil || !strings.HasPrefix(string(text), "PK") {
		return Archive{}, &Refusal{http.StatusUnprocessableEntity, errors.Join(errors.New("it is no WACZ file"), err)}
	}
	if match != "" {
		if a.meanwhile != nil {
			a.meanwhile()
		}
		if err := free(); err != nil {
			return Archive{}, err
		}
	}
	return Archive{Name: name, Bytes: int64(len(text)), Modified: time.Unix(1_800_000_000, 0).UTC()}, nil
}

func (a fakeArchives) Open(string) (*os.File, error) { return os.Open(a.file) }

// Contents has a request for each kind of bar, and hostile texts.
func (fakeArchives) Contents(_ context.Context, file string) (ArchiveContents, error) {
	if strings.Contains(file, "/runs/") { // one that a run made, as it should be
		c := ArchiveContents{Pages: []ArchivedPage{{URL: "https://www.shop.example/"}}, Exchanges: 9, Bytes: 1_480_000, SHA256: "none",
			Hosts: []string{"www.shop.example", "cdn.shop.example"}, Quality: Quality{Score: 1}}
		for i, name := range []string{"www.shop.example/", "cdn.shop.example/site.css", "cdn.shop.example/site.js", "cdn.shop.example/lamp.webp",
			"cdn.shop.example/vase.webp", "cdn.shop.example/chair.webp", "www.shop.example/api/basket", "cdn.shop.example/inter.woff2", "cdn.shop.example/late.js"} {
			at := float64(i)
			c.Requests = append(c.Requests, ArchivedRequest{Order: i + 1, ID: name, Method: "GET", URL: "https://" + name, Status: 200, Protocol: "h2",
				Type: []string{"text/html", "text/css", "text/javascript", "image/webp"}[i%4], Bytes: 9000 + 7000*i, Start: 60*at + 4*at*at, FirstByte: 40 + 5*at, End: 90 + 20*at})
		}
		return c, nil
	}
	return ArchiveContents{Pages: []ArchivedPage{{URL: `https://a.test/<img src=x onerror="document.title='owned'">`}}, Exchanges: 2, Bytes: 1_500_000, SHA256: "none",
		Hosts: []string{"a.test"}, Warnings: []string{"<b>repaired</b>"},
		Quality: Quality{Score: 0.5, Problems: []ArchiveProblem{{Kind: "truncated", URL: "https://a.test/b.js", What: "the body was cut off after 10 bytes", Grave: true}}},
		Requests: []ArchivedRequest{
			{Order: 1, ID: "1", Method: "GET", URL: `https://a.test/<img src=x onerror="document.title='owned'">`, Status: 200, Protocol: "h2", Type: "text/html", Bytes: 5000, FirstByte: 100, End: 300},
			{Order: 2, ID: "2", Method: "GET", URL: "https://a.test/b.js", Status: 404, Protocol: "h2", Type: "<b>", Bytes: 10, Start: 200, FirstByte: 50, End: 200, Truncated: "length"},
		}}, nil
}

func (fakeArchives) Rename(name, to string) (Archive, error) {
	if to == "taken.wacz" {
		return Archive{}, &Refusal{http.StatusConflict, errors.New("there is a recording taken.wacz already")}
	}
	return Archive{Name: to, Bytes: 1_500_000, Modified: time.Unix(1_800_000_000, 0).UTC()}, nil
}

func (a fakeArchives) Edit(_ context.Context, _, into, match string, e ArchiveEdit, _ []string, free func() error) (EditedArchive, error) {
	if len(e.LeaveOut) == 0 {
		return EditedArchive{}, &Refusal{http.StatusUnprocessableEntity, errors.New("no request matches, so nothing is changed")}
	}
	if match != "" {
		if a.meanwhile != nil {
			a.meanwhile()
		}
		if err := free(); err != nil {
			return EditedArchive{}, err
		}
	}
	return EditedArchive{Archive: Archive{Name: into, Bytes: 900_000, Modified: time.Unix(1_800_000_000, 0).UTC()}, Left: 1}, nil
}

func (fakeArchives) Remove(name string) error {
	if name != "shop.wacz" {
		return &Refusal{http.StatusNotFound, errors.New("there is no recording " + name)}
	}
	return nil
}

type fakeSettings struct{ text *string }

func (s fakeSettings) Text() (string, error) { return *s.text, nil }

func (s fakeSettings) Set(_ context.Context, text string) error {
	if strings.Contains(text, "colour") {
		return &Refusal{http.StatusUnprocessableEntity, errors.New(`[1:1] unknown field "colour"`)}
	}
	*s.text = text
	return nil
}

type fakeSystem struct{ reset *int }

func (fakeSystem) Update(_ context.Context, bundle io.Reader) (Update, error) {
	text, err := io.ReadAll(bundle)
	if err != nil || string(text) != "signed" {
		return Update{}, &Refusal{
			http.StatusUnprocessableEntity,
			errors.Join(errors.New("not signed by the key that this box trusts"), err),
		}
	}
	return Update{Running: "0.1.5", Installing: true}, nil
}

func (fakeSystem) Updates() (Update, error) { return Update{Running: "0.1.5", Last: "0.1.5"}, nil }

func (s fakeSystem) Reset() error { *s.reset++; return nil }

// whole is the configuration of a panel with every optional part.
func whole(t *testing.T) (setup, *string, *int) {
	t.Helper()
	file := t.TempDir() + "/shop.wacz"
	if err := os.WriteFile(file, []byte("PK the recording"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, resets := "log: info\n", 0
	return setup{
		Store: newStore(
			t,
		), Token: lab.NewSecret(token), Version: "v1", Certificate: []byte("-----BEGIN CERTIFICATE-----"), Links: []string{"native", "lte"},
		PluggedIn: func(context.Context) []PluggedPart {
			return []PluggedPart{{
				Kind: "serial port", Use: "ch9329:/dev/serial/by-id/usb-1a86_USB_Serial-if00-port0", Name: "1a86 USB Serial",
				State: "a cable as it is sold with a CH9329", Ready: true,
			}}
		},
		Devices: func(context.Context) []Device {
			return []Device{{
				Name: "laptop", Kind: "port", Ready: true, Port: "enp2s0", Gateway: "192.168.77.1/24",
				Address: "192.168.77.100", MAC: "52:54:00:00:00:02", Host: "laptop", Screen: "VNC at its port 5900",
			}}
		},
		Archives: fakeArchives{file: file}, Settings: fakeSettings{&settings}, System: fakeSystem{&resets}, Backups: fakeBackups{}, Retainer: fakeRetainer{}, Supporter: fakeSupporter{}, Fleet: &fakeMembership{},
		Errands: &fakeErrands{},
		Parts:   func() []Part { return []Part{{Name: "panel", OK: true, AgoMS: 40}} },
	}, &settings, &resets
}

func TestAppliance(t *testing.T) {
	config, settings, resets := whole(t)
	s := newServer(t, config)
	send := func(method, path, body string) reply {
		return ask(t, s, method, path, func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", "application/json")
			if body != "" {
				r.Body = io.NopCloser(strings.NewReader(body))
			}
		})
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		within             string
	}{
		{"GET", "/api/v1/devices", "", 200, `"ready":true`},
		{"GET", "/api/v1/certificate", "", 200, "BEGIN CERTIFICATE"},
		{"GET", "/api/v1/archives", "", 200, `"shop.wacz"`},
		{"GET", "/api/v1/archives/shop.wacz", "", 200, "PK the recording"},
		{"PUT", "/api/v1/archives/new.wacz", "PK more", 201, `"bytes":7`},
		{"PUT", "/api/v1/archives/new.wacz", "no recording", 422, "no WACZ file"},
		{"DELETE", "/api/v1/archives/shop.wacz", "", 204, ""},
		{"DELETE", "/api/v1/archives/nope.wacz", "", 404, "no recording"},
		{"GET", "/api/v1/config", "", 200, "log: info"},
		{"PUT", "/api/v1/config", "colour: blue", 422, "unknown field"},
		{"PUT", "/api/v1/config", strings.Repeat("#", MaxSettings+1), 413, "too large"},
		{"PUT", "/api/v1/config", "log: debug", 202, ""},
		{"GET", "/api/v1/update", "", 200, `"running":"0.1.5"`},
		{"POST", "/api/v1/update", "tampered", 422, "not signed"},
		{"POST", "/api/v1/update", "signed", 202, `"installing":true`},
		{"POST", "/api/v1/reset", `{}`, 422, "delete"},
		{"POST", "/api/v1/reset", `{"delete":"everything"}`, 202, ""},
	} {
		got := send(c.method, c.path, c.body)
		if got.StatusCode != c.status || !strings.Contains(got.text, c.within) {
			t.Errorf("%s %s: %d %.200s, want %d with %q", c.method, c.path, got.StatusCode, got.text, c.status, c.within)
		}
		if bare := ask(t, s, c.method, c.path, nil); bare.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s %s without the token: %d", c.method, c.path, bare.StatusCode)
		}
	}
	if *settings != "log: debug" || *resets != 1 {
		t.Errorf("the configuration is %q, and the box was reset %d times", *settings, *resets)
	}
}

// Requests that restart the box are refused while a run is in progress, unless told to
// interrupt it, and their bodies are not read.
func TestRestartWaitsForRuns(t *testing.T) {
	config, settings, resets := whole(t)
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	config.Queue, config.Token = queueOf(config.Store, q, &fakeRunner{}), lab.Secret{}
	s := newServer(t, config)
	send := func(method, path, body string) reply {
		return ask(t, s, method, path, func(r *http.Request) {
			r.Header.Set("Content-Type", "application/json")
			r.Body = io.NopCloser(strings.NewReader(body))
		})
	}
	if err := q.Add(t.Context(), store.Job{ID: "waits", Device: "a"}); err != nil {
		t.Fatal(err)
	}
	if got := send("PUT", "/api/v1/config", "log: warn"); got.StatusCode != http.StatusAccepted {
		t.Errorf("a reset while a run waits: %d %s", got.StatusCode, got.text)
	}
	if _, err := q.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls := [][3]string{{"PUT", "/api/v1/config", "log: debug"}, {"POST", "/api/v1/update", "signed"},
		{"POST", "/api/v1/reset", `{"delete":"everything"}`}}
	for _, c := range calls {
		if got := send(c[0], c[1], c[2]); got.StatusCode != http.StatusConflict || !strings.Contains(got.text, "run waits goes on") ||
			!strings.Contains(got.text, "interrupt=true") {
			t.Errorf("%s while a run goes on: %d %s", c[1], got.StatusCode, got.text)
		}
	}
	if *settings != "log: warn" || *resets != 0 {
		t.Errorf("a refused request had an effect: configuration %q, %d resets", *settings, *resets)
	}
	for _, c := range calls {
		if got := send(c[0], c[1]+"?interrupt=true", c[2]); got.StatusCode != http.StatusAccepted {
			t.Errorf("%s that interrupts: %d %s", c[1], got.StatusCode, got.text)
		}
	}
}
