package execute

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
)

// TestDocumentedLink: the link in the report.json of docs/formats/run-folder.md has every
// field of the profile lte.
func TestDocumentedLink(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/formats/run-folder.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)\n  "link": (\{.*?\}),\n  "environment"`).FindSubmatch(doc)
	if found == nil {
		t.Fatal("there is no link in the example of report.json")
	}
	var documented map[string]any
	if err := json.Unmarshal(found[1], &documented); err != nil {
		t.Fatal(err)
	}
	want := checked(t, lab.Plan{Arm: lab.Arm{Page: "https://a.test/", Link: "lte"}}).Cells[0].Arms[0].Link.Describe()
	want.BackEnd = "packet"
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var ours map[string]any
	if err := json.Unmarshal(text, &ours); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(ours, documented); d != "" {
		t.Errorf("documented (-ours +documented):\n%s", d)
	}
}
