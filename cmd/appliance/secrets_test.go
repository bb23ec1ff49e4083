package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// planted begins every secret of the plan below.
const planted = "hush"

// TestSecretsOfARun runs a journey whose page, user and typed texts are secrets, and looks for them where
// docs/security.md ("Secrets of a plan") says that they are not: in arguments and variables of all processes while it
// runs, in what it prints, and in the files of the run but those which are for whoever may start it again.
func TestSecretsOfARun(t *testing.T) {
	needLab(t)
	dir := t.TempDir()
	plan, out := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "out")
	const text = `name: secrets
limit_s: 40
trials: 1
users:
  - name: anna
    cookies: [{name: session, value: hushcookie, domain: shop.test, secure: true}]
    storage: {state: hushstorage}
steps:
  - {name: open, open: "https://www.shop.test/tricks/login?key=hushquery#hushfragment"}
  - name: login
    steps: [{click: "css #name"}, {type: hushname}, {key: Tab}, {type: hushword}, {key: Enter}]
    end: changed and still 1s and network 1s
`
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	stop, seen := make(chan struct{}), make(chan []string)
	go lookAtProcesses(stop, seen)
	got := finishCmd(t, appliance(t, "run", "--plan", plan, "--out", out))
	close(stop)
	if found := <-seen; len(found) > 0 {
		t.Errorf("processes had secrets in arguments or variables:\n%s", strings.Join(found, "\n"))
	}
	hide := strings.NewReplacer("hushquery", "", "hushfragment", "") // addresses as they were are for those who started the run
	if strings.Contains(hide.Replace(got.out+got.err), planted) {
		t.Errorf("it printed a secret:\n%s\n%s", got.out, got.err)
	}
	public := 0
	err := filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := d.Name()
		switch name {
		case "report.html", "timeline.html":
		case "report.json": // has the addresses as they were, without users
			content = []byte(hide.Replace(string(content)))
		default:
			return nil
		}
		public++
		if at := bytes.Index(content, []byte(planted)); at >= 0 {
			t.Errorf("%s has a secret: …%s…", name, content[max(0, at-100):min(len(content), at+100)])
		}
		return nil
	})
	if err != nil || public != 3 {
		t.Fatalf("status %d: %s%s: %d files for others, want 3 (%v)", got.status, got.out, got.err, public, err)
	}
	for _, format := range []string{"markdown", "junit", "csv", "github", "perfherder"} {
		e := finishCmd(t, appliance(t, "export", "--format", format, out))
		if e.status != exitGood || strings.Contains(e.out+e.err, planted) {
			t.Errorf("export --format %s: status %d\n%.3000s\n%.3000s", format, e.status, e.out, e.err)
		}
	}
}

// lookAtProcesses looks again and again at the arguments and variables of all processes but this one, and says in the
// end which had a secret.
func lookAtProcesses(stop <-chan struct{}, seen chan<- []string) {
	var found []string
	own := []byte("secrets_test")
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-stop:
			tick.Stop()
			seen <- found
			return
		case <-tick.C:
		}
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range files {
			for _, of := range []string{file, filepath.Join(filepath.Dir(file), "environ")} {
				content, err := os.ReadFile(of)
				if err != nil || bytes.Contains(content, own) || !bytes.Contains(content, []byte(planted)) {
					continue
				}
				line := of[len("/proc/"):] + ": " + string(bytes.ReplaceAll(content, []byte{0}, []byte{' '}))
				if !slices.Contains(found, line) {
					found = append(found, line)
				}
			}
		}
	}
}
