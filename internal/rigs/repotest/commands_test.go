package repotest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

// TestDocumentedCommands holds the documents to the program: every command and
// flag that they name is in its --help, and every block fenced as "sh run" is
// run. The blocks of one document share a temporary folder, in order, with
// bin/appliance in it and on the PATH, so that a reader's session is repeated.
func TestDocumentedCommands(t *testing.T) {
	tree, err := Load(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	binary := buildAppliance(t)
	help := newManual(binary)
	for _, c := range tree.commands("appliance") {
		t.Run(strings.Join(c.words, " "), func(t *testing.T) {
			if err := help.check(t.Context(), c.words[1:]); err != nil {
				t.Errorf("%s:%d: %v", c.path, c.line, err)
			}
		})
	}
	for _, d := range tree.documents() {
		t.Run(d.path, func(t *testing.T) { runBlocks(t, binary, d) })
	}
}

// buildAppliance builds the binary by make build and returns its path.
func buildAppliance(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "bin", "appliance")
	build := exec.CommandContext(t.Context(), "make", "build", "BINARY="+binary)
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make build: %v\n%s", err, out)
	}
	return binary
}

// TestBuildNamesItsCommit builds as a person does in a clone and asks the binary
// for its commit, also where GOFLAGS switches the stamp off.
func TestBuildNamesItsCommit(t *testing.T) {
	revision, err := exec.CommandContext(t.Context(), "git", "-C", "../../..", "rev-parse", "HEAD").Output()
	testlab.Need(t, err == nil, "a git repository: the source is a clone")
	t.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -buildvcs=false"))
	out, err := exec.CommandContext(t.Context(), buildAppliance(t), "version").CombinedOutput()
	if want := strings.TrimSpace(string(revision)); err != nil || !strings.Contains(string(out), "("+want) {
		t.Errorf("appliance version prints %q, %v; want the commit %s, nil", out, err, want)
	}
}

// manual is the program's own help.
type manual struct {
	binary string
	pages  map[string][]byte // by a command's words: the documents name most commands many times
}

func newManual(binary string) *manual { return &manual{binary, map[string][]byte{}} }

// of returns the help of a command.
func (m *manual) of(ctx context.Context, commands []string) ([]byte, error) {
	name := strings.Join(commands, " ")
	if page, ok := m.pages[name]; ok {
		return page, nil
	}
	page, err := exec.CommandContext(ctx, m.binary, append(slices.Clone(commands), "--help")...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("appliance %s --help: %w\n%s", name, err, page)
	}
	m.pages[name] = page
	return page, nil
}

// check looks up a command line.
func (m *manual) check(ctx context.Context, words []string) error {
	name := regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	var commands []string
	for len(words) > len(commands) && name.MatchString(words[len(commands)]) {
		commands = words[:len(commands)+1]
	}
	help, err := m.of(ctx, commands)
	if err != nil {
		return err
	}
	usage := func(n int) string { return strings.TrimSpace("Usage: appliance " + strings.Join(commands[:n], " ")) }
	// The last words may be arguments: of a command that takes them, the usage goes on with their names.
	known := len(commands)
	for known > 1 && !strings.HasPrefix(string(help), usage(known)) {
		known--
	}
	arguments := regexp.MustCompile(`^` + regexp.QuoteMeta(usage(known)) + ` (?:--\S+ )*\[?<`)
	if !strings.HasPrefix(string(help), usage(known)) || known < len(commands) &&
		(!arguments.Match(help) || strings.HasPrefix(string(help), usage(known)+" <command>")) {
		return fmt.Errorf("appliance has no command %q", strings.Join(commands, " "))
	}
	for _, word := range words {
		flag, _, _ := strings.Cut(word, "=")
		if !strings.HasPrefix(flag, "--") || flag == "--" {
			continue
		}
		bare := strings.TrimPrefix(strings.TrimPrefix(flag, "--"), "no-")
		if !regexp.MustCompile(`--(?:\[no-\])?(?:no-)?` + regexp.QuoteMeta(bare) + `\b`).Match(help) {
			return fmt.Errorf("appliance %s has no flag %s", strings.Join(commands, " "), flag)
		}
	}
	return nil
}

func runBlocks(t *testing.T, binary string, d document) {
	dir := t.TempDir()
	linked := false
	for _, b := range d.blocks {
		if b.info != "sh run" {
			continue
		}
		if !linked {
			if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(binary, filepath.Join(dir, "bin", "appliance")); err != nil {
				t.Fatal(err)
			}
			linked = true
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", b.text)
		shell.Dir = dir
		shell.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
		out, err := shell.CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("%s:%d: %v\n%s\n%s", d.path, b.line, err, b.text, out)
		}
	}
}

// TestCheckCommand shows that the check can fail.
func TestCheckCommand(t *testing.T) {
	help := newManual(buildAppliance(t))
	for _, c := range []struct{ line, want string }{
		{"version", ""},
		{"--help", ""},
		{"no-such-command", "no"},
		{"workflow show checkout", ""},
		{"boxes accept lab-1 virtual", ""},
		{"doctor packet port", ""},
		{"workflow no-such-command", "no"},
		{"workflow ls checkout", "unexpected argument"},
		{"version --no-such-flag", "no flag --no-such-flag"},
	} {
		err := help.check(t.Context(), strings.Fields(c.line))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("appliance %s: error %v, want %q", c.line, err, c.want)
		}
	}
}
