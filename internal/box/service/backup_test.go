package service

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/box/automation"
	"eidetic/internal/box/credentials"
	"eidetic/internal/box/webhook"
	"eidetic/internal/keep/backup"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/web/panel"
)

// planted are the secrets of kept, by where they are.
func planted() map[string]string {
	return map[string]string{
		"token": "k2m7vq3xw5p4tz6a", "key of the authority": "MHcCAQEEIauthority", "key of the panel": "MHcCAQEEIpanel",
		"Wi-Fi": "abcd-efgh-jkmn-pqrs", "password": "screen-word-9", "webhook": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5", "hook's address": "hooks.shop.example",
	}
}

const keptConfig = "log: info\ndevices:\n- port: enp2s0\n  name: laptop\n  password: screen-word-9\n" // constant

// kept fills a data folder as a service has it, with a run that goes on and one that is done.
func kept(t *testing.T) (b backups, data string) {
	t.Helper()
	data = t.TempDir()
	secret := planted()
	for name, text := range map[string]string{
		"token": secret["token"], "ca/ca.key": secret["key of the authority"], "panel/panel.key": secret["key of the panel"],
		"wifi.json": `{"passphrase":"` + secret["Wi-Fi"] + `"}`, "archives/shop.wacz": "PK recording", "archives/.incoming-1": "PK half",
	} {
		path := filepath.Join(data, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := store.Open(t.Context(), data, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runs.Close() })
	for id, state := range map[string]string{"20270101-000000-done": store.StateDone, "20270102-000000-going": store.StateRunning} {
		f, err := store.Create(data, &lab.Run{ID: id, State: state, Wall: time.Unix(1_800_000_000, 0).UTC(), Page: "https://x.test/"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		if err := os.WriteFile(filepath.Join(f.Path(), "film.reel"), bytes.Repeat([]byte("film"), 1000), 0o600); err != nil {
			t.Fatal(err)
		}
		if state == store.StateDone {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	jobs, err := store.OpenQueue(t.Context(), filepath.Join(data, queueFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = jobs.Close() })
	if err := jobs.Add(t.Context(), store.Job{ID: "20270103-000000-waits", Device: "laptop", Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	k, err := automation.Open(t.Context(), automation.Config{File: filepath.Join(data, automationFile), Store: runs,
		Runs: runqueue.New(runqueue.Config{Jobs: jobs, Store: runs}), Sender: webhook.Sender{Guard: webhook.Guard{Allow: []string{"127.0.0.1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	if _, _, err := k.MakeHook(t.Context(), "chat", "", "https://127.0.0.1:1/hooks.shop.example", lab.NewSecret(secret["webhook"]), automation.EventTypes(), "box"); err != nil {
		t.Fatal(err)
	}
	tokens := credentials.Open(credentials.Options{Own: lab.NewSecret(secret["token"]), Dir: filepath.Join(data, "credentials")})
	_, made, err := tokens.Create("nightly", credentials.Run)
	if err != nil {
		t.Fatal(err)
	}
	_, _, _ = tokens.OpenSession(made, "192.0.2.7")
	if err := tokens.Close(); err != nil {
		t.Fatal(err)
	}
	return backups{data: data, software: "appliance test", runs: runs, config: func() (string, error) { return keptConfig, nil }}, data
}

func TestBackupWithoutSecrets(t *testing.T) {
	b, data := kept(t)
	var tar bytes.Buffer
	if err := b.Backup(t.Context(), &tar, false); err != nil {
		t.Fatal(err)
	}
	for what, secret := range planted() {
		if bytes.Contains(tar.Bytes(), []byte(secret)) {
			t.Errorf("the %s is in a backup without secrets", what)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(data, copies+"*")); len(left) != 0 {
		t.Errorf("the copies %q of databases are still there", left)
	}
	names := namesIn(t, tar.Bytes())
	for want, has := range map[string]bool{
		"runs/20270101-000000-done/film.reel": true, "runs/20270102-000000-going": false, "archives/shop.wacz": true, ".incoming": false,
		"queue.db": true, "automation.db": true, "credentials/credentials.json": true, "appliance.yaml": true, "token": false, "ca/": false,
	} {
		if strings.Contains(" "+names, " "+want) != has {
			t.Errorf("%q in the backup: %v, want %v; it has %s", want, !has, has, names)
		}
	}
	fresh := t.TempDir()
	m, err := backup.Stage(&tar, fresh, func(dir string, _ backup.Manifest) error { return CheckBackup(t.Context(), dir) })
	if err != nil {
		t.Fatal(err)
	}
	if m.Runs != 1 || m.Recordings != 1 || len(m.LeftOut) != 2 {
		t.Errorf("the backup says %+v; want one run, one recording, and that a run and secrets are left out", m)
	}
	if err := FinishRestore(fresh, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	runs, err := store.Open(t.Context(), fresh, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	if all, err := runs.Runs(t.Context(), "", 0); err != nil || len(all) != 1 || all[0].State != store.StateDone {
		t.Errorf("restored runs: %+v, %v; want the one that is done", all, err)
	}
	jobs, err := store.OpenQueue(t.Context(), filepath.Join(fresh, queueFile))
	if err != nil {
		t.Fatal(err)
	}
	defer jobs.Close()
	if all, err := jobs.Jobs(t.Context()); err != nil || len(all) != 1 || all[0].ID != "20270103-000000-waits" {
		t.Errorf("restored jobs: %+v, %v; want the one that waits", all, err)
	}
	if cfg, err := LoadConfig(filepath.Join(fresh, backup.ConfigName)); err != nil || len(cfg.Devices) != 1 || !cfg.Devices[0].Password.IsZero() {
		t.Errorf("restored configuration: %+v, %v; want a device without its password", cfg.Devices, err)
	}
	tokens := credentials.Open(credentials.Options{Dir: filepath.Join(fresh, "credentials")})
	defer tokens.Close()
	if all := tokens.List(); len(all) != 1 || all[0].Name != "nightly" {
		t.Errorf("restored tokens: %+v, want nightly", all)
	}
}

// namesIn lists the files of a backup.
func namesIn(t *testing.T, tar []byte) string {
	t.Helper()
	var names []string
	if _, err := backup.Read(bytes.NewReader(tar), 1<<40, func(_ backup.Manifest, e backup.Entry) error {
		names = append(names, e.Name)
		_, err := io.Copy(io.Discard, e.Content)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

func TestBackupWithSecrets(t *testing.T) {
	b, _ := kept(t)
	var tar bytes.Buffer
	if err := b.Backup(t.Context(), &tar, true); err != nil {
		t.Fatal(err)
	}
	for what, secret := range planted() {
		if !bytes.Contains(tar.Bytes(), []byte(secret)) {
			t.Errorf("the %s is not in a backup with secrets", what)
		}
	}
}

// A run is not deleted while its files are being copied, and a client that is gone ends a backup.
func TestBackupHoldsRuns(t *testing.T) {
	b, _ := kept(t)
	ctx, stop := context.WithCancel(t.Context())
	var deleting error
	reader, writer := io.Pipe()
	go func() { // the first byte of the film is read while the run is held
		buffer := make([]byte, 256)
		for {
			n, err := reader.Read(buffer)
			if err != nil {
				return
			}
			if bytes.Contains(buffer[:n], []byte("filmfilm")) {
				deleting = b.runs.Remove("20270101-000000-done")
				stop()
				reader.CloseWithError(io.EOF)
				return
			}
		}
	}()
	err := b.Backup(ctx, writer, false)
	if err == nil || !errors.Is(deleting, store.ErrRead) {
		t.Errorf("Backup() = %v and Remove() = %v while it went on; want an error, and ErrRead", err, deleting)
	}
	if err := b.runs.Remove("20270101-000000-done"); err != nil {
		t.Errorf("Remove() after the backup = %v", err)
	}
}

func TestRestoreOverREST(t *testing.T) {
	b, _ := kept(t)
	var tar bytes.Buffer
	if err := b.Backup(t.Context(), &tar, false); err != nil {
		t.Fatal(err)
	}
	restarts := 0
	other, data := kept(t)
	other.restart = func() { restarts++ }
	var refusal *panel.Refusal
	if _, err := other.Restore(t.Context(), strings.NewReader("garbage")); !errors.As(err, &refusal) || refusal.Status != http.StatusUnprocessableEntity {
		t.Errorf("Restore() of garbage = %v, want a refusal 422", err)
	}
	if got, err := other.Restore(t.Context(), &tar); err != nil || got.Runs != 1 || restarts != 1 {
		t.Errorf("Restore() = %+v, %v and %d restarts; want a run, and one restart", got, err, restarts)
	}
	if err := FinishRestore(data, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(data, "runs/20270102-000000-going")); err == nil {
		t.Error("a run of the old state is still there")
	}
	if text, err := os.ReadFile(filepath.Join(data, "token")); err != nil || string(text) != planted()["token"] {
		t.Errorf("the token is %q (%v); one that is not in the backup stays", text, err)
	}
}

// A database with code of its own would run that code when the service writes to it.
func TestCheckBackupRefusesTriggers(t *testing.T) {
	dir := t.TempDir()
	db, _, err := store.OpenDatabase(t.Context(), filepath.Join(dir, queueFile), []string{`CREATE TABLE jobs (id TEXT);
		CREATE TRIGGER evil AFTER INSERT ON jobs BEGIN DELETE FROM jobs; END`})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := CheckBackup(t.Context(), dir); !errors.Is(err, backup.ErrHostile) || !strings.Contains(err.Error(), "triggers") {
		t.Errorf("CheckBackup() = %v, want ErrHostile that says triggers", err)
	}
}

// Files that were made to harm are refused before they count.
func TestCheckBackupRefuses(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a queue that is none":  {"queue.db": "not a database, but long enough to be read as the head of one, or so it seems to be"},
		"tokens of any scope":   {"credentials/credentials.json": `{"tokens":[{"id":"a","name":"x","scope":"root","sha256":""}]}`},
		"a later configuration": {"appliance.yaml": "colour: blue\n"},
	} {
		dir := t.TempDir()
		for file, text := range files {
			path := filepath.Join(dir, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if err := CheckBackup(t.Context(), dir); !errors.Is(err, backup.ErrHostile) {
			t.Errorf("%s: CheckBackup() = %v, want ErrHostile", name, err)
		}
	}
}
