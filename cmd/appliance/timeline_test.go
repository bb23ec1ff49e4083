package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/tell/report"
	"eidetic/internal/tell/report/reporttest"
)

// TestTimelineText: a trial is a tree with times, also by the link to the newest run; rows can be chosen.
func TestTimelineText(t *testing.T) {
	made := reporttest.Run(1, 2)
	out := t.TempDir()
	dir := filepath.Join(out, made.ID)
	if err := reporttest.Files(dir, made, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	writeResult(t, filepath.Join(dir, "run.json"), made)
	if err := os.Symlink(made.ID, filepath.Join(out, "latest")); err != nil {
		t.Fatal(err)
	}
	command := func(want int, args ...string) string {
		t.Helper()
		var said bytes.Buffer
		if status := run(t.Context(), append([]string{"timeline", out}, args...), &streams{nil, &said, &said}); status != want {
			t.Errorf("timeline %q = %d, want %d\n%s", args, status, want, said.String())
		}
		return said.String()
	}
	text := command(exitGood, "--trial", "2", "--text", "--most", "5")
	for _, has := range []string{"Trial 2, control: ", "\nScreen\n", "\nRequests\n", "  and ", "GET https://", "[status 200"} {
		if !strings.Contains(text, has) {
			t.Errorf("the text has no %q:\n%s", has, text)
		}
	}
	if text := command(exitGood, "--text", "--row", "request"); strings.Contains(text, "\nScreen\n") || !strings.Contains(text, "\nRequests\n") {
		t.Errorf("rows that were not asked for, or none:\n%s", text)
	}
	if text := command(exitUsage, "--trial", "9", "--text"); !strings.Contains(text, "no trial 9") {
		t.Error(text)
	}
	if text := command(exitCannot); !strings.Contains(text, "--text works before") {
		t.Error(text)
	}
	if err := report.Write(dir, made); err != nil {
		t.Fatal(err)
	}
	if text := command(exitGood, "--trial", "2"); !strings.HasSuffix(text, "timeline.html#2\n") {
		t.Errorf("the page is at %q", text)
	}
}
