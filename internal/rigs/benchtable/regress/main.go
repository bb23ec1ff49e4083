// Command regress runs the short form of each benchmark on the tree as it is and on the last commit before what the
// benchmark measures was changed, and fails if a number that does not hang on the machine's load is worse by more than
// a tenth. It needs git and the commits, and changes nothing in the repository.
//
//	go run ./internal/rigs/benchtable/regress
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"eidetic/internal/rigs/benchtable"
)

// short is the short form of a benchmark.
type short struct {
	folder string
	flags  string // with blanks between them
	// out is the file behind the folder that -out names; "" if it names the file itself.
	out string
}

// benches are those with numbers that are no times.
func benches() []short {
	return []short{
		{"capture/reel/bench", "-size 1280x720 -frames 45 -scenes pageload,scroll -pixels BGRX -peers=false -runs 1", "capture.json"},
		{"netlab/replay/bench", "-parts match -only appliance -rounds 1 -duration 200ms", ""},
		{"analysis/change/bench", "-series 20 -flat 20", ""},
		{"analysis/bisect/bench", "-bisects 20 -effects 50 -pairs 10", ""},
	}
}

func main() { benchtable.Exit("bench-regress", run(os.Stdout)) }

func run(w io.Writer) error {
	dir, err := os.MkdirTemp("", "bench-regress")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var all []string
	for i, b := range benches() {
		worse, err := b.compare(w, filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return fmt.Errorf("%s: %w", b.folder, err)
		}
		all = append(all, worse...)
	}
	if len(all) > 0 {
		return fmt.Errorf("worse than before the last change by more than a tenth:\n  %s", strings.Join(all, "\n  "))
	}
	return nil
}

// compare runs a benchmark on both trees and says what is worse.
func (b short) compare(w io.Writer, dir string) (worse []string, err error) {
	before, err := b.before()
	if err != nil {
		return nil, err
	}
	if before == "" {
		fmt.Fprintf(w, "%s: no earlier commit is here, so there is nothing to compare with\n", b.folder)
		return nil, nil
	}
	old := filepath.Join(dir, "tree")
	if err := checkOut(before, old); err != nil {
		return nil, err
	}
	was, err := b.run(old, filepath.Join(dir, "before"))
	if err != nil { // it may have other flags there
		fmt.Fprintf(w, "%s: does not run at %.12s: %v\n", b.folder, before, err)
		return nil, nil
	}
	now, err := b.run(".", filepath.Join(dir, "now"))
	if err != nil {
		return nil, err
	}
	n, worse := benchtable.Worse(was, now)
	fmt.Fprintf(w, "%s: %d numbers compared with those of %.12s, %d worse\n", b.folder, n, before, len(worse))
	if n == 0 {
		return nil, errors.New("none of its numbers can be compared")
	}
	return worse, nil
}

// before is the commit to compare with: the last one before what the benchmark measures was changed.
func (b short) before() (string, error) {
	list, err := output("go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}", "./"+b.folder)
	if err != nil {
		return "", err
	}
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	var inputs []string
	for _, folder := range strings.Fields(list) {
		name, err := filepath.Rel(root, folder)
		if err != nil {
			return "", err
		}
		inputs = append(inputs, ":(glob)"+filepath.ToSlash(name)+"/*")
	}
	commits, err := output("git", append([]string{"log", "-n", "2", "--format=%H", "--"}, inputs...)...)
	if err != nil {
		return "", err
	}
	changed, err := output("git", append([]string{"status", "--porcelain", "--"}, inputs...)...)
	if err != nil {
		return "", err
	}
	found := strings.Fields(commits)
	if changed != "" && len(found) > 0 {
		return found[0], nil // the tree's own changes are the last ones
	}
	if len(found) < 2 {
		return "", nil
	}
	return found[1], nil
}

// checkOut unpacks a commit into a new folder.
func checkOut(commit, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tar := dir + ".tar"
	if _, err := output("git", "archive", "--output", tar, commit); err != nil {
		return err
	}
	_, err := output("tar", "-xf", tar, "-C", dir)
	return errors.Join(err, os.Remove(tar))
}

// run runs the benchmark of a tree and returns its table.
func (b short) run(tree, out string) ([]benchtable.Result, error) {
	out, err := filepath.Abs(out)
	if err != nil {
		return nil, err
	}
	args := append([]string{"run", "./" + b.folder}, strings.Fields(b.flags)...)
	bench := exec.Command("go", append(args, "-out", out)...)
	bench.Dir = tree
	bench.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -buildvcs=false"))
	if text, err := bench.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, lastLines(string(text)))
	}
	return benchtable.Read(filepath.Join(out, b.out))
}

// lastLines is the end of what a program printed.
func lastLines(text string) string {
	const most = 500
	text = strings.TrimSpace(text)
	return text[max(0, len(text)-most):]
}

// output runs a program and returns what it prints.
func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%s %s: %w: %s", name, args[0], err, lastLines(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}
