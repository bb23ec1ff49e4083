package rfbtest_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/base/rfb/rfbtest"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

func TestMain(m *testing.M) {
	xtest.Main()
	testlab.NoLeaks(m)
}

const killedVar = "EIDETIC_TEST_KILLED"

// TestKilledTestLeavesNothing: if a test process is killed, its servers end and leave no
// socket, lock or shared memory. Remains would hinder later tests, and others would draw on a
// screen that stays.
func TestKilledTestLeavesNothing(t *testing.T) {
	if os.Getenv(killedVar) != "" {
		xvnc := rfbtest.Xvnc(t, testlab.NeedProgram(t, "Xvnc", "Xtigervnc"), "-geometry", "200x100")
		x11vnc := rfbtest.X11vnc(t, testlab.NeedProgram(t, "x11vnc"), testlab.NeedProgram(t, "Xvfb"), "200x100")
		fmt.Println("READY", xvnc.Display[1:], x11vnc.Display[1:])
		<-t.Context().Done() // the process is killed before
		return
	}
	testlab.NeedProgram(t, "Xvnc", "Xtigervnc")
	testlab.NeedProgram(t, "x11vnc")
	testlab.NeedProgram(t, "Xvfb")
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), killedVar+"=1", "TMPDIR="+testlab.TempDir(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := testlab.Start(t, cmd); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	var displays []string
	for lines := bufio.NewScanner(out); displays == nil && lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if rest, ok := strings.CutPrefix(lines.Text(), "READY "); ok {
			displays = strings.Fields(rest)
		}
	}
	servers := children(t, cmd.Process.Pid)
	files := traces(displays, servers)
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	if len(displays) != 2 || len(servers) != 3 {
		t.Fatalf("displays %q, servers %q, want 2 and 3; the child said:\n%s", displays, servers, said.String())
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(time.Minute)
	for {
		left := leftovers(t, files, servers)
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("a killed test leaves %q", left)
		}
	}
}

// children lists a process's children.
func children(t *testing.T, pid int) (all []string) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a thread may end
			t.Fatal(err)
		}
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}

// traces returns the existing files of the X servers and processes.
func traces(displays, pids []string) map[string]fs.FileInfo {
	files := map[string]fs.FileInfo{}
	add := func(file string) {
		if info, err := os.Lstat(file); err == nil {
			files[file] = info
		}
	}
	for _, d := range displays {
		add("/tmp/.X11-unix/X" + d)
		add("/tmp/.X" + d + "-lock")
	}
	for _, pid := range pids {
		add("/proc/" + pid)
	}
	return files
}

// leftovers lists those of the files that still exist, and shared memory of the processes.
func leftovers(t *testing.T, files map[string]fs.FileInfo, pids []string) (left []string) {
	t.Helper()
	for file, was := range files {
		// Another server may have taken the display number meanwhile.
		if is, err := os.Lstat(file); err == nil && os.SameFile(was, is) {
			left = append(left, file)
		}
	}
	segments, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(segments) {
		const creator = 4 // its column, see proc(5)
		if fields := strings.Fields(string(line)); len(fields) > creator {
			for _, pid := range pids {
				if fields[creator] == pid {
					left = append(left, "shared memory segment "+fields[1])
				}
			}
		}
	}
	return left
}
