package repotest

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestRules applies each rule to a tree that breaks it and to one that barely does not.
func TestRules(t *testing.T) {
	const long = "x\n"
	mark := "TO" + "DO"
	for _, c := range []struct {
		rule  string
		files map[string]string
		want  []string // one substring a violation, in order
	}{
		{"import directions", map[string]string{
			"netlab/a.go":           `package netlab; import ("eidetic/internal/lab"; "eidetic/netlab/dns"; "eidetic/capture/reel")`,
			"netlab/a_test.go":      `package netlab; import "eidetic/internal/rigs/testlab"`,
			"capture/b.go":          `package capture; import "eidetic/internal/rigs/testlab"`,
			"capture/cametest/c.go": `package cametest; import "eidetic/internal/rigs/testlab"`,
			"capturing/c.go":        `package capturing`,
			"internal/lab/d.go":     `package lab; import "eidetic/netlab"`,
			"cmd/appliance/e.go":    `package main; import ("eidetic/netlab"; "eidetic/internal/web/panel")`,
			"netlab/testdata/x.go":  `package broken; import "eidetic/panel"`,
		}, []string{"for tests only", "capturing has no line", "internal/lab must not import netlab", "netlab must not import capture/reel: instruments"}},
		{"lab is a leaf", map[string]string{
			"internal/lab/a.go":      `package lab; import ("net/netip"; "golang.org/x/sys/unix")`,
			"internal/lab/a_test.go": `package lab; import "github.com/google/go-cmp/cmp"`,
		}, []string{"golang.org/x/sys/unix"}},
		{"analysis is pure", map[string]string{
			"analysis/a.go":       `package analysis; import ("os"; "time"; "math/rand/v2"; "net/netip"); var d time.Duration; var x = time.Now(); var y = rand.Float64(); var z = rand.New(rand.NewPCG(1, 2))`,
			"analysis/a_test.go":  `package analysis; import "os"`,
			"analysis/bench/m.go": `package main; import "os"`,
			"netlab/n.go":         `package netlab; import "os"`,

			"netlab/replay/match/m.go": `package match; import ("net/http"; "net/url")`,
		}, []string{"imports os", "imports net/netip", "time.Now", "rand.Float64", "imports net/http"}},
		{"test packages", map[string]string{
			"netlab/netlabtest/n.go": `package netlabtest`,
			"netlab/a.go":            `package netlab; import "eidetic/netlab/netlabtest"`,
			"netlab/a_test.go":       `package netlab; import "eidetic/netlab/netlabtest"`,
			"netlab/bench/main.go":   `package main; import "eidetic/netlab/netlabtest"`,
		}, []string{"netlabtest outside"}},
		{"test libraries", map[string]string{
			"netlab/a.go":                   `package netlab; import "net/http/httptest"`,
			"netlab/a_test.go":              `package netlab; import "net/http/httptest"`,
			"netlab/netlabtest/n.go":        `package netlabtest; import "net/http/httptest"`,
			"internal/run/isolate/iso.go":   `package isolate; import "net/http"`,
			"internal/keep/store/doc.go":    `package store; import _ "go.uber.org/goleak"`,
			"internal/keep/store/x_test.go": `package store; import _ "go.uber.org/goleak"`,
		}, []string{"goleak outside", "httptest outside"}},
		{"package comments", map[string]string{
			"a/a.go":      "// Package a is good.\npackage a",
			"a/b.go":      "package a",
			"a/a_test.go": "package a",
			"b/b.go":      "package b",
			"c/c.go":      "// Package c is one.\npackage c",
			"c/d.go":      "// Package c is two.\npackage c",
			"d/d.go":      "// The d.\npackage d",
			"e/e.go":      "// Command e runs.\npackage main",
		}, []string{`does not start with "Package d "`, "package b has no", "package c has 2"}},
		{"documented names", map[string]string{
			"a/a.go":      "package a\n// T is.\ntype T int\nfunc (T) String() string\nfunc (T) Foo()\ntype u int\nfunc (u) Foo()\ntype V int\nfunc F()\n// G does.\nfunc G()",
			"a/a_test.go": "package a\nfunc TestX()",
			"m/m.go":      "package main\nfunc F()",
		}, []string{"Foo has no", "V has no", "F has no"}},
		{"no init", map[string]string{
			"a/a.go": "package a\ntype T int\nfunc (T) init() {}\nfunc init() {}",
		}, []string{"init function"}},
		{"no mutable package variables", map[string]string{
			"a/a.go": `package a
var table = map[string]int{"a": 1}
var errX = errors.New("x")
var once sync.Once
var pool sync.Pool
var n, m int
var _ T = n
func f() { m := 0; m++; n++; table["b"] = 2; var errX error; errX = nil; _, _ = m, errX; _ = n; other = 1; p.x = 3; for n := 0; n < 2; n++ {} }`,
			"a/b.go": "package a\nvar other int\nfunc g(p *T) { p.x = 3 }",
		}, []string{"once is a sync.Once", "variable n", "variable table", "variable other"}},
		{"context first", map[string]string{
			"a/a.go": "package a\nfunc f(n int, ctx context.Context) {}\nfunc g(ctx context.Context, n int) {}\nfunc h(t testing.TB, ctx context.Context) {}",
		}, []string{"not the first"}},
		{"tests wait for events", map[string]string{
			"a/a_test.go": "package a\nfunc f() { time.Sleep(1) }",
			"a/a.go":      "package a\nfunc g() { time.Sleep(1) }",
		}, []string{"time.Sleep"}},
		{"no silent skips", map[string]string{
			"a/a_test.go":                      "package a\nfunc f(t *testing.T) { t.Skip(); x.Skip() }",
			"internal/rigs/testlab/testlab.go": "package testlab\nfunc f(t *testing.T) { t.Skipf(``) }",
		}, []string{"Skip"}},
		{"typed records", map[string]string{
			"internal/lab/a.go":        "package lab\ntype A struct { M map[string]any }\ntype b struct { M map[string]any }\ntype C map[string]string",
			"internal/lab/a_test.go":   "package lab\ntype D struct { M map[string]any }",
			"internal/keep/store/a.go": "package store\ntype E struct { F []struct{ M map[string]interface{} } }",
			"netlab/a.go":              "package netlab\ntype F struct { M map[string]any }",
		}, []string{"E has a map", "A has a map"}},
		{"metrics by value", map[string]string{
			"internal/metric/e.go": `package metric; var entries = []Entry{{Name: "speed_index_ms"}, {Name: "stalls"}}`,
			"analysis/a.go":        `package analysis; var a = of("speed_index_ms"); var b = of("step/speed_index_ms"); var c = of("stalls", "speed_index_ms is what counts")`,
			"analysis/b.go":        `package analysis; var m = lab.Measurement{Name: "new_ms"}; var n = lab.Measurement{Name: name}; var o = lab.Event{Name: "done"}`,
			"analysis/a_test.go":   `package analysis; var a = lab.Measurement{Name: "speed_index_ms"}`,
			"web/a.js":             "// speed_index_ms\nconst a = \"speed_index_ms\";\n",
		}, []string{"speed_index_ms by a string", "speed_index_ms by a string", `of "new_ms" without`, "a.js:2: names the metric speed_index_ms"}},
		{"short lines", map[string]string{
			"a/a.go":      "package a\nvar a = 1" + strings.Repeat(" + 1", 40) + "\nvar b = f(" + strings.Repeat("1, ", 40) + "`" + strings.Repeat("x", 60) + "`)\n",
			"a/a_test.go": "package a\nvar c = 1" + strings.Repeat(" + 1", 40) + "\n",
		}, []string{"a/a.go:2: has 169 characters"}},
		{"short files", map[string]string{
			"a/a.go": "package a\n" + strings.Repeat("\n", maxLines),
			"a/b.go": "package a\n" + strings.Repeat("\n", maxLines-1),
		}, []string{"601 lines"}},
		{"no unfinished marks", map[string]string{
			"a.md": "# a\n" + mark + ": more\nmktemp x.XXXXXX", "LICENSE": mark, "a/testdata/b": mark, "b.bin": "\x00" + mark,
		}, []string{mark}},
		{"no machine paths", map[string]string{
			"a.md": "see /ho" + "me/anna/x\nand /proc/self\n/wo" + "rk/x\nhttp://a.test/work/x\n",
		}, []string{"anna", "rk/x"}},
		{"no registry hosts", map[string]string{
			"a.sh": "curl https://proxy.golang." + "org/x\ncurl golang.org/x\n",
		}, []string{"proxy"}},
		{"no stray spaces", map[string]string{"a.md": "a \nb\n"}, []string{`" "`}},
		{"small files", map[string]string{
			"a.png": strings.Repeat(long, maxFile/2), "b.png": strings.Repeat(long, maxFile/2+1), "out/c.png": strings.Repeat(long, maxFile),
		}, []string{"1048578 bytes"}},
		{"links resolve", map[string]string{
			"README.md":       "# Read me\n[a](docs/a.md#two-words) [b](docs/b.md) [c](https://x.test/) ![d](docs/d.svg \"title\")\n```sh\n[e](e.md)\n```\n<img src=\"docs/f.png\">",
			"docs/a.md":       "# Two words\n[up](../README.md#read-me) [no](#nowhere) [dir](../docs)",
			"docs/d.svg":      "<svg/>",
			"x/testdata/a.md": "[no](no.md)",
		}, []string{"README.md:2: links to docs/b.md", "README.md:6: links to docs/f.png", "docs/a.md:2: links to #nowhere"}},
		{"make targets exist", map[string]string{
			"Makefile":  "A := b\nall: x ## All\nbench-%: ## One\n",
			"README.md": "Type `make all`, `make bench-AREA`, `make nothing`, make sense.\n```sh\nsudo make all X=1 && make none # make late\n$ make -j2 lost\n```\n```yaml\nmake yaml\n```",
		}, []string{"make nothing", "make none"}},
		{"needed programs are installable", map[string]string{
			"scripts/deps.sh":   "test|iputils-ping|ping|round trips\ntest|php-fpm|/usr/sbin/php-fpm*|pages\n",
			"a/a_test.go":       "package a\nfunc f() { testlab.NeedProgram(t, `ping`); testlab.NeedProgram(t, `fping`, `pong`); testlab.NeedProgram(t, name) }",
			"a/b_test.go":       "package a\nfunc f() { testlab.NeedProgram(t, `php-fpm*`); testlab.NeedPackage(t, `iputils-ping`, `ping`, `pang`); testlab.NeedPackage(t, `ping`, `pyng`) }",
			"a/atest/helper.go": "package atest\nfunc f() { testlab.NeedProgram(t, `pang`, `ping`); testlab.NeedProgram(t, `pung`) }",
		}, []string{"needs fping or pong", "needs pung", "needs pyng"}},
		{"promises have tests", map[string]string{
			"docs/features.md": "# A\n## What you get\n- **A report** that\n- **Speed.** It\n## Else\n- **No promise**\n",
			"docs/a.md":        "# A", "docs/b.md": "# B",
			"CONTRIBUTING.md": "| Promise | Tests |\n|---|---|\n| A report | `a TestA`, `b TestB` |\n| [a](docs/a.md) | `a TestC` and `a TestD` |\n| C | by hand |\n",
			"a/a_test.go":     "package a\nfunc TestA(t *testing.T) {}\nfunc TestC(t *testing.T) { testlab.Long(t, `x`) }",
		}, []string{"docs/b.md: has no row", `docs/features.md:4: promises "Speed"`, "docs/features.md: has no row", "TestB of b, which does not exist", "TestC of a, which is left", "TestD of a, which does not exist",
			"CONTRIBUTING.md:5: names no test"}},
		{"who connects is told", map[string]string{
			"docs/security.md":   "| Connects | why |\n|---|---|\n| one `a` | its user said so |\n| two `gone` | as above |\n",
			"a/a.go":             "package a\nvar d net.Dialer",
			"b/b.go":             "package b\nfunc f() { http.Get(``) }",
			"b/b_test.go":        "package b\nfunc g() { net.Dial() }",
			"c/c_test.go":        "package c\nfunc g() { net.Dial() }",
			"d/d.go":             "package d\nfunc g(l net.Listener) { l.Dial() }",
			"internal/rigs/r.go": "package rigs\nfunc g() { net.Dial() }",
		}, []string{"docs/security.md: has no row for b, which uses http.Get", "docs/security.md:4: names gone"}},
		{"what listens is bounded", map[string]string{
			"docs/security.md": "| Listens | connections |\n|---|---|\n| pages `a`, `b` | 64 in all (`most`), 30 s (`limit`), 32 KiB of bytes (`bytes`), 5 (`none`), 7 (`seven`) |\n",
			"a/a.go":           "package a\nconst most, bytes = 65, 32 << 10\nfunc f(l net.Listener) { net.Listen() }",
			"b/b.go":           "package b\nconst limit = time.Minute / 2\nconst seven = 7\nfunc f() { quic.ListenAddr() }",
			"c/c.go":           "package c\nfunc f() { server4.NewServer() }",
		}, []string{"most is 64, and it is 65", "the constant limit", "the constant none", "has no row for c, which uses server4.NewServer"}},
		{"attacks have tests", map[string]string{
			"docs/security.md": "| attack | test |\n|---|---|\n| x | `a` TestA, TestGone |\n\n| reads | targets |\n|---|---|\n| y | `a` FuzzA, FuzzB |\n",
			"a/a_test.go": "package a\nfunc TestA(t *testing.T) {}\nfunc FuzzA(f *testing.F) { testlab.Input(t) }\nfunc FuzzB(f *testing.F) {}\n" +
				"func FuzzC(f *testing.F) { testlab.Bounded(t, 1, nil) }",
		}, []string{"names TestGone of a", "FuzzB does not bound", "has no row for FuzzC of a"}},
		{"make targets are documented", map[string]string{
			"Makefile": "A := b\nall: x ## All\n", "mk/x.mk": "x: ## X\ny z:\n\techo\nB ?= c\nd = e: ## f\n",
		}, []string{"target y", "target z"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for path, text := range c.files {
				fsys[path] = &fstest.MapFile{Data: []byte(text)}
			}
			tree, err := Load(fsys)
			if err != nil {
				t.Fatal(err)
			}
			var got []Violation
			for _, r := range Rules() {
				if r.Name == c.rule {
					got = r.Check(tree)
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("%d violations, want %d:\n%v", len(got), len(c.want), got)
			}
			for i, want := range c.want {
				if !strings.Contains(got[i].String(), want) {
					t.Errorf("violation %d is %q, want it to contain %q", i, got[i], want)
				}
			}
		})
	}
}

// TestEveryRuleIsTested keeps TestRules complete.
func TestEveryRuleIsTested(t *testing.T) {
	tree, err := Load(fstest.MapFS{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.Name] || r.Why == "" {
			t.Errorf("rule %q exists twice or has no reason", r.Name)
		}
		seen[r.Name] = true
		if found := r.Check(tree); len(found) > 0 {
			t.Errorf("rule %q finds %v in an empty tree, want nothing", r.Name, found)
		}
	}
}
