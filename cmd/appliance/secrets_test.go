package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"eidetic/internal/box/service"
	"eidetic/internal/keep/store"
	"eidetic/internal/rigs/storytest"
	"eidetic/internal/rigs/testlab"
)

// planted begins every secret of the plans below.
const planted = "hush"

// secretUser and secretPage are of all plans below.
const (
	secretUser = `users:
  - name: anna
    cookies: [{name: session, value: hushcookie, domain: shop.test, secure: true}]
    storage: {state: hushstorage}
`
	secretPage = `"https://www.shop.test/tricks/login?key=hushquery#hushfragment"`
)

// secretPlans are the kinds of run that are searched for secrets.
var secretPlans = []struct{ name, long, plan string }{
	{"journey", "", `name: secrets
limit_s: 40
trials: 1
tolerance_ms: 10000
` + secretUser + `steps:
  - {name: open, open: ` + secretPage + `}
  - name: login
    steps: [{click: "css #name"}, {type: hushname}, {key: Tab}, {type: hushword}, {key: Enter}]
    end: changed and still 1s and network 1s
`},
	{"failed step", "the same journey, and it fails", `name: secrets
limit_s: 5
trials: 1
` + secretUser + `steps:
  - {name: open, open: ` + secretPage + `}
  - {name: login, steps: [{click: "css #name"}, {type: hushname}, {click: "css #nowhere"}, {type: hushword}]}
`},
	{"comparison with traces", "a plan of two arms", `name: secrets
limit_s: 40
trials: 2
traces: 1
measure: {page_marks: true, metrics: [all]}
page: ` + secretPage + "\n" + secretUser + `treatment: {link: "rtt=100ms"}
`},
	{"pages and users", "a plan of many pages", `name: secrets
limit_s: 40
trials: 1
pages:
  - page: ` + secretPage + `
  - page: "https://www.shop.test/tricks/?key=hushquery"
` + secretUser + `  - {name: new}
`},
}

// TestSecretsOfARun runs plans whose pages, users and typed texts are secrets, and looks for them where
// docs/security.md ("Secrets of a plan") says that they are not: in arguments and variables of all processes while one
// runs, in what it prints, in its exports, and in its files but those for whoever may start it again.
func TestSecretsOfARun(t *testing.T) {
	needLab(t)
	for _, kind := range secretPlans {
		t.Run(kind.name, func(t *testing.T) {
			if kind.long != "" {
				testlab.Long(t, kind.long)
			}
			processes := watchProcesses()
			got, out := runPlan(t, kind.plan)
			processes(t)
			if strings.Contains(withoutAddresses(got.out+got.err), planted) {
				t.Errorf("it printed a secret:\n%s\n%s", got.out, got.err)
			}
			if public := searchFiles(t, out); public < 3 {
				t.Fatalf("status %d: %s%s: %d files for others, want 3 or more", got.status, got.out, got.err, public)
			}
			for _, format := range []string{"markdown", "junit", "csv", "github", "perfherder"} {
				e := finishCmd(t, appliance(t, "export", "--format", format, out))
				if e.status != exitGood || strings.Contains(e.out+e.err, planted) {
					t.Errorf("export --format %s: status %d\n%.3000s\n%.3000s", format, e.status, e.out, e.err)
				}
			}
		})
	}
}

// TestSecretsOfAService: the same of a service that is asked over REST, of all that it prints, and of its support
// bundle.
func TestSecretsOfAService(t *testing.T) {
	needLab(t)
	testlab.Long(t, "TestSecretsOfARun and TestSupportBundleHasNoSecrets, joined")
	data := t.TempDir()
	uploads := filepath.Join(data, service.UploadsDir)
	if err := os.MkdirAll(uploads, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(recordingOf(t, secretPlans[0].plan), filepath.Join(uploads, "shop.wacz")); err != nil {
		t.Fatal(err)
	}
	journal, err := os.Create(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	processes := watchProcesses()
	s := startLogged(t, data, journal, "serve", "--listen", "127.0.0.1:0")
	for _, kind := range secretPlans[:2] {
		var plan map[string]any
		if err := yaml.Unmarshal([]byte(kind.plan+"archive: shop.wacz\n"), &plan); err != nil {
			t.Fatal(err)
		}
		id := s.panel.Start(t, plan)
		s.panel.Follow(t, id, 3*testlab.Hang, func(p storytest.Progress) bool { return p.State == store.StateFailed })
		if public := searchFiles(t, filepath.Join(data, "runs", id)); public < 3 {
			t.Errorf("%s: %d files for others, want 3 or more", kind.name, public)
		}
	}
	file := filepath.Join(t.TempDir(), "support.tar.gz")
	support := appliance(t, "support", "--out", file, "--box", s.panel.URL)
	support.Env = append(support.Env, tokenVariable+"="+s.panel.Token)
	if got := finishCmd(t, support); got.status != exitGood {
		t.Fatalf("support: status %d: %s%s", got.status, got.out, got.err)
	}
	processes(t)
	if printed, err := os.ReadFile(journal.Name()); err != nil || bytes.Contains(printed, []byte(planted)) {
		t.Errorf("the service printed a secret (%v):\n%s", err, printed)
	}
	packed, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := io.ReadAll(unpacked)
	if err != nil || len(bundle) == 0 {
		t.Fatalf("the support bundle has %d bytes (%v)", len(bundle), err)
	}
	if at := bytes.Index(bundle, []byte(planted)); at >= 0 {
		t.Errorf("the support bundle has a secret: …%s…", bundle[max(0, at-300):min(len(bundle), at+100)])
	}
}

// runPlan carries out a plan's text on this machine, and returns where its run is.
func runPlan(t *testing.T, text string) (got result, out string) {
	t.Helper()
	dir := t.TempDir()
	plan, out := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "out")
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return finishCmd(t, appliance(t, "run", "--plan", plan, "--out", out)), out
}

// recordingOf runs a plan on the sample shop and returns the recording's file.
func recordingOf(t *testing.T, text string) string {
	t.Helper()
	got, out := runPlan(t, text)
	files, err := filepath.Glob(filepath.Join(out, "latest", "*.wacz"))
	if err != nil || len(files) != 1 {
		t.Fatalf("status %d: %s%s: recordings %q, want one (%v)", got.status, got.out, got.err, files, err)
	}
	return files[0]
}

// withoutAddresses leaves out what addresses of pages have: those are for whoever started the run.
func withoutAddresses(text string) string {
	return strings.NewReplacer("hushquery", "", "hushfragment", "").Replace(text)
}

// searchFiles searches those files of runs that are for others, and says how many there are.
func searchFiles(t *testing.T, out string) (public int) {
	t.Helper()
	err := filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case filepath.Ext(name) == ".html":
		case name == "report.json": // has the addresses as they were, without users
			content = []byte(withoutAddresses(string(content)))
		default:
			return nil
		}
		public++
		if at := bytes.Index(content, []byte(planted)); at >= 0 {
			t.Errorf("%s has a secret: …%s…", name, content[max(0, at-100):min(len(content), at+100)])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return public
}

// watchProcesses looks at the arguments and variables of all processes until the function that it returns is called,
// which fails the test if any had a secret.
func watchProcesses() (end func(*testing.T)) {
	stop, seen := make(chan struct{}), make(chan []string)
	go lookAtProcesses(stop, seen)
	return func(t *testing.T) {
		t.Helper()
		close(stop)
		if found := <-seen; len(found) > 0 {
			t.Errorf("processes had secrets in arguments or variables:\n%s", strings.Join(found, "\n"))
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
