package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"eidetic/internal/tell/report/reporttest"
)

// TestWrongUses: each kind of wrong use has its status, and a message that says what is wrong and what to do.
func TestWrongUses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ended := filepath.Join(dir, "20261121-091400-demo")
	writeResult(t, filepath.Join(ended, "run.json"), reporttest.Run(1, 3))
	box := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(map[string]any{"detail": "there is a token ci already"})
	}))
	defer box.Close()
	shop := shopArchive(t)
	for _, c := range []struct {
		name   string
		args   []string
		status int
		says   []string
	}{
		{"address without a scheme", []string{"measure", "localhost:4400"}, exitUsage, []string{"did you mean http://localhost:4400/?", "See appliance measure --help."}},
		{"link of another kind", []string{"join", "https://head.example:8443/"}, exitUsage, []string{"does not begin with eidetic-head://", "copy the whole text"}},
		{"name of a box", []string{"join", "eidetic-head://head.example:8443/" + strings.Repeat("A", 26) + "?pin=" + strings.Repeat("ab", 32), "--name", "Lab 1"},
			exitUsage, []string{"--name", "a-z, 0-9 and dashes"}},
		{"unknown flag", []string{"run", "--trails", "3"}, exitUsage, []string{"unknown flag --trails", "See appliance run --help."}},
		{"unknown command", []string{"mesure"}, exitUsage, []string{"mesure", "See appliance --help."}},
		{"command of a group", []string{"archive", "lst"}, exitUsage, []string{"lst", "See appliance archive --help."}},
		{"number", []string{"demo", "--trials", "many"}, exitUsage, []string{"--trials", "See appliance demo --help."}},
		{"traces of one page", []string{"measure", "https://a.test/", "--traces", "3"}, exitUsage, []string{"--against URL"}},
		{"nothing to fetch", []string{"run", "--page", "https://a.test/", "--box", box.URL, "--no-wait", "--quiet"}, exitUsage, []string{"nothing to fetch yet"}},
		{"configuration: truth", []string{"serve", "--config", file("a.yaml", "virtual:\n  no_sandbox: please\n")}, exitUsage,
			[]string{"a.yaml: [2:15] a text stands where true or false is expected", ">  2 |   no_sandbox: please"}},
		{"configuration: fields", []string{"serve", "--config", file("b.yaml", "virtual: yes\n")}, exitUsage, []string{"[1:10] a text stands where fields (NAME: VALUE) are expected"}},
		{"configuration: list", []string{"serve", "--config", file("c.yaml", "panel:\n  listen: [1]\n")}, exitUsage, []string{"[2:11] a list stands where a text is expected"}},
		{"configuration: field", []string{"serve", "--config", file("d.yaml", "panel:\n  lisen: a\n")}, exitUsage, []string{`[2:3] unknown field "lisen"`}},
		{"plan: number", []string{"run", file("e.yaml", "page: https://a.test/\ntrials: many\n")}, exitUsage, []string{"e.yaml: [2:9] a text stands where a whole number is expected"}},
		{"plan: list", []string{"run", file("f.yaml", "page: https://a.test/\nsteps: 3\n")}, exitUsage, []string{"[2:8] a whole number stands where a list is expected"}},
		{"plan: package", []string{"run", file("j.yaml", "trials: 1\napp: {package: org.example.notes}\n")}, exitUsage,
			[]string{"j.yaml:2: app: this device does not start a program by its package, but by its command"}},
		{"plan: state", []string{"run", file("k.yaml", "page: https://a.test/\nstate: rebooted\n")}, exitUsage,
			[]string{"k.yaml:2: state: rebooted cannot be reached on this device"}},
		{"plan: controls", []string{"run", file("l.yaml", "page: https://a.test/\nrecipe: windows-chrome\n")}, exitUsage,
			[]string{"l.yaml:2: recipe: of a device at a port", "the virtual device has its own"}},
		{"plan: program", []string{"run", file("m.yaml", "app: {command: nosuchprogram --x}\n")}, exitUsage,
			[]string{"m.yaml:1: app.command: exec: \"nosuchprogram\""}},
		{"run.json: text", []string{"compare", "--reference", file("g.json", `{"id":3}`), shop}, exitUsage, []string{"line 1: id: a number stands where a text is expected"}},
		{"suite: name", []string{"suite", "run", "speed"}, exitUsage, []string{"speed is no file, and no suite of this program: it has eidetic-1, knobs-1"}},
		{"suite: entry", []string{"suite", "run", "knobs-1", "--only", "x", "--out", dir}, exitUsage, []string{"--only x: knobs-1 has no such entry"}},
		{"suite: field", []string{"suite", "ls", file("h.yaml", "suite: h\nentries: [{name: a, type: load, visual: load/x}]\n")}, exitUsage,
			[]string{"h.yaml:2: entries[0].visual: "}},
		{"suite: result", []string{"suite", "show", file("i.json", `{"schema": "x"}`)}, exitUsage, []string{"i.json: schema: "}},
		{"suite: bound", []string{"suite", "compare", dir, dir, "--within", "0"}, exitUsage, []string{"--within 0: a percentage"}},
		{"name that is taken", []string{"token", "make", "ci", "--box", box.URL}, exitUsage, []string{"the box refuses: there is a token ci already"}},
		{"notes of a run that ended", []string{"annotate", "--run", ended, "x"}, exitUsage, []string{"the run is done: notes belong to the trial"}},
		{"nothing to trim", []string{"archive", "trim", shop, "--until", "1h"}, exitGood, []string{"All 3 exchanges of", "nothing to drop"}},
		{"nothing to remove", []string{"archive", "rm", shop, "--url", "none.example"}, exitUsage, []string{"no exchange matches"}},
		{"no recording", []string{"archive", "ls", ended}, exitUsage, []string{ended}},
		{"format", []string{"export", "--format", "word", ended}, exitUsage, []string{"word", "junit"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(tokenVariable, "")
			var out, errs bytes.Buffer
			status := run(t.Context(), c.args, &streams{strings.NewReader(""), &out, &errs})
			if status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			said := out.String() + errs.String()
			for _, want := range c.says {
				if !strings.Contains(said, want) {
					t.Errorf("%q is missing in:\n%s", want, said)
				}
			}
			if strings.Contains(said, "unmarshal") || strings.Contains(said, "Go ") {
				t.Errorf("words of Go in:\n%s", said)
			}
		})
	}
}

