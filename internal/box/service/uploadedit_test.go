package service

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/run/inspect"
	"eidetic/internal/web/panel"
	"eidetic/netlab/archive"
)

// shopUploads are uploads with shop.wacz, a recording of a page and an advertisement, and its ETag.
func shopUploads(t *testing.T) (a Uploads, etag string) {
	t.Helper()
	a = Uploads{Dir: filepath.Join(t.TempDir(), "archives")}
	var list []*lab.Exchange
	for i, url := range []string{"https://shop.test/", "https://ads.test/x.png"} {
		list = append(list, &lab.Exchange{Order: i, Method: "GET", URL: url, Status: 200, Protocol: "h2", Start: time.Duration(i) * time.Second,
			Response: lab.Message{Body: []byte("body")}, Chunks: []lab.Chunk{{Bytes: 4}}})
	}
	path := filepath.Join(t.TempDir(), "shop.wacz")
	if err := archive.Save(path, archive.New(list, nil, nil, archive.CreateOptions{Wall: time.Unix(1_700_000_000, 0)})); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put, err := a.Put(t.Context(), "shop.wacz", "", bytes.NewReader(content), nil)
	if err != nil {
		t.Fatal(err)
	}
	return a, put.ETag
}

func statusOf(err error) int {
	var refused *panel.Refusal
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}

// filesOf lists what is in the folder.
func filesOf(t *testing.T, a Uploads) string {
	t.Helper()
	entries, err := os.ReadDir(a.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestEdit(t *testing.T) {
	a, etag := shopUploads(t)
	file := filepath.Join(a.Dir, "shop.wacz")
	ads := panel.ArchiveEdit{LeaveOut: []string{"*://ads.test/*"}}
	made, err := a.Edit(t.Context(), file, "small.wacz", "", ads, nil, nil)
	if err != nil || made.Left != 1 || made.Name != "small.wacz" || made.Bytes == 0 || made.Quality == nil || made.Quality.Score != 1 {
		t.Fatalf("Edit() = %+v, %v; want a recording that lacks one request", made, err)
	}
	log := filepath.Join(t.TempDir(), "replay.jsonl")
	ids, err := archive.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, []byte(`{"exchange":"`+ids.Exchanges()[1].ID+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	used, err := a.Edit(t.Context(), file, "used.wacz", "", panel.ArchiveEdit{}, []string{log}, nil)
	if c, err2 := a.Contents(t.Context(), filepath.Join(a.Dir, "used.wacz")); err != nil || err2 != nil || used.Left != 1 || c.Requests[0].URL != "https://ads.test/x.png" {
		t.Errorf("a recording of what was used: %+v, %v, %v; want the advertisement alone", used, err, err2)
	}
	for _, c := range []struct {
		name, into, match string
		edit              panel.ArchiveEdit
		status            int
		says              string
	}{
		{"in place, with an old ETag", "shop.wacz", `"1-1"`, ads, http.StatusPreconditionFailed, "was replaced since"},
		{"a name that is taken", "used.wacz", "", ads, http.StatusPreconditionFailed, "choose another name"},
		{"no change", "new.wacz", "", panel.ArchiveEdit{LeaveOut: []string{"none"}}, http.StatusUnprocessableEntity, "nothing is changed"},
		{"nothing left", "new.wacz", "", panel.ArchiveEdit{LeaveOut: []string{"*"}}, http.StatusUnprocessableEntity, "nothing would be left"},
		{"no edit of an answer", "new.wacz", "", panel.ArchiveEdit{Answers: []panel.ArchiveAnswer{{URL: "*"}}}, http.StatusUnprocessableEntity, "answers[0]: say what to change"},
		{"a bad header", "new.wacz", "", panel.ArchiveEdit{Answers: []panel.ArchiveAnswer{{URL: "*", Set: []string{"no"}}}}, http.StatusUnprocessableEntity, "answers[0]"},
		{"a bad name", "../new.wacz", "", ads, http.StatusUnprocessableEntity, "not a name"},
	} {
		_, err := a.Edit(t.Context(), file, c.into, c.match, c.edit, nil, nil)
		if statusOf(err) != c.status || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), a.Dir) {
			t.Errorf("%s: %v; want %d %q", c.name, err, c.status, c.says)
		}
	}
	inPlace, err := a.Edit(t.Context(), file, "shop.wacz", etag, ads, nil, nil)
	if c, err2 := a.Contents(t.Context(), file); err != nil || err2 != nil || inPlace.ETag == etag || c.Exchanges != 1 {
		t.Errorf("in place: %+v, %v, %v; want another ETag and one request", inPlace, err, err2)
	}
	if got := filesOf(t, a); got != "shop.wacz small.wacz used.wacz" {
		t.Errorf("the folder has %s", got)
	}
}

// A change that its process does not survive leaves all as it was, and so does a service that ends meanwhile.
func TestEditThatFails(t *testing.T) {
	a, etag := shopUploads(t)
	a.Check = inspect.Checker{Command: []string{"/bin/sh", "-c", `printf half > "$2"; kill -9 $$`}}
	file := filepath.Join(a.Dir, "shop.wacz")
	_, err := a.Edit(t.Context(), file, "shop.wacz", etag, panel.ArchiveEdit{LeaveOut: []string{"ads"}}, nil, nil)
	if statusOf(err) != http.StatusUnprocessableEntity {
		t.Errorf("Edit() = %v; want 422", err)
	}
	if got := filesOf(t, a); got != "shop.wacz" {
		t.Errorf("the folder has %s; want the recording alone", got)
	}
	cut := filepath.Join(a.Dir, incoming+"1")
	if err := errors.Join(os.Mkdir(cut, 0o700), os.WriteFile(filepath.Join(cut, "shop.wacz"), []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	a.removeIncomplete(slog.New(slog.DiscardHandler))
	if got := filesOf(t, a); got != "shop.wacz" {
		t.Errorf("after a start the folder has %s; want the recording alone", got)
	}
}

func TestRename(t *testing.T) {
	a, etag := shopUploads(t)
	leaving := panel.ArchiveEdit{LeaveOut: []string{"ads"}}
	if _, err := a.Edit(t.Context(), filepath.Join(a.Dir, "shop.wacz"), "taken.wacz", "", leaving, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, to string
		status   int
	}{{"none.wacz", "new.wacz", 404}, {"shop.wacz", "taken.wacz", 409}, {"shop.wacz", "shop.wacz", 409}, {"shop.wacz", "../x.wacz", 422}, {"shop.wacz", "shop", 422}} {
		if _, err := a.Rename(c.name, c.to); statusOf(err) != c.status {
			t.Errorf("Rename(%s, %s) = %v; want %d", c.name, c.to, err, c.status)
		}
	}
	got, err := a.Rename("shop.wacz", "shop-2027.wacz")
	if err != nil || got.Name != "shop-2027.wacz" || got.ETag != etag {
		t.Errorf("Rename() = %+v, %v; want the same recording with another name", got, err)
	}
	if got := filesOf(t, a); got != "shop-2027.wacz taken.wacz" {
		t.Errorf("the folder has %s", got)
	}
}
