package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// gatePlan is of six pages for two users, with what a push needs.
const gatePlan = `name: gate
trials: 12
margin_percent: 5
margins_percent: {visually_complete_ms: 8}
pages:
  - {name: home, page: https://www.shop.example/, weight: 3}
  - {name: cart, page: https://www.shop.example/cart, tags: [cart]}
  - {name: pay, page: https://www.shop.example/pay, tags: [cart]}
  - {name: search, page: https://www.shop.example/search, tags: [search]}
  - {name: list, page: https://www.shop.example/list, tags: [search], margin_percent: 40}
  - {name: help, page: https://www.shop.example/help, tags: [help]}
users:
  - {name: new, weight: 70}
  - {name: anna, weight: 30, viewport: 412x915}
paths:
  src/cart/**: [cart]
  docs/**: []
`

// drawnGate draws a run of the plan that is asked for: of a cell, if it has one, the loads take so many ms more.
func drawnGate(rng *rand.Rand, asked lab.Plan, cell string, slower float64) *lab.Run {
	run := &lab.Run{Name: asked.Name, Plan: asked, State: "done", Page: asked.FirstPage(), Link: lab.Link{Name: "native"},
		Environment: lab.Environment{Appliance: "v1", Host: lab.Host{Processor: "EPYC", Cores: 2, MemoryBytes: 8e9}}}
	for _, c := range asked.Cells() {
		run.Cells = append(run.Cells, lab.CellResult{Name: c.Name, Page: c.Page, User: c.User})
		level := 500 + 100*float64(len(c.Page))
		if c.Name == cell {
			level += slower
		}
		for i := range asked.Trials {
			run.Trials = append(run.Trials, &lab.Trial{Number: len(run.Trials) + 1, Cell: c.Name, Arm: lab.Control, Block: 1 + i/5, Valid: true,
				Measurements: []lab.Measurement{
					{Name: "speed_index_ms", Unit: "ms", Value: level + 25*rng.NormFloat64()},
					{Name: "visually_complete_ms", Unit: "ms", Value: 1.4*level + 30*rng.NormFloat64()},
				}})
		}
	}
	return run
}

// TestGateOfManyPages: a run of six pages for two users is compared with a branch's reference. Whatever page and user
// become slower by 60 to 150 ms, and if none do, the status says so, of every run.
func TestGateOfManyPages(t *testing.T) {
	tries := 2
	if !testing.Short() {
		testlab.Long(t, "twenty runs")
		tries = 20
	}
	rng := rand.New(rand.NewPCG(48, 3))
	cell, slower := "", 0.0
	b := newTestBox(t, nil)
	b.drawn = func(asked lab.Plan) *lab.Run { return drawnGate(rng, asked, cell, slower) }
	plan := filepath.Join(t.TempDir(), "gate.yaml")
	if err := os.WriteFile(plan, []byte(gatePlan), 0o600); err != nil {
		t.Fatal(err)
	}
	in := ""
	t.Setenv(tokenVariable, b.token)
	t.Setenv("EIDETIC_BOX", b.url())
	expect := func(status int, within string, args ...string) string {
		t.Helper()
		var out, said bytes.Buffer
		if got := run(t.Context(), args, &streams{strings.NewReader(in), &out, &said}); got != status || !strings.Contains(out.String()+said.String(), within) {
			t.Errorf("appliance %s: status %d, %s%s; want %d with %q", strings.Join(args, " "), got, &out, &said, status, within)
		}
		return out.String()
	}
	expect(exitGood, "", "workflow", "put", "gate", "--plan", plan)
	expect(exitUsage, "has no reference yet", "run", "--workflow", "gate", "--reference", "main@latest")
	expect(exitGood, `It is the reference main@1 of "gate"`, "run", "--workflow", "gate", "--keep-as", "main", "--revision", "1111111")
	expect(exitGood, `main@1  gate`, "reference", "ls", "main")
	cells := []string{"home", "cart", "pay", "search", "help"} // a slower list is within its margin
	users := []string{"new", "anna"}
	right, last := 0, ""
	for i := range tries {
		cell, slower = "", 0
		want, says := exitGood, "No difference of more than its margin from the reference was found"
		if i%2 == 1 {
			cell = cells[rng.IntN(len(cells))] + " / " + users[rng.IntN(2)]
			slower = 60 + 90*rng.Float64()
			// By more than 5 % of the page's level.
			slower = max(slower, 0.12*(500+100*float64(strings.Index(cell, " "))))
			want, says = exitFailed, "slower than the reference for "+cell
		}
		var out, said bytes.Buffer
		got := run(t.Context(), []string{"run", "--workflow", "gate", "--reference", "main@latest"}, &streams{strings.NewReader(""), &out, &said})
		if got == want && strings.Contains(strings.Join(strings.Fields(out.String()), " "), says) {
			right++
		} else {
			t.Errorf("a run with %q slower by %.0f ms: status %d, want %d with %q: %s%s", cell, slower, got, want, says, &out, &said)
		}
		_, last, _ = strings.Cut(out.String(), " run=")
		last, _, _ = strings.Cut(last, " ")
	}
	t.Logf("%d of %d runs have the right status", right, tries)

	cell, slower = "list / new", 150 // within the margin of that page
	expect(exitGood, "against: verdict=none", "run", "--workflow", "gate", "--reference", "main@1", "--quiet")
	// A push of the cart needs its pages, and those without a tag; of the documents nothing.
	in = "src/cart/total.js\n"
	expect(exitGood, "what has the tags cart: 3 of 6 pages", "run", "--workflow", "gate", "--changed-paths", "-", "--reference", "main@latest")
	in = "docs/index.md\n"
	expect(exitGood, "result: state=unneeded", "run", "--workflow", "gate", "--changed-paths", "-", "--reference", "main@latest")
	expect(exitUsage, "did you mean cart?", "run", "--workflow", "gate", "--tag", "crat")
	expect(exitUsage, "--keep-as goes without --tag", "run", "--workflow", "gate", "--tag", "cart", "--keep-as", "main")
	// The command compares two runs of the box, too, and the reference's run cannot be deleted.
	expect(exitGood, "verdict=", "compare", "--reference", "main@latest", last, "--quiet", "--margin", "300")
	expect(exitGood, "", "reference", "rm", "1")
	expect(exitUsage, "has no reference yet", "compare", "--reference", "main@latest", last)
}

// TestChangedPaths: names are read as git prints them, with other letters than ASCII's or set apart by zeros, and as
// Windows' shells write them.
func TestChangedPaths(t *testing.T) {
	want := []string{"src/café.js", "b.css", `a"b`}
	wide := "\xff\xfe" + strings.Join(strings.Split("b.css\r\n", ""), "\x00") + "\x00"
	for text, want := range map[string][]string{
		"\"src/caf\\303\\251.js\"\nb.css\n\n\"a\\\"b\"\n": want, "src/café.js\x00b.css\x00a\"b\x00": want, wide: {"b.css"},
	} {
		got, err := (&gateFlags{ChangedPaths: "-"}).paths(strings.NewReader(text))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("paths(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
}
