package compare

import (
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// TestSameRun: a run that is compared with itself is called that, and differs in nothing.
func TestSameRun(t *testing.T) {
	b, err := Runs(of("one", "", 1), of("one", "", 1), 0, 1)
	if err != nil || b.Comparison.Headline != "The same run" || b.Comparison.Verdict != lab.NoChange {
		t.Fatalf("Runs() of a run with itself = %+v, %v; want the same run", b, err)
	}
	for _, e := range b.Comparison.Effects {
		if e.Shift.Value != 0 || e.Finding == lab.Slower || e.Finding == lab.Faster {
			t.Errorf("%s differs by %+v; want 0", e.Metric, e.Shift)
		}
	}
	other, err := Runs(of("one", "", 1), of("two", "", 1), 0, 1)
	if err != nil || strings.Contains(other.Comparison.Headline, "same run") {
		t.Errorf("Runs() of two runs with equal values = %+v, %v; want not the same run", other, err)
	}
}
