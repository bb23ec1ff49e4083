package panel

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"eidetic/internal/box/credentials"
	"eidetic/internal/lab"
)

// fakeBackups writes a few bytes, and restores what begins with "backup".
type fakeBackups struct {
	fails    error // before the first byte
	breaks   error // after it
	restored *int
}

func (b fakeBackups) Backup(_ context.Context, w io.Writer, secrets bool) error {
	if b.fails != nil {
		return b.fails
	}
	text := "backup"
	if secrets {
		text = "backup with secrets"
	}
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	return b.breaks
}

func (b fakeBackups) Restore(_ context.Context, r io.Reader) (Backup, error) {
	text, err := io.ReadAll(r)
	if err != nil || !strings.HasPrefix(string(text), "backup") {
		return Backup{}, &Refusal{http.StatusUnprocessableEntity, errors.Join(errors.New("this is no backup"), err)}
	}
	if b.restored != nil {
		*b.restored++
	}
	return Backup{Runs: 3}, nil
}

func TestBackupRoutes(t *testing.T) {
	restored := 0
	log := credentials.Open(credentials.Options{Own: lab.NewSecret(token)})
	s := newServer(t, setup{Store: newStore(t), Token: lab.NewSecret(token), Credentials: log, Backups: fakeBackups{restored: &restored}})
	for _, c := range []struct {
		method, path, body string
		status             int
		within             string
	}{
		{"GET", "/api/v1/backup", "", 200, "backup"},
		{"GET", "/api/v1/backup?secrets=true", "", 200, "backup with secrets"},
		{"GET", "/api/v1/backup?secrets=perhaps", "", 422, "neither true nor false"},
		{"HEAD", "/api/v1/backup", "", 200, ""},
		{"POST", "/api/v1/restore", "backup", 422, "replace=everything"},
		{"POST", "/api/v1/restore?replace=everything", "garbage", 422, "no backup"},
		{"POST", "/api/v1/restore?replace=everything", "backup", 202, `"runs":3`},
	} {
		got := ask(t, s, c.method, c.path, sending(token, c.body))
		if got.StatusCode != c.status || !strings.Contains(got.text, c.within) {
			t.Errorf("%s %s = %d %s, want %d with %q", c.method, c.path, got.StatusCode, got.text, c.status, c.within)
		}
	}
	if restored != 1 {
		t.Errorf("%d restores, want 1", restored)
	}
	events := ask(t, s, http.MethodGet, "/api/v1/audit", sending(token, "")).text
	for _, want := range []string{`"what":"GET /api/v1/backup with secrets"`, `"what":"POST /api/v1/restore: a backup of`} {
		if !strings.Contains(events, want) {
			t.Errorf("the audit log has no %s: %s", want, events)
		}
	}
}

// A backup that fails after its first byte ends the connection, so that nobody takes it for whole.
func TestBackupThatBreaks(t *testing.T) {
	st := newStore(t)
	s := newServer(t, setup{Store: st, Backups: fakeBackups{breaks: errors.New("the disk failed")}})
	answer, err := s.Client().Get(s.URL + "/api/v1/backup")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err == nil {
		t.Errorf("the answer ended well with %q, want an error", text)
	}
	s = newServer(t, setup{Store: st, Backups: fakeBackups{fails: errors.New("the disk failed")}})
	if got := ask(t, s, http.MethodGet, "/api/v1/backup", nil); got.StatusCode != 500 || got.Header.Get("Content-Disposition") != "" {
		t.Errorf("a backup that fails at once = %d %v, want 500 and no file", got.StatusCode, got.Header)
	}
}
