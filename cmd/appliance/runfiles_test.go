package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunSendsFiles: a plan that is carried out on a box brings what lies beside it, and one that lacks
// a file is refused here, with its line.
func TestRunSendsFiles(t *testing.T) {
	b := newTestBox(t, alone)
	const plan = "../../docs/plans/shop-journey.yaml"
	c := b.client(t, func(c *RunCmd) { c.Plan, c.Page = plan, nil })
	if got := ends(t.Context(), c); got.status != exitGood {
		t.Fatalf("status %d: %s%s", got.status, got.out, got.err)
	}
	asked := <-b.asked
	want, err := os.ReadFile("../../docs/plans/arne-vase.png")
	if err != nil {
		t.Fatal(err)
	}
	if len(asked.Steps) < 6 || len(asked.Files) != 1 || !bytes.Equal(asked.Files["arne-vase.png"], want) {
		t.Errorf("the box was asked for %d steps with the files %d; want the journey with its picture", len(asked.Steps), len(asked.Files))
	}
	text, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "plan.yaml") // without the picture
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		t.Fatal(err)
	}
	got := ends(t.Context(), b.client(t, func(c *RunCmd) { c.Plan, c.Page = copied, nil }))
	for _, say := range []string{copied + ":", "arne-vase.png", "not beside the plan"} {
		if got.status != exitUsage || !strings.Contains(got.err, say) {
			t.Errorf("without the picture: status %d, %q; want %d and %q", got.status, got.err, exitUsage, say)
		}
	}
}
