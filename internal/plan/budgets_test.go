package plan

import (
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// A budget of a metric or of a step that there is not is refused, with the nearest name that there is: it would never
// be said to be kept.
func TestCheckBudgets(t *testing.T) {
	for name, c := range map[string]struct {
		max  float64
		want string // "" accepts
	}{
		"speed_index_ms":            {1000, ""},
		"pay/time_to_stable_ms":     {1000, ""},
		"speed_index_ms@hero":       {1000, ""},
		"speed_index_ms ":           {0, "budgets.speed_index_ms : there is no metric of this name: did you mean speed_index_ms?"},
		"speedindex":                {1000, "budgets.speedindex: there is no metric of this name: did you mean speed_index_ms?"},
		"time_to_stabel_ms":         {1000, "did you mean time_to_stable_ms?"},
		"pya/speed_index_ms":        {1000, `the plan has no step "pya": did you mean pay?`},
		"pay/speedindex":            {1000, "did you mean speed_index_ms?"},
		"first_content_ms":          {0, "budgets.first_content_ms.max: 0: a number above 0"},
		"":                          {1, "1 to 300 bytes"},
		strings.Repeat("x", 301):    {1, "1 to 300 bytes"},
		"\xff\x00" + RevisionMark:   {1, "there is no metric of this name"},
		strings.Repeat("/", 300):    {1, "there is no metric of this name"},
		strings.Repeat("pay/@", 50): {1, "there is no metric of this name"},
	} {
		p := good()
		p.Steps = []lab.Step{{Open: "https://x.test/"}, {Name: "pay", Click: "css #pay"}}
		p.Budgets = map[string]lab.Budget{name: {Max: c.max}}
		err := check(p)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("Check(a budget of %q) = %v; want %q", name, err, c.want)
		}
	}
}
