package metric

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// Every metric has an entry that says all of it, and a name and a label of its own.
func TestEntries(t *testing.T) {
	names, labels := map[string]ID{}, map[string]ID{}
	for _, m := range All() {
		e := m.Entry()
		if e.Name == "" || e.Label == "" || e.Short == "" || e.Method == "" || e.Better == "" || e.Scope == "" || e.Doc == "" {
			t.Errorf("metric %d: %+v; want name, label, short text, method, direction, scope and document", m, e)
		}
		for seen, text := range map[*map[string]ID]string{&names: e.Name, &labels: e.Label} {
			if other, twice := (*seen)[text]; twice {
				t.Errorf("%q is of %v and of %v; want one metric", text, other, m)
			}
			(*seen)[text] = m
		}
		if strings.HasSuffix(e.Name, "_ms") != (e.Unit == "ms") {
			t.Errorf("%s has the unit %q; want ms if the name says so", m, e.Unit)
		}
		if e.Instant && e.Unit != "ms" || e.Guard && e.Better == Neither {
			t.Errorf("%s: %+v; want an instant in ms, and a guard of which some values are better", m, e)
		}
		for _, g := range e.Groups {
			if g != Load && len(InGroup(g)) == 0 {
				t.Errorf("%s is in the group %q; want one of %q", m, g, Groups())
			}
		}
		if got, ok := Named(e.Name); !ok || got != m {
			t.Errorf("Named(%q) = %v, %v; want %v, true", e.Name, got, ok, m)
		}
	}
	if m, ok := Named(""); ok || m != 0 {
		t.Errorf("Named() of nothing = %v, %v; want none", m, ok)
	}
}

// A plan's schema lists the groups.
func TestGroupsInThePlan(t *testing.T) {
	field, _ := reflect.TypeFor[lab.Measure]().FieldByName("Metrics")
	if doc, want := field.Tag.Get("doc"), "all (every index of a page load)"; !strings.Contains(doc, want) {
		t.Errorf("lab.Measure says %q; want %q", doc, want)
	} else if listed := strings.Split(doc[strings.Index(doc, want)+len(want)+2:], ", "); !sameWords(listed, Groups()) {
		t.Errorf("lab.Measure lists the groups %q; want %q", listed, Groups())
	}
}

func sameWords(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func TestGuards(t *testing.T) {
	if got, want := strings.Join(Names(Guards()), " "), "speed_index_ms time_to_stable_ms first_visual_change_ms last_visual_change_ms"; got != want {
		t.Errorf("Guards() = %s; want %s", got, want)
	}
	for name, want := range map[string]bool{
		"speed_index_ms": true, "time_to_stable_ms": true, "unique_fps": false, "speed_index_ms@list": false, "open/speed_index_ms": false,
		"open/time_to_end_ms": true, "a/b/response_ms": true, "time_to_end_ms": false, "no_such_metric_ms": false, "": false,
	} {
		if got := IsGuard(name); got != want {
			t.Errorf("IsGuard(%q) = %v; want %v", name, got, want)
		}
	}
	for name, want := range map[string]bool{"animation_fps@list": true, "open/animation_fps@list": true, "animation_fps": false, "speed_index_ms": true} {
		if got := Parse(name).IsGuardOf([]string{"animation_fps@list"}); got != want {
			t.Errorf("Parse(%q).IsGuardOf() = %v; want %v", name, got, want)
		}
	}
	if a, b := GuardPlace("first_visual_change_ms"), GuardPlace("unique_fps"); a != 2 || b != len(Guards()) {
		t.Errorf("GuardPlace() = %d and %d; want 2 and %d", a, b, len(Guards()))
	}
}

// Whatever a step or a region is called, the metric between them is found.
func TestParse(t *testing.T) {
	for name, want := range map[string]struct {
		r     Ref
		label string
	}{
		"speed_index_ms":               {Ref{ID: SpeedIndex, Name: "speed_index_ms"}, "SpeedIndex"},
		"search/scroll/animation_fps":  {Ref{ID: AnimationRate, Step: "search/scroll", Name: "animation_fps"}, "search/scroll: Frame rate"},
		"hero_ms@a/b@c":                {Ref{ID: Hero, Name: "hero_ms", Region: "a/b@c"}, "Painted (a/b@c)"},
		"mail me@x/jank_count@top":     {Ref{ID: Janks, Step: "mail me@x", Name: "jank_count", Region: "top"}, "mail me@x: Janks (top)"},
		"step/made_by_another_version": {Ref{Step: "step", Name: "made_by_another_version"}, "step: made_by_another_version"},
		"all guards":                   {Ref{Name: "all guards"}, "all guards"},
	} {
		if got := Parse(name); got != want.r || Label(name) != want.label {
			t.Errorf("Parse(%q) = %+v, %q; want %+v, %q", name, got, Label(name), want.r, want.label)
		}
	}
	if got := AnimationRate.OfRegion("list"); Parse(got).Region != "list" || Parse(TimeToEnd.OfStep("a/b")).Step != "a/b" {
		t.Errorf("OfRegion() = %q, OfStep() = %q; want names that Parse takes apart", got, TimeToEnd.OfStep("a/b"))
	}
}

func TestMeasure(t *testing.T) {
	m := FirstChange.Measure(120, []int{3, 4}, "frame 2 is the start frame", "tolerance of a pixel 3")
	if m.Name != "first_visual_change_ms" || m.Unit != "ms" || m.Value != 120 || len(m.Frames) != 2 ||
		m.Method != "first frame in which any pixel of the content area differs from the start frame "+
			"(browsertime, without its tolerance and its blind top rows); frame 2 is the start frame; tolerance of a pixel 3" {
		t.Errorf("Measure() = %+v; want name, unit and definition of the entry, and the details", m)
	}
}
