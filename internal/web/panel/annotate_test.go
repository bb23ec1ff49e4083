package panel

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// TestAnnotate: a run in progress takes annotations over REST, each with the time of its arrival, and others refuse.
func TestAnnotate(t *testing.T) {
	st := emptyStore(t)
	ended := reporttest.Run(1, 1)
	ended.ID = "ended"
	addRun(t, st, ended)
	run := reporttest.Run(1, 1)
	run.ID, run.State = "going", store.StateRunning
	folder, err := store.Create(st.Root(), run)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := st.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, setup{Store: st, Version: "v1"})
	before := lab.Monotonic()
	for _, tt := range []struct{ run, body, want string }{
		{"going", `{"annotations":[{"text":"warm\u0000 <b>","colour":"#800000","ago_ms":5},{"op":"mark","text":"x","group":"server"}]}`, "204"},
		{"going", `{"annotations":[{"op":"mark"}]}`, "422 annotations[0]: text"},
		{"going", `{"annotations":[{"op":"draw","text":"x"}]}`, "422 op"},
		{"going", `{"annotations":[{"text":"x","colour":"red"}]}`, "422 colour"},
		{"going", `{"annotations":[{"text":"` + strings.Repeat("x", 5000) + `"}]}`, "422 text"},
		{"going", `{"annotations":[]}`, "422 annotations"},
		{"ended", `{"annotations":[{"text":"x"}]}`, "409 not in progress"},
		{"nope", `{"annotations":[{"text":"x"}]}`, "404 nope"},
	} {
		got := ask(t, s, http.MethodPost, "/api/v1/runs/"+tt.run+"/annotations", sending("", tt.body))
		status, text, _ := strings.Cut(tt.want, " ")
		if status != strings.Fields(got.Status)[0] || !strings.Contains(got.text, text) {
			t.Errorf("%s %.80s: %s %.300s, want %q", tt.run, tt.body, got.Status, got.text, tt.want)
		}
	}
	f, err := os.Open(filepath.Join(folder.Path(), store.AnnotationsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, left, err := store.ReadAnnotations(f, lab.MostRunAnnotations)
	if len(list) != 2 || left != 0 || err != nil {
		t.Fatalf("%d annotations were kept, %d are none, %v; want 2", len(list), left, err)
	}
	if a := list[0]; a.Op != lab.AnnotateSet || a.Text != "warm <b>" || a.Colour != "#800000" || a.Source != "panel" || a.Latest < before-5e6 ||
		a.Latest > lab.Monotonic()-5e6 || a.Wall.IsZero() {
		t.Errorf("the first is %+v", a)
	}
}
