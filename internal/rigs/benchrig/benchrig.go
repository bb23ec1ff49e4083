// Package benchrig loads recorded pages on a virtual device again and again, for
// benchmarks: it builds the appliance, records the sample page, and runs, in namespaces
// of their own, one rig for all loads. The trials are the product's own (packages
// experiment and job), except that their films are not kept as evidence.
package benchrig

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/benchtable"
	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/run/device"
	"eidetic/internal/run/execute"
	"eidetic/internal/run/experiment"
	"eidetic/internal/run/isolate"
	"eidetic/netlab/archive"
	"eidetic/netlab/link"
)

// InsideArg is the argument with which a benchmark starts itself again in namespaces.
const InsideArg = "inside"

// Main is the main function of a benchmark that starts itself again in namespaces, where inside gets its settings.
func Main(name string, run func(context.Context) error, inside func(ctx context.Context, settings string) error) {
	benchtable.Main(name, func(ctx context.Context) error {
		if len(os.Args) == 3 && os.Args[1] == InsideArg {
			return inside(ctx, os.Args[2])
		}
		return run(ctx)
	})
}

// tempSize bounds the RAM for the files of browsers and reels.
const tempSize = 4 << 30

// Page is the URL that is loaded.
const Page = samplesite.Home

// Build makes the appliance in dir, whose link process the rig needs.
func Build(ctx context.Context, dir string) (appliance string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	appliance = filepath.Join(dir, "appliance")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", appliance, "./cmd/appliance")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the appliance (from the repository's root): %w: %s", err, text)
	}
	return appliance, nil
}

// Record has the appliance record the sample page into the file, unless it is there already.
func Record(ctx context.Context, appliance, file string) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), "recording-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(ctx, appliance, "demo", "--no-serve", "--trials", "1", "--link", "native", "--out", dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	text, demoErr := cmd.CombinedOutput() // the recording counts even if its one trial is invalid
	made := filepath.Join(dir, "latest", execute.ArchiveFile)
	if _, err := os.Stat(made); err != nil {
		return fmt.Errorf("recording the sample page: %w: %s", errors.Join(err, demoErr), text)
	}
	if made, err = filepath.EvalSymlinks(made); err != nil {
		return err
	}
	return os.Rename(made, file)
}

// SHA256 returns the SHA-256 of a file in hex.
func SHA256(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Revision names the git revision that the benchmark was started in, "" if it is unknown.
func Revision(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// Config describes a rig.
type Config struct {
	Appliance string   // from Build
	Keep      []string // folders that stay visible inside
	Link      string   // name or parameters of a profile
	Browser   string   // program; "" is Chromium
	Page      string   // that is loaded; "" is Page
	Log       *slog.Logger
}

// Rig is a virtual device that loads pages.
type Rig struct {
	*execute.Virtual
	Runner  *experiment.Runner
	profile link.Profile
	page    string
}

// Open starts a rig in the namespaces of this process, which isolate.Run started.
func Open(ctx context.Context, c Config) (*Rig, error) {
	profile, err := link.Reader{}.Parse(c.Link)
	if err != nil {
		return nil, err
	}
	keep := append([]string{filepath.Dir(c.Appliance)}, c.Keep...)
	if err := isolate.Mount(isolate.Mounts{Keep: keep, Resolver: device.Gateway().String(), TempSize: tempSize}); err != nil {
		return nil, err
	}
	v, err := execute.NewVirtual(ctx, execute.VirtualConfig{
		Forwarder: []string{c.Appliance, "link", "forward"}, Meter: []string{c.Appliance, "meter"}, Log: c.Log,
		Browser: &lab.Browser{Name: cmp.Or(c.Browser, lab.Chromium)},
	})
	if err != nil {
		return nil, err
	}
	return &Rig{v, v.NewRunner(c.Log), profile, cmp.Or(c.Page, Page)}, nil
}

// Arm returns an arm that replays a recording of the page.
func (r *Rig) Arm(name string, recorded *archive.Archive) experiment.Arm {
	return experiment.Arm{
		Name: name, Page: r.page, Sync: execute.SyncURL(lab.Arm{Page: r.page}), Network: r.Replay(recorded),
		Ready: func() error { return r.Network.SetLink(r.profile) },
	}
}

// Browser returns the version of the rig's browser.
func (r *Rig) Browser() string {
	var e lab.Environment
	r.Describe(&e)
	return e.Browser
}

// Scratch keeps a trial's artifacts until the next trial begins.
type Scratch struct{ Dir string }

// TrialDir implements [experiment.Folder]: it empties the folder of the last trial and returns it.
func (s Scratch) TrialDir(int) (string, error) {
	if err := os.RemoveAll(s.Dir); err != nil {
		return "", err
	}
	return s.Dir, os.MkdirAll(s.Dir, 0o755)
}

// Plan returns the product's plan with a shorter stillness at the end of a load: a
// benchmark uses only a load's numbers, and none of them needs a longer one.
func Plan(trials int, still time.Duration, seed uint64) experiment.Plan {
	p := experiment.DefaultPlan("", "", trials)
	p.Still, p.Seed = still, seed
	return p
}
