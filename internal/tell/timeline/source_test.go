package timeline

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eidetic/analysis/trace"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

func namesOf(tl *trace.Timeline, kind string) (names []string) {
	for _, track := range tl.Tracks {
		for _, e := range track.Events {
			if track.Kind == kind {
				names = append(names, e.Name)
			}
		}
	}
	return names
}

// TestReader: a trial's timeline has what its files hold; an annotation of the run goes to the trial in which it came.
func TestReader(t *testing.T) {
	run := reporttest.Run(1, 2)
	dir := t.TempDir()
	for i, trial := range run.Trials { // one after the other
		trial.Events[0].Earliest += lab.Time(i) * 3600e9
	}
	if err := reporttest.Files(dir, run, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("run.json", "{}")
	write("trials/001/annotations.jsonl", `{"op":"mark","text":"from the page","source":"page","earliest_ns":1,"latest_ns":2}`+"\n{ damaged\n")
	write("trials/001/link.json", `{"bins":[{"down_bytes":7}]}`)
	first := run.Trials[0]
	write("trials/001/memory.jsonl", fmt.Sprintf(`{"t_ns":%d,"pid":7,"name":"renderer","rss_bytes":1048576}`, first.FirstFrame)+"\nno reading\n")
	first.Files["annotations"], first.Files["link"], first.Files["memory"] = "annotations.jsonl", "link.json", "memory.jsonl"
	end := first.FirstFrame
	for _, e := range first.Events {
		end = max(end, e.Latest)
	}
	for text, at := range map[string]lab.Time{"in it": first.FirstFrame + 1e9, "long after": end + 60e9} {
		if err := store.Annotate(dir, lab.Annotation{Op: "mark", Text: text, Source: "command", Wall: first.Wall, Earliest: at, Latest: at}); err != nil {
			t.Fatal(err)
		}
	}
	other := lab.Annotation{Op: "mark", Text: "another boot's", Source: "fifo", Wall: first.Wall.AddDate(0, 0, 1), Earliest: first.FirstFrame, Latest: first.FirstFrame}
	if err := store.Annotate(dir, other); err != nil {
		t.Fatal(err)
	}
	files, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	tl := NewReader(files).Of(first)
	got := namesOf(tl, trace.Annotation)
	slices.Sort(got)
	if !slices.Equal(got, []string{"from the page", "in it"}) {
		t.Errorf("annotations %q, want those of the trial", got)
	}
	if n := len(namesOf(tl, trace.Request)); n < 50 {
		t.Errorf("%d requests", n)
	}
	if got := namesOf(tl, trace.Link); len(got) != 1 || got[0] != "7 bytes down, 0 up" {
		t.Errorf("link %q", got)
	}
	if got := namesOf(tl, trace.Memory); len(got) != 1 || got[0] != "1.0 MiB" || !slices.Contains(tl.Notes, "memory.jsonl: 1 lines cannot be read, or are too many, and are left out") {
		t.Errorf("memory %q, notes %q", got, tl.Notes)
	}
	if !slices.ContainsFunc(tl.Notes, func(n string) bool { return strings.Contains(n, "annotations.jsonl: 1 lines cannot be read") }) {
		t.Errorf("notes %q, want one about the damaged line", tl.Notes)
	}
	first.Files["replay"] = "../../../etc/passwd"
	if n := len(namesOf(NewReader(files).Of(first), trace.Request)); n != 0 {
		t.Errorf("%d requests were read from outside the folder", n)
	}
}
