package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// tagged is a plan with tags at every place.
const tagged = `
tags: [shop]
trials: 0
pages:
  - {name: home, page: https://a.test/}
  - {name: cart, page: https://a.test/cart, tags: [cart, pay]}
  - name: search
    tags: [search]
    steps:
      - open: https://a.test/search
      - {name: find, type: lamp, tags: [search]}
      - {name: pay, click: "css #pay", tags: [pay]}
paths:
  src/cart/**: [cart]
  src/*.css: [shop]
  "**/search.js": [search]
  docs/**: []
`

// What has none of the tags is left out, what has no tags stays, and what was said besides stays said, such as a zero.
func TestSelect(t *testing.T) {
	r, err := Parse([]byte(tagged))
	if err != nil {
		t.Fatal(err)
	}
	for tags, want := range map[string]string{
		"shop":            "home",
		"shop cart":       "home cart",
		"shop search":     "home search:open find",
		"shop pay search": "home cart search:open find pay",
		"cart":            "", // the plan is about the shop
		"":                "",
	} {
		got, needed, err := r.Select(strings.Fields(tags))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range got.Pages {
			name := e.Name
			for i, s := range e.Steps {
				if i == 0 {
					name += ":open"
				} else {
					name += " " + s.Name
				}
			}
			names = append(names, name)
		}
		if text := strings.Join(names, " "); needed != (want != "") || needed && text != want {
			t.Errorf("Select(%q) = %q, %v; want %q", tags, text, needed, want)
		}
		if text, err := json.Marshal(got); err != nil || needed && !strings.Contains(string(text), `"trials":0`) {
			t.Errorf("Select(%q) = %s, %v; want that the zero stays said", tags, text, err)
		}
	}
	if err := r.Unknown([]string{"cart", "serch"}); err == nil || !strings.Contains(err.Error(), `"serch": did you mean search?`) {
		t.Errorf("Unknown(serch) = %v; want the nearest tag", err)
	}
}

