package benchtable_test

import (
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/rigs/benchtable"
)

// TestWorse: what is worse by more than a tenth is named, if it does not hang on the machine's load.
func TestWorse(t *testing.T) {
	before := []benchtable.Result{
		benchtable.More("ratio", 300, "1"), benchtable.Less("allocations", 10, "1"), benchtable.More("speed", 300, "MB/s"),
		benchtable.More("recall", 1, ""), benchtable.More("gone", 5, "1"), benchtable.Less("none", 0, "1"),
	}
	for name, c := range map[string]struct {
		now   []benchtable.Result
		count int
		worse string
	}{
		"equal":               {before, 5, ""},
		"a little":            {[]benchtable.Result{benchtable.More("ratio", 271, "1"), benchtable.Less("allocations", 11, "1")}, 2, ""},
		"a ratio":             {[]benchtable.Result{benchtable.More("ratio", 133, "1")}, 1, "ratio: 133, was 300"},
		"a count":             {[]benchtable.Result{benchtable.Less("allocations", 12, "1")}, 1, "allocations: 12, was 10"},
		"from nothing":        {[]benchtable.Result{benchtable.Less("none", 1, "1")}, 1, "none: 1, was 0"},
		"better":              {[]benchtable.Result{benchtable.More("ratio", 900, "1"), benchtable.Less("allocations", 1, "1")}, 2, ""},
		"a speed":             {[]benchtable.Result{benchtable.More("speed", 30, "MB/s")}, 0, ""},
		"new, or of another":  {[]benchtable.Result{benchtable.More("new", 1, "1"), benchtable.Less("recall", 9, "")}, 0, ""},
		"the other direction": {[]benchtable.Result{benchtable.Less("ratio", 9000, "1")}, 0, ""},
	} {
		file := filepath.Join(t.TempDir(), "table.json")
		if err := benchtable.Write(file, c.now); err != nil {
			t.Fatal(err)
		}
		now, err := benchtable.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		count, worse := benchtable.Worse(before, now)
		if count != c.count || (len(worse) == 0) != (c.worse == "") || !strings.HasPrefix(strings.Join(worse, "; "), c.worse) {
			t.Errorf("%s: %d compared, %q worse; want %d, %q", name, count, worse, c.count, c.worse)
		}
	}
}
