package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// TestAnnotateLog: a marker that a command writes into a log of another clock joins it to the box's; the log's lines of
// the trial are on its timeline, within what the marker and the stamps let be known.
func TestAnnotateLog(t *testing.T) {
	made := reporttest.Run(1, 1)
	made.ID, made.State = "20261122-091400-logs", store.StateRunning
	folder, err := store.Create(t.TempDir(), made)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	dir, work := folder.Path(), t.TempDir()
	if err := reporttest.Files(dir, made, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := folder.Save(made); err != nil {
		t.Fatal(err)
	}
	command := func(want int, says string, args ...string) {
		t.Helper()
		var said bytes.Buffer
		status := run(t.Context(), append([]string{"annotate", "--run", dir}, args...), &streams{nil, &said, &said})
		if status != want || !strings.Contains(said.String(), says) {
			t.Errorf("annotate %q = %d, %s; want %d, %q", args, status, said.String(), want, says)
		}
	}
	log := filepath.Join(work, "shop.log")
	writer := filepath.Join(work, "writer.sh")
	// The other machine's clock is a day behind, and the trial was an hour ago.
	if err := os.WriteFile(writer, []byte("#!/bin/sh\necho \"$(date -u -d '1 day ago' +%Y-%m-%dT%H:%M:%S.%3NZ) $1\" >>"+log+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	command(exitGood, "", "--marker", writer)
	markers := keptNotes(t, dir)
	if len(markers) != 1 || markers[0].Group != "log markers" || !strings.HasPrefix(markers[0].Text, "eidetic-marker-") {
		t.Fatalf("markers %+v", markers)
	}
	trial := made.Trials[0]
	marked, inTrial := markers[0].Earliest, trial.FirstFrame+lab.Time(time.Second)
	written, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	stamp, err := time.Parse(time.RFC3339, strings.Fields(string(written))[0])
	if err != nil {
		t.Fatal(err)
	}
	line := stamp.Add(time.Duration(inTrial - marked)).Format("2006-01-02T15:04:05.000Z")
	outside := stamp.Add(time.Duration(inTrial-marked) - time.Hour).Format("2006-01-02T15:04:05.000Z")
	text := fmt.Sprintf("%s too early\n%s GET /cart took 20 ms\nno stamp\n%s", outside, line, written)
	if err := os.WriteFile(log, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(work, "rules.yaml")
	if err := os.WriteFile(rules, []byte("- match: 'GET (\\S+) took (\\d+) ms'\n  as: span\n  text: GET $1\n  ms: $2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	made.State = store.StateDone
	if err := folder.Save(made); err != nil {
		t.Fatal(err)
	}
	command(exitGood, "1 lines are on the timeline", "--log", log, "--rules", rules)
	notes := keptNotes(t, dir)
	last := notes[len(notes)-1]
	bound := lab.Time(float64(marked-inTrial+10e9)*200e-6) + markers[0].Latest - markers[0].Earliest + 10e6
	if from := inTrial - 20e6; last.Text != "GET /cart" || last.Lasts != 20e6 || last.Earliest > from+bound || last.Latest < from-bound || last.Latest-last.Earliest > 2*bound {
		t.Errorf("the line is at %+v, want it near %d, within %d", last, from, bound)
	}
	page, err := os.ReadFile(filepath.Join(dir, "timeline.html"))
	if err != nil || !bytes.Contains(page, []byte("GET /cart")) {
		t.Errorf("the page of timelines has no such line: %v", err)
	}
	command(exitUsage, "already on the row", "--log", log)
	command(exitUsage, "choose from", "--log", log, "--as", "csv", "--group", "again")
	command(exitUsage, "and --marker alone", "--log", log, "--mark")
	command(exitUsage, "the run is done", "--marker", "true") // it has ended
}
