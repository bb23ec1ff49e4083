package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/web/panel"
	"eidetic/systemd"
)

// The whole service in this process: ready, healthy to a stranger, its part
// seen to turn, stopped in order.
func TestServeTellsHealth(t *testing.T) {
	states := make(chan string, 1000)
	notifier := systemd.NewNotifier(
		func(s string) error { states <- s; return nil },
		10*time.Second,
		time.Now,
	) // a part that stalls for seconds turns
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	data := t.TempDir()
	cutOff := filepath.Join(data, UploadsDir, incoming+"1") // in an upload, when the service before was killed
	if err := errors.Join(os.Mkdir(filepath.Dir(cutOff), 0o755), os.WriteFile(cutOff, []byte("PK"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s := New(
		Options{
			Config:   DefaultConfig(),
			Data:     data,
			Token:    newToken(),
			TLS:      Certificate(DefaultConfig(), data, slog.New(slog.DiscardHandler)),
			Notifier: notifier,
			Warnings: []string{"mend me"},
			Log:      slog.New(slog.DiscardHandler),
		},
	)
	go func() { done <- s.Serve(ctx, listener) }()
	if got := <-states; !strings.HasPrefix(got, "READY=1\nSTATUS=panel at http://127.0.0.1:") {
		t.Fatalf("first state %q", got)
	}
	if got := <-states; got != "WATCHDOG=1" {
		t.Errorf("second state %q", got)
	}
	if _, err := os.Stat(cutOff); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half an upload is still there (%v)", err)
	}
	response, err := http.Get("http://" + listener.Addr().String() + "/api/v1/health")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	var got panel.Health
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != 200 || got.Status != "ok" || len(got.Warnings) != 1 || len(got.Parts) != 2 ||
		got.Parts[0].Name != "network" ||
		got.Parts[1].Name != "panel" || len(got.Fingerprint) != 64 {
		t.Errorf("health: status %d, %s; want 200, a warning, the fingerprint, and the parts network and panel", response.StatusCode, body)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for {
		if got := <-states; got == "STOPPING=1\nSTATUS=stopping" {
			return
		}
	}
}

// A stranger gets the health alone; the token, which is made once and kept, opens the rest.
func TestServeKeepsItsToken(t *testing.T) {
	data := t.TempDir()
	for range 2 {
		token, file, err := Token("", data)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if again, _, err := Token("", data); err != nil || again != token || len(token.Reveal()) < panel.MinToken || info.Mode().Perm() != 0o600 {
			t.Errorf("token %q, then %q (%v), mode %v", token, again, err, info.Mode())
		}
	}
	short := filepath.Join(data, "short")
	if err := os.WriteFile(short, []byte("abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Token(short, ""); err == nil || !strings.Contains(err.Error(), "3 characters") {
		t.Errorf("a short token: %v", err)
	}
}

func TestDamagedQueueIsPutAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, queueFile)
	if err := os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	queue, inMemory, err := openQueue(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil || inMemory != nil {
		t.Fatal(err, inMemory)
	}
	defer queue.Close()
	if jobs, err := queue.Jobs(t.Context()); err != nil || len(jobs) != 0 {
		t.Errorf("Jobs() of a new queue = %d jobs, %v; want 0, nil", len(jobs), err)
	}
	if _, err := os.Stat(path + ".damaged"); err != nil {
		t.Error(err)
	}
}

// A queue that cannot be opened and is not damaged stays where it is; the box
// starts without it.
func TestQueueThatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, queueFile)
	if err := os.Mkdir(path, 0o755); err != nil { // no file, whoever asks
		t.Fatal(err)
	}
	queue, inMemory, err := openQueue(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer queue.Close()
	if err := newDisk(dir, inMemory).problem(); err == nil || !strings.Contains(err.Error(), "start it again") {
		t.Errorf("with a queue in memory runs are accepted, or the reason is unclear: %v", err)
	}
	if jobs, err := queue.Jobs(t.Context()); err != nil || len(jobs) != 0 {
		t.Errorf("Jobs() of a queue in memory = %d jobs, %v; want 0, nil", len(jobs), err)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		t.Errorf("it was put aside (%v)", err)
	}
}
