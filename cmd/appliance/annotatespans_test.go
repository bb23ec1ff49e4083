package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report"
	"eidetic/internal/tell/report/reporttest"
	"eidetic/netlab/archive"
)

// TestAnnotateSpans: the spans of a back end, whose clock is a day ahead, stand at the request of each trial that they
// served when it was recorded, also where they failed.
func TestAnnotateSpans(t *testing.T) {
	made := reporttest.Run(1, 2)
	made.ID, made.State = "20261122-091400-spans", store.StateDone
	folder, err := store.Create(filepath.Join(t.TempDir(), "out [a]"), made) // a name that is a pattern, too
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	dir := folder.Path()
	if err := reporttest.Files(dir, made, reporttest.Options{}); err != nil {
		t.Fatal(err)
	}
	sent := time.Date(2026, 11, 20, 9, 14, 0, 0, time.UTC)
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	exchange := &lab.Exchange{
		Method: "GET", URL: "https://api.shop.example/stock", Status: 200, Protocol: "h2", TLS: "tls/1.3", Wall: sent, FirstByte: 80 * time.Millisecond,
		Request:  lab.Message{Header: []lab.HeaderField{{Name: "traceparent", Value: "00-" + trace + "-" + parent + "-01"}}},
		Response: lab.Message{Header: []lab.HeaderField{{Name: "content-type", Value: "text/plain"}}, Body: []byte("7")}, Chunks: []lab.Chunk{{At: 90 * time.Millisecond, Bytes: 1}},
	}
	path := filepath.Join(dir, "archive.wacz")
	command := func(want int, says string, args ...string) {
		t.Helper()
		var said bytes.Buffer
		status := run(t.Context(), append([]string{"annotate", "--run", dir}, args...), &streams{nil, &said, &said})
		if status != want || !strings.Contains(said.String(), says) {
			t.Errorf("annotate %q = %d, %s; want %d, %q", args, status, said.String(), want, says)
		}
	}
	begun := sent.Add(24*time.Hour + 10*time.Millisecond).UnixNano()
	span := `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},"scopeSpans":[{"spans":[{"traceId":"%s",` +
		`"spanId":"%s","parentSpanId":"%s","name":"%s","startTimeUnixNano":"%d","endTimeUnixNano":"%d","status":{"code":%d}}]}]}]}` + "\n"
	spans := filepath.Join(t.TempDir(), "traces.json")
	text := fmt.Sprintf(span, trace, "0100000000000001", parent, "GET /stock", begun, begun+60e6, 0) +
		fmt.Sprintf(span, trace, "0100000000000002", "0100000000000001", "SELECT <b>", begun+10e6, begun+40e6, 2) +
		fmt.Sprintf(span, strings.Repeat("9", 32), "0100000000000003", "", "another", begun, begun+5, 0) + `{"resourceSpans":[`
	if err := os.WriteFile(spans, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	bare := *exchange
	bare.Request = lab.Message{}
	if err := archive.Save(path, archive.New([]*lab.Exchange{&bare}, nil, nil, archive.CreateOptions{Wall: sent})); err != nil {
		t.Fatal(err)
	}
	if err := folder.Save(made); err != nil {
		t.Fatal(err)
	}
	command(exitUsage, "no recorded request has a traceparent", "--otlp", spans)
	if err := archive.Save(path, archive.New([]*lab.Exchange{exchange}, nil, nil, archive.CreateOptions{Wall: sent})); err != nil {
		t.Fatal(err)
	}
	recorded, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	asked := make([]lab.Time, 3)
	for _, trial := range made.Trials { // the page asks for it once in each trial
		asked[trial.Number] = trial.StartTime + 200e6
		line := fmt.Sprintf(`{"time_ns":%d,"method":"GET","url":"https://api.shop.example/stock","stage":"exact","score":1,"exchange":%q,"status":200,"first_byte_ns":80000000,"duration_ns":90000000}`,
			asked[trial.Number], recorded.Exchanges()[0].ID)
		log, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("trials/%03d", trial.Number), trial.Files["replay"]), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = fmt.Fprintln(log, line); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	command(exitGood, "4 spans are on the timelines, at 2 requests, each known within 30.000 ms or better; 1 are of traces that no recorded request has, 0 have no ID or no time; "+
		"message 4: the file ends within it, so that it is left out", "--otlp", spans)
	notes := keptNotes(t, dir)
	if len(notes) != 4 {
		t.Fatalf("%d notes, want 4: %+v", len(notes), notes)
	}
	for i, want := range []lab.Annotation{
		{Text: "GET /stock", Earliest: asked[1], Latest: asked[1] + 30e6, Lasts: 60e6}, {Text: "SELECT <b> (failed)", Earliest: asked[1] + 10e6, Latest: asked[1] + 40e6, Lasts: 30e6, Colour: "#b3261e"},
	} {
		got := notes[i]
		if got.Text != want.Text || got.Earliest != want.Earliest || got.Latest != want.Latest || got.Lasts != want.Lasts || got.Colour != want.Colour || got.Group != "back end: shop" {
			t.Errorf("note %d is %+v, want %+v", i, got, want)
		}
	}
	var said bytes.Buffer
	if status := run(t.Context(), []string{"timeline", dir, "--trial", "2", "--text", "--row", "annotation"}, &streams{nil, &said, &said}); status != exitGood ||
		!strings.Contains(said.String(), "back end: shop") || !strings.Contains(said.String(), "SELECT <b> (failed)") {
		t.Errorf("timeline --text = %d, %s", status, said.String())
	}
	page, err := os.ReadFile(filepath.Join(dir, "timeline.html"))
	if err != nil || !bytes.Contains(page, []byte("back end: shop")) {
		t.Errorf("the page of timelines has no back end: %v", err)
	}
	if err := report.Write(dir, made); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(dir, report.FileName))
	if err != nil {
		t.Fatal(err)
	}
	command(exitGood, "so that it is left out. They replace the 4 of an earlier import.", "--otlp", spans)
	if again := keptNotes(t, dir); !slices.Equal(again, notes) {
		t.Errorf("imported again, there are %+v, want %+v", again, notes)
	}
	if again, err := os.ReadFile(filepath.Join(dir, report.FileName)); err != nil || !bytes.Equal(again, written) {
		t.Errorf("the report that an import writes differs from the run's own, which has the curves of its trials: %d and %d bytes, %v", len(again), len(written), err)
	}
	others := filepath.Join(t.TempDir(), "others.json")
	if err := os.WriteFile(others, []byte(fmt.Sprintf(span, strings.Repeat("9", 32), "0100000000000003", "", "another", begun, begun+5, 0)), 0o644); err != nil {
		t.Fatal(err)
	}
	command(exitGood, "0 spans are on the timelines", "--otlp", others)
	if again := keptNotes(t, dir); len(again) != 4 {
		t.Errorf("after an import of nothing there are %d notes, want the 4 of before", len(again))
	}
	made.State = store.StateRunning
	if err := folder.Save(made); err != nil {
		t.Fatal(err)
	}
	command(exitGood, "The run is in progress, with 2 trials so far", "--otlp", spans)
	made.Trials = nil
	if err := folder.Save(made); err != nil {
		t.Fatal(err)
	}
	command(exitUsage, "has no trial yet", "--otlp", spans)
	command(exitUsage, "and --marker alone", "--otlp", spans, "--mark")
}