// TestExamples: the help of every command shows it at work, and every example is one that the command line takes.
func TestExamples(t *testing.T) {
	t.Setenv("EIDETIC_BOX", "")
	t.Setenv(tokenVariable, "")
	parser, err := kong.New(&CLI{}, kong.Name("appliance"), kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	addExamples(parser.Model)
	for _, command := range parser.Model.Leaves(true) {
		name := strings.Fields(command.FullPath())[1:]
		texts := ""
		for n := command; n != nil; n = n.Parent {
			texts += "\n" + n.Detail
		}
		shown := false
		for line := range strings.Lines(texts) {
			i := strings.Index(line, "appliance ")
			if i < 0 || strings.TrimSpace(line[:i]) != "" && !strings.HasPrefix(line, " ") { // a sentence, or another program's line
				continue
			}
			args := shellWords(line[i:])[1:]
			if len(args) < len(name) || strings.Join(args[:len(name)], " ") != strings.Join(name, " ") {
				continue
			}
			shown = true
			if err := kong.Visit(parser.Model, unset); err != nil {
				t.Fatal(err)
			}
			// Files that are not here are what an example may lack.
			if _, err := parser.Parse(args); err != nil && !strings.Contains(err.Error(), "no such file") {
				t.Errorf("the help of %s has %q: %v", command.FullPath(), strings.TrimSpace(line), err)
			}
		}
		if !shown {
			t.Errorf("the help of %s has no example of it", command.FullPath())
		}
	}
}

// unset makes a parser forget which flags the line before had.
func unset(v kong.Visitable, next kong.Next) error {
	switch v := v.(type) {
	case *kong.Flag:
		v.Set = false
	case *kong.Value:
		v.Set = false
	}
	return next(nil)
}

// shellWords are the words of a command as a shell has them, until one that ends the command.
func shellWords(line string) (words []string) {
	word, quote, open := "", rune(0), false
	for _, r := range line + "\n" {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '"', r == '\'':
			quote, open = r, true
		case !open && word == "" && strings.ContainsRune("|>&#;", r):
			return words
		case r == ' ', r == '\n', r == '\t':
			if open || word != "" {
				words, word, open = append(words, word), "", false
			}
		default:
			word += string(r)
		}
	}
	return words
}
