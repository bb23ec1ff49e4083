package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/capture/reel"
	"eidetic/capture/synthetic"
	"eidetic/internal/rigs/testlab"
)

// countersOf checks that every frame of the reel shows its own number, that
// only gaps that the reel names are between them, and returns how many there are.
func countersOf(t *testing.T, path string) int {
	t.Helper()
	r, err := reel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Len() == 0 {
		t.Fatalf("%s holds no frame", path)
	}
	for i := range r.Len() {
		pix, err := r.Pixels(i)
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := synthetic.ReadCounter(r.Format(), pix); !ok || uint64(n) != r.Info(i).Seq {
			t.Fatalf("frame %d shows %d (%v), its number is %d", i, n, ok, r.Info(i).Seq)
		}
	}
	if missing := int(r.Info(r.Len()-1).Seq-r.Info(0).Seq) + 1 - r.Len(); missing != r.Lost() {
		t.Errorf("%d numbers are missing, the gaps name %d", missing, r.Lost())
	}
	return r.Len()
}

// TestKilledCapture ends a recording with SIGKILL: all that it had written is there.
func TestKilledCapture(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "killed.reel")
	cmd := appliance(t, "capture", "--source", "synthetic:scroll", "--size", "640x360", "--out", path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	written := int64(0)
	for tick := time.NewTicker(10 * time.Millisecond); written < 500_000; <-tick.C {
		if st, err := os.Stat(path); err == nil {
			written = st.Size()
		}
		if t.Context().Err() != nil {
			t.Fatal("the recording does not grow")
		}
	}
	if err := cmd.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	status, out, errs := invoke(t, "reel", "verify", path)
	if status != exitFailed ||
		!strings.Contains(out, "the recording was cut off") && !strings.Contains(out, "the file ends inside a block") {
		t.Errorf("verify: status %d: %s%s", status, out, errs)
	}
	saved := filepath.Join(dir, "saved.reel")
	if status, _, errs := invoke(t, "reel", "recover", path, "--out", saved); status != exitGood {
		t.Fatalf("recover: status %d: %s", status, errs)
	}
	if status, out, _ := invoke(t, "reel", "verify", saved); status != exitGood {
		t.Errorf("verify of what was saved: status %d: %s", status, out)
	}
	if all, again := countersOf(t, path), countersOf(t, saved); all != again {
		t.Errorf("%d frames are in the file, %d were saved", all, again)
	}
}

// TestFullDisk records onto a file system of 3 MiB until it is full.
func TestFullDisk(t *testing.T) {
	testlab.NeedNamespaces(t)
	dir := t.TempDir()
	disk, saved := filepath.Join(dir, "disk"), filepath.Join(dir, "saved.reel")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	// The mount goes with the namespace, so the file is copied out of it. The
	// disk stays full while the reel is closed.
	script := `mount -t tmpfs -o size=3m full "$1" && "$2" capture --source synthetic:noise --size 320x200 --out "$1/x.reel"; s=$?; cp "$1/x.reel" "$3" || exit 99; exit $s`
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--mount", "--propagation", "private", "sh", "-c", script, "sh", disk, self, saved}
	if os.Geteuid() != 0 {
		args = append([]string{"--user", "--map-root-user"}, args...)
	}
	cmd := exec.CommandContext(t.Context(), testlab.NeedProgram(t, "unshare"), args...)
	cmd.Env = append(os.Environ(), asAppliance+"=1")
	got := finishCmd(t, cmd)
	if got.status == exitGood || got.status == 99 || !strings.Contains(got.err, "no space left on device") {
		t.Fatalf("status %d: %s%s", got.status, got.out, got.err)
	}
	frames := countersOf(t, saved)
	if frames < 8 || !strings.Contains(got.err, "frames are in ") {
		t.Errorf("%d frames of 256,000 bytes are in 3 MiB: %s", frames, got.err)
	}
	if status, out, _ := invoke(t, "reel", "recover", saved, "--out", filepath.Join(dir, "again.reel")); status != exitGood ||
		countersOf(t, filepath.Join(dir, "again.reel")) != frames {
		t.Errorf("recover: status %d: %s", status, out)
	}
}

// TestTriggerBySignal begins a recording behind a pre-roll with SIGUSR1.
func TestTriggerBySignal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.reel")
	cmd := appliance(t, "capture", "--source", "synthetic:static", "--size", "320x200", "--pre-roll", "10s", "--out", path, "--json")
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(errs)
	for lines.Scan() && !strings.Contains(lines.Text(), "press Enter") {
	}
	if err := cmd.Process.Signal(unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() && lines.Text() != "recording" {
	}
	// The next frame takes those before it along.
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		if st, err := os.Stat(path); err == nil && st.Size() > 1000 || t.Context().Err() != nil {
			break
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	var st struct {
		Kept int `json:"frames_in_file"`
	}
	if err := json.Unmarshal(text, &st); err != nil || st.Kept != countersOf(t, path) {
		t.Errorf("%v: %s", err, text)
	}
}
