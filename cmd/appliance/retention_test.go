package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"eidetic/internal/keep/retention"
	"eidetic/internal/keep/store"
	"eidetic/internal/tell/report/reporttest"
	"eidetic/internal/web/panel"
)

// oneOld would delete the evidence of one run, and counts how often it did.
type oneOld struct{ applied *int }

func (oneOld) Policy() retention.Policy { return retention.Policy{} }

func (oneOld) Preview(_ context.Context, p retention.Policy) (panel.Retention, error) {
	r := panel.Retention{Policy: p, Free: 7e11, Disk: 1e12}
	if p.Set() {
		r.Delete = []retention.Deletion{{Run: "20260101-000000-old", Bytes: 5e8, Why: "older than 30 days"}}
		r.Kept = []retention.Kept{{Run: "20260102-000000-release", Bytes: 4e8, Needed: "it is pinned"}}
		r.Frees, r.Short = 5e8, 1e8
	}
	return r, nil
}

func (o oneOld) Apply(ctx context.Context, p retention.Policy) (panel.Retention, error) {
	*o.applied++
	return o.Preview(ctx, p)
}

func TestRetentionAndPinCommands(t *testing.T) {
	b := newTestBox(t, alone)
	f, err := store.Create(b.data, reporttest.Run(1, 6))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv(tokenVariable, b.token)
	for _, c := range []struct {
		args    []string
		status  int
		says    string
		applied int
	}{
		{[]string{"retention", "--dry-run"}, exitGood, "The box keeps everything", 0},
		{[]string{"retention", "--dry-run", "--keep-days", "30"}, exitGood, "to delete: the evidence of 1 runs, 500 MB", 0},
		{[]string{"retention", "--keep-days", "30"}, exitGood, "it is pinned", 1},
		{[]string{"retention", "--keep-gb", "1.5", "--json"}, exitGood, `"keep_gb": 1.5`, 2},
		{[]string{"retention", "--keep-days=-1"}, exitUsage, "keep_days", 2},
		{[]string{"pin", "20261121-091400-demo", "--why", "the release"}, exitGood, "is pinned", 2},
		{[]string{"pin", "20261121-091400-demo", "--remove"}, exitGood, "not pinned any more", 2},
		{[]string{"pin", "nope"}, exitUsage, "there is no run", 2},
	} {
		var out bytes.Buffer
		status := run(t.Context(), append(c.args, "--box", b.url()), &streams{strings.NewReader(""), &out, &out})
		if status != c.status || !strings.Contains(out.String(), c.says) || b.retained != c.applied {
			t.Errorf("%v: status %d, %d times applied, %q; want %d, %d, %q", c.args, status, b.retained, out.String(), c.status, c.applied, c.says)
		}
	}
}