// A page, a repetition and a plan that no step is left of are not needed: without steps they would be something else.
func TestSelectLeavesNothingEmpty(t *testing.T) {
	const journey = `
page: https://a.test/
steps:
  - {name: find, type: lamp, tags: [search]}
  - {repeat: 2, tags: [cart], steps: [{name: pay, click: "css #pay", tags: [pay]}]}
`
	r, err := Parse([]byte(journey))
	if err != nil {
		t.Fatal(err)
	}
	for tag, want := range map[string]int{"search": 1, "cart": 0, "pay": 0} {
		if got, needed, err := r.Select([]string{tag}); err != nil || needed != (want > 0) || needed && len(got.Steps) != want {
			t.Errorf("Select(%s) = %d steps, %v, %v; want %d", tag, len(got.Steps), needed, err, want)
		}
	}
	r, err = Parse([]byte("pages:\n  - {page: https://a.test/}\n  - page: https://b.test/\n    steps: [{open: https://b.test/, tags: [b]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, needed, err := r.Select([]string{"a"}); err != nil || !needed || len(got.Pages) != 1 {
		t.Errorf("Select(a) = %d pages, %v, %v; want the first alone", len(got.Pages), needed, err)
	}
}

// Changed files need the tags of their patterns; one that no pattern has needs all.
func TestTagsOfPaths(t *testing.T) {
	r, err := Parse([]byte(tagged))
	if err != nil {
		t.Fatal(err)
	}
	for files, want := range map[string]string{
		"src/cart/a/b.js":                 "cart",
		"src/cart":                        "cart", // ** is any number of folders
		"src/site.css":                    "shop",
		"src/x/site.css":                  "all: src/x/site.css",
		"search.js lib/search.js":         "search",
		"docs/index.md docs/a/b":          "",
		"docs/index.md src/cart/x":        "cart",
		"src/cart/x Makefile src/cart/y":  "all: Makefile",
		"src/cart/search.js src/site.css": "cart search shop",
		"":                                "",
	} {
		tags, all, because := TagsOf(r.Plan, strings.Fields(files))
		got := strings.Join(tags, " ")
		if all {
			got = "all: " + because
		}
		if got != want {
			t.Errorf("TagsOf(%q) = %q; want %q", files, got, want)
		}
	}
	long := strings.Repeat("**/", 150) + "x"
	if matches(strings.Split(long, "/"), strings.Split(strings.Repeat("a/", 400), "/")) { // and it ends
		t.Error("a path without x has the pattern of many **")
	}
}

// Tags, paths, weights and margins that mean nothing are refused, by their field.
func TestCheckSelection(t *testing.T) {
	for want, change := range map[string]func(p *lab.Plan){
		`tags: "a b": a tag has`:       func(p *lab.Plan) { p.Tags = []string{"a b"} },
		`pages[0].tags: "": a tag has`: func(p *lab.Plan) { p.Pages[0].Tags = []string{""} },
		`pages[0].steps: "a b": a tag has`: func(p *lab.Plan) {
			p.Pages[0].Steps = []lab.Step{{Open: "https://a.test/", Tags: []string{"a b"}}}
		},
		`paths.x: neither the plan nor a page`:        func(p *lab.Plan) { p.Paths = map[string][]string{"x": {"crt"}} },
		`paths: "[": a pattern is a path`:             func(p *lab.Plan) { p.Paths = map[string][]string{"[": {"cart"}} },
		`paths: "/etc": a pattern is a path`:          func(p *lab.Plan) { p.Paths = map[string][]string{"/etc": {"cart"}} },
		`margins_percent.speedindex: there is no met`: func(p *lab.Plan) { p.Margins = map[string]float64{"speedindex": 3} },
		`margins_percent.speed_index_ms: 0: a perce`:  func(p *lab.Plan) { p.Margins = map[string]float64{"speed_index_ms": 0} },
		`margins_percent: margin_percent is missing`:  func(p *lab.Plan) { p.Margins, p.Margin = map[string]float64{"speed_index_ms": 3}, 0 },
		`pages[0].margin_percent: the plan has none`:  func(p *lab.Plan) { p.Pages[0].Margin, p.Margin = 5, 0 },
		`pages[0].weight: must be at most 100`:        func(p *lab.Plan) { p.Pages[0].Weight = 101 },
		``: func(p *lab.Plan) {
			p.Treatment = nil // a reference is what it is compared with
			p.Margins, p.Pages[0].Margins = map[string]float64{"speed_index_ms": 3}, map[string]float64{"time_to_stable_ms": 10}
			p.Tags, p.Pages[0].Weight, p.Paths = []string{"shop"}, 3, map[string][]string{"a/**": {"cart"}}
		},
	} {
		p := lab.Plan{Margin: 2, Treatment: &lab.Arm{Link: "3g"}, Pages: []lab.PlanPage{{Name: "cart", Page: "https://a.test/", Tags: []string{"cart"}}}}
		change(&p)
		err := check(p)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Check() = %v; want %q", err, want)
		}
	}
	// A page's margins are laid over those of the plan, and its margin replaces them.
	p := lab.Plan{Margin: 2, Margins: map[string]float64{"a": 3, "b": 4}, Pages: []lab.PlanPage{
		{Name: "x", Page: "https://a.test/", Margins: map[string]float64{"b": 9}}, {Name: "y", Page: "https://a.test/", Margin: 7},
	}}
	cells := p.Cells()
	if x, y := cells[0].Plan, cells[1].Plan; x.Margin != 2 || x.Margins["a"] != 3 || x.Margins["b"] != 9 || y.Margin != 7 || y.Margins != nil {
		t.Errorf("margins of pages = %v %v, %v %v", x.Margin, x.Margins, y.Margin, y.Margins)
	}
	names := []int{}
	for _, c := range (lab.Plan{Pages: []lab.PlanPage{{Name: "x", Weight: 3}}, Users: []lab.PlanUser{{Name: "u", Weight: 70}, {Name: "v"}}}).Cells() {
		names = append(names, c.Weight)
	}
	if !slices.Equal(names, []int{210, 3}) {
		t.Errorf("weights of cells = %v; want 210 and 3", names)
	}
}
