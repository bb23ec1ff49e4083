package panel

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"eidetic/internal/base/slots"
	"eidetic/internal/tell/export"
	"eidetic/internal/tell/report/reporttest"
)

// REST has every format, as a file that a browser saves and does not show.
func TestExportRun(t *testing.T) {
	st := emptyStore(t)
	run := reporttest.Compared(1, 8, 100)
	run.Name = "<script>alert(1)</script>"
	bare := reporttest.Run(1, 2)
	bare.ID = "bare"
	for _, t := range bare.Trials {
		t.Valid = false
	}
	addRun(t, st, bare)
	addRun(t, st, run)
	s := newServer(t, setup{Store: st, Version: "v1"})
	at := "/api/v1/runs/" + run.ID + "/export?format="
	for _, f := range export.Formats() {
		got := ask(t, s, http.MethodGet, at+f.Name, nil)
		if got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") != f.Type || got.text == "" {
			t.Errorf("%s: %s, %q; want 200 and %s", f.Name, got.Status, got.Header.Get("Content-Type"), f.Type)
		}
		if saved := got.Header.Get("Content-Disposition"); !strings.HasPrefix(saved, "attachment; filename="+run.ID+"-"+f.Name+".") {
			t.Errorf("%s: Content-Disposition %q; want a file's name", f.Name, saved)
		}
	}
	for query, want := range map[string]string{
		at + "xls":                                "422 format",
		"/api/v1/runs/nope/export?format=csv":     "404 nope",
		"/api/v1/runs/bare/export?format=picture": "409 no pictures",
		at + "markdown&picture=a.png&report=https%3A%2F%2Fb.example%2Fr": "200 ](<a.png>)",
	} {
		got := ask(t, s, http.MethodGet, query, nil)
		status, text, _ := strings.Cut(want, " ")
		if status != strings.Fields(got.Status)[0] || !strings.Contains(got.text, text) {
			t.Errorf("%s: %s %.300s, want %q", query, got.Status, got.text, want)
		}
	}
}

// An export that would fill the memory of the box is refused, however it is written.
func TestExportIsBounded(t *testing.T) {
	var b boundedText
	piece := strings.Repeat("x", 1<<20)
	for range maxExport >> 20 {
		if _, err := io.WriteString(&b, piece); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(&b, "x"); err == nil {
		t.Errorf("%d bytes are kept; want at most %d", b.kept.Len(), maxExport)
	}
}

// Of comparisons and exports one is made at a time, and whoever leaves waits no longer.
func TestTurnEndsWithItsClient(t *testing.T) {
	one := slots.NewTurn(1)
	done, err := one.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := one.Take(gone); err == nil {
		t.Error("two have the turn")
	}
	done()
	if _, err := one.Take(t.Context()); err != nil {
		t.Errorf("after it was given back: %v", err)
	}
}
