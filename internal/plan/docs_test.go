package plan

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// The table of docs/api.md has a row for each field of a plan, and for no other.
func TestFieldsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Start a run\n")
	section, _, _ = strings.Cut(section, "\n```")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(section, -1) {
		for _, name := range strings.Split(row[1], ", ") {
			documented = append(documented, strings.Trim(name, "`"))
		}
	}
	var declared []string
	for f := range reflect.TypeFor[lab.Plan]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			declared = append(declared, fieldsOf[lab.Arm]()...)
		case f.Tag.Get("hidden") == "" && !slices.Contains(partsOfDevices(), name):
			declared = append(declared, name)
		}
	}
	slices.Sort(documented)
	slices.Sort(declared)
	if !slices.Equal(documented, declared) {
		t.Errorf("docs/api.md has rows for %q; want those of %q", documented, declared)
	}
}

// partsOfDevices are the fields that docs/capture-cards.md explains, as they stand in the configuration of a device,
// too.
func partsOfDevices() []string { return []string{"screen", "controls", "recipe"} }

// The tags of defaults can be read as what their fields are, so that WithDefaults fills all of them in.
func TestDefaults(t *testing.T) {
	filled := reflect.ValueOf(lab.Plan{}.WithDefaults())
	for i := range filled.NumField() {
		if f := filled.Type().Field(i); f.Tag.Get("default") != "" && filled.Field(i).IsZero() {
			t.Errorf("the default of %s, %q, is none of a %s", f.Name, f.Tag.Get("default"), f.Type)
		}
	}
	if problems := (Request{Plan: lab.Plan{Arm: lab.Arm{Page: "https://a.test/"}}.WithDefaults()}).Problems(); len(problems) > 0 {
		t.Errorf("a plan of defaults has problems: %v", problems)
	}
}
