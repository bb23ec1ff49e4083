package service

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/bisects"
	"eidetic/internal/box/credentials"
	"eidetic/internal/box/doctor"
	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/keep/support"
	"eidetic/internal/lab"
	"eidetic/internal/web/panel"
)

// unpacked is the text of all files of a support bundle, and their names.
func unpacked(t *testing.T, bundle io.Reader) (text, names string) {
	t.Helper()
	zip, err := gzip.NewReader(bundle)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			return text, names
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		text, names = text+string(b), names+h.Name+" "
	}
}

// No secret that is in configuration, plans, log, webhooks, tokens or addresses is in a bundle.
func TestSupportBundleHasNoSecrets(t *testing.T) {
	b, data := kept(t)
	secret := planted()
	jobs, err := store.OpenQueue(t.Context(), filepath.Join(data, queueFile))
	if err != nil {
		t.Fatal(err)
	}
	defer jobs.Close()
	plan := lab.Plan{
		Arm:   lab.Arm{Page: "https://ann:user-info-1@x.test/a?session=query-token-2#access=fragment-3"},
		Steps: []lab.Step{{Type: "typed-password-8"}},
		Files: map[string][]byte{"login.js": []byte("file-secret-4")},
		Users: []lab.PlanUser{{Name: "ann", Cookies: []lab.PlanCookie{{Name: "sid", Value: lab.NewSecret("cookie-value-5")}}}},
	}
	if err := jobs.Add(t.Context(), store.Job{ID: "20270104-000000-ann", Device: "laptop", Created: time.Now(), Plan: plan}); err != nil {
		t.Fatal(err)
	}
	k, err := automation.Open(t.Context(), automation.Config{File: filepath.Join(data, automationFile), Store: b.runs,
		Runs: runqueue.New(runqueue.Config{Jobs: jobs, Store: b.runs}), Sender: webhook.Sender{}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	hook := "https://127.0.0.1:1/deploy/hook-path-9"
	bisecting, err := bisects.Open(bisects.Config{Dir: filepath.Join(data, bisectsDir), Runs: runqueue.New(runqueue.Config{Jobs: jobs, Store: b.runs}),
		Store: b.runs, Sender: webhook.Sender{Guard: webhook.Guard{Allow: []string{"127.0.0.1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	asked := bisects.Request{Name: "which release", URL: hook}
	asked.Plan.Page = "https://x.test/?bisect-query-10"
	if err := json.Unmarshal([]byte(`[{"name":"v1"},{"name":"v2"}]`), &asked.Revisions); err != nil {
		t.Fatal(err)
	}
	made, deployKey, err := bisecting.Make(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	tokens := credentials.Open(credentials.Options{Dir: filepath.Join(data, "credentials")})
	_, named, err := tokens.Create("other", credentials.Read)
	if err := errors.Join(err, tokens.Close()); err != nil {
		t.Fatal(err)
	}
	recent := &support.Tail{}
	log := slog.New(slog.NewTextHandler(recent, nil))
	log.Info("a request", "url", "https://x.test/?key=logged-query-6", "header", "Authorization: Bearer "+named, "cookie", "sid=logged-cookie-7")
	log.Warn("hook " + "https://127.0.0.1:1/hooks.shop.example failed, key " + secret["webhook"] + ", box " + secret["token"] + ", Wi-Fi " + secret["Wi-Fi"])
	log.Warn("the hook of bisect " + made.ID + " does not answer: post " + hook + ": refused, signed with " + deployKey + " of " + deployKey[len("whsec_"):])
	s := &Service{Options{Data: data, Token: lab.NewSecret(secret["token"]), Software: "appliance test", Version: "v1", Recent: recent,
		Doctor: func(context.Context) ([]doctor.Finding, error) {
			return []doctor.Finding{{Name: "chromium", Found: "with " + secret["password"]}}, nil
		}}}
	p := supporter{s, b.runs, jobs, k, bisecting, b.config,
		func(context.Context) []panel.Device {
			return []panel.Device{{Name: "laptop", WiFi: &panel.WiFi{SSID: "lab", Passphrase: secret["Wi-Fi"], QR: "WIFI:T:WPA;S:lab;P:" + secret["Wi-Fi"] + ";;"}}}
		},
		func(context.Context) []panel.PluggedPart { return nil },
	}
	var bundle bytes.Buffer
	if err := p.Support(t.Context(), &bundle, panel.Health{Status: "ok", Warnings: []string{"the disk is nearly full"}}); err != nil {
		t.Fatal(err)
	}
	text, names := unpacked(t, &bundle)
	for what, value := range map[string]string{
		"a URL's user": "user-info-1", "a URL's query": "query-token-2", "a URL's fragment": "fragment-3", "a plan's file": "file-secret-4", "a user's cookie": "cookie-value-5",
		"a query in the log": "logged-query-6", "a cookie in the log": "logged-cookie-7", "a named token": strings.TrimPrefix(named, "eid_"),
		"a typed text": "typed-password-8", "the key of a bisect's hook": deployKey[len("whsec_"):], "the address of a bisect's hook": "hook-path-9",
		"the page of a bisect's plan": "bisect-query-10", "a plan's file in Base64": "ZmlsZS1zZWNyZXQtNA",
	} {
		secret[what] = value
	}
	for what, value := range secret {
		if strings.Contains(text, value) {
			at := strings.Index(text, value)
			t.Errorf("%s is in the bundle: …%s…", what, text[max(0, at-80):at+len(value)])
		}
	}
	for _, want := range []string{"appliance test", "the disk is nearly full", "20270104-000000-ann", "20270101-000000-done", "enp2s0", "chromium", "x.test", "a request",
		made.ID, "which release"} {
		if !strings.Contains(text, want) {
			t.Errorf("the bundle does not tell of %q", want)
		}
	}
	for _, want := range []string{"version.txt", "health.json", "hardware.txt", "appliance.yaml", "queue.json", "runs.json", "doctor.json", "log.txt", "bisects.json",
		"devices.json", "README.txt"} {
		if !strings.Contains(names, "support/"+want+" ") {
			t.Errorf("the bundle has no %s: %s", want, names)
		}
	}
}
