package storytest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

const killedVar = "EIDETIC_TEST_KILLED"

// here is the namespace of the test itself.
type here struct{}

func (here) Do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, as where a namespace is entered
		done <- f()
	}()
	return <-done
}

// TestKilledTestEndsItsDevice checks that a device's programs and their descendants end when
// the test's process is killed. A kiosk that stayed would open its browser on the screens of
// later tests.
func TestKilledTestEndsItsDevice(t *testing.T) {
	testlab.NeedRoot(t)
	if dir := os.Getenv(killedVar); dir != "" {
		d := &Device{t: t, at: here{}, dir: dir, log: &output{}}
		d.start(exec.Command("sh", "-c", `sh -c 'sleep 3600; :' "$0" & : >"$0/ready"; wait`, dir))
		<-t.Context().Done() // killed before
		return
	}
	dir := testlab.TempDir(t)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), killedVar+"="+dir)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = time.Second
	if err := testlab.Start(t, cmd); err != nil {
		t.Fatal(err)
	}
	ready := eventually(func() bool {
		_, err := os.Stat(filepath.Join(dir, "ready"))
		return err == nil && len(running(t, dir)) >= 2
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	if !ready {
		t.Fatalf("the device did not start: %s", said.String())
	}
	if !eventually(func() bool { return len(running(t, dir)) == 0 }) {
		t.Fatalf("after its test was killed, %q still runs; want nothing", running(t, dir))
	}
}

// eventually waits until ok holds, and returns false after a time that only a hang exceeds.
func eventually(ok func() bool) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// running lists the command lines of processes that contain a word.
func running(t *testing.T, word string) (all []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(word)) {
			all = append(all, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return all
}
