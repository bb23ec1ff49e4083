package inspect

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/netlab/archive"
	"eidetic/netlab/archive/archivetest"
)

// A change is made in a process of its own, or refused with its reason.
func TestChange(t *testing.T) {
	t.Setenv(half, "serve")
	c := Checker{Command: []string{os.Args[0]}, Turn: func(context.Context) (func(), error) { return func() {}, nil }}
	file, out := good(t), filepath.Join(t.TempDir(), "new.wacz")
	edit := archive.Change{Answers: []archive.AnswerChange{{URL: "http://a.test/", Edit: archive.Edit{Status: 503}}}}
	done, err := c.Change(t.Context(), file, out, edit)
	if err != nil || done.Refused != "" || done.Edited != 1 || done.Left != 0 {
		t.Fatalf("Change() = %+v, %v; want one answer changed", done, err)
	}
	a, err := archive.Open(out)
	if err != nil || len(a.Exchanges()) != 1 || a.Exchanges()[0].Status != 503 {
		t.Errorf("the new recording: %v; want the status 503", err)
	}
	done, err = c.Change(t.Context(), file, out, archive.Change{LeaveOut: []string{"*"}})
	if err != nil || !strings.Contains(done.Refused, "nothing would be left") {
		t.Errorf("Change() that leaves nothing = %+v, %v; want a refusal", done, err)
	}
	for _, h := range archivetest.Set() {
		if h.Name != "header-lines.warc.gz" && h.Name != "package.wacz" && h.Name != "one-gzip.warc" {
			continue
		}
		file, out := filepath.Join(t.TempDir(), h.Name), filepath.Join(t.TempDir(), "new.wacz")
		if err := os.WriteFile(file, h.Make(), 0o600); err != nil {
			t.Fatal(err)
		}
		done, err := c.Change(t.Context(), file, out, archive.Change{LeaveOut: []string{"nothing-has-this"}})
		if err != nil || done.Refused == "" {
			t.Errorf("Change(%s) = %+v, %v; want a refusal", h.Name, done, err)
		}
		if _, err := os.Lstat(out); err == nil {
			t.Errorf("Change(%s) left a file", h.Name)
		}
	}
	t.Setenv(half, "hoard")
	if done, err := c.Change(t.Context(), file, out, edit); err != nil || !strings.Contains(done.Refused, "more memory than it may") {
		t.Errorf("Change() by a process that takes too much = %+v, %v; want that said", done, err)
	}
}
