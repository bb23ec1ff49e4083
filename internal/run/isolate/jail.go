package isolate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Sandbox says what keeps a virtual device's browser from the machine, from the least to the
// most.
type Sandbox int

// The steps of protection besides the network namespace, which a browser always has.
const (
	// SandboxNone lets the browser work with the rights of the lab's inner half.
	SandboxNone Sandbox = iota
	// SandboxOurs gives the browser a user namespace with an unprivileged user, and a view of
	// the file system in which it can write to its home and /tmp alone.
	SandboxOurs
	// SandboxFull is SandboxOurs, and in it the browser's own sandbox around each page.
	SandboxFull
)

// String describes the sandbox for a report.
func (s Sandbox) String() string {
	switch s {
	case SandboxFull:
		return "the browser's own, in a user namespace with a read-only system"
	case SandboxOurs:
		return "a user namespace with a read-only system; the browser's own is off (--no-sandbox)"
	default:
		return "none (--no-sandbox)"
	}
}

// nobody is the user, and the group, that a browser is for the machine, where the lab may use
// users other than its own.
const nobody = 65534

// insideUser is the user that a browser is for itself. Chromium and Firefox treat 0 in another way.
const insideUser = 1000

// Jail starts a browser's process in SandboxOurs.
type Jail struct {
	user      int  // of the processes outside the jail's user namespace
	setgroups bool // the supplementary groups can be, and are, given up
}

// NewJail finds out which user the browser is to be.
func NewJail() Jail {
	if isMapped("/proc/self/uid_map", nobody) && isMapped("/proc/self/gid_map", nobody) {
		return Jail{user: nobody, setgroups: true}
	}
	// An ordinary user has itself alone, which the lab's namespaces call 0.
	return Jail{}
}

// isMapped tells whether a user or group exists in this process's user namespace, by its map
// (user_namespaces(7)).
func isMapped(file string, id int64) bool {
	text, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		first, err := strconv.ParseInt(fields[0], 10, 64)
		size, sizeErr := strconv.ParseInt(fields[2], 10, 64)
		if err == nil && sizeErr == nil && first <= id && id < first+size {
			return true
		}
	}
	return false
}

// GiveHome makes the browser's user the owner of a folder and all that is in it.
func (j Jail) GiveHome(home string) error {
	if j.user == os.Getuid() {
		return nil
	}
	return filepath.WalkDir(home, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, j.user, j.user)
	})
}

// Enter confines this thread as Confine does, and prepares cmd to start as the unprivileged user.
func (j Jail) Enter(cmd *exec.Cmd, home string, readable ...string) error {
	if err := KeepDescriptors(); err != nil {
		return err
	}
	if err := Confine(View{Home: home, Readable: readable, TempSize: jailTemp}); err != nil {
		return err
	}
	if err := filter(); err != nil {
		return err
	}
	ids := []syscall.SysProcIDMap{{ContainerID: insideUser, HostID: j.user, Size: 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true, // away from a person's terminal
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: j.setgroups,
		Credential: &syscall.Credential{Uid: insideUser, Gid: insideUser, NoSetGroups: !j.setgroups},
	}
	return nil
}

// jailTemp bounds the RAM that a browser may take for files in /tmp, and for shared memory, in
// bytes. Debian's Chromium puts shared memory elsewhere if /dev/shm has less than 4080218931.
const jailTemp = 4 << 30

// probeLimit bounds the time that a probe of the sandbox takes, which is some milliseconds.
const probeLimit = 20 * time.Second

// Thread calls a function on a thread that may be confined, as netspace.Namespace.Do does.
type Thread func(f func() error) error

// ProbeSandbox finds out what the kernel allows: it returns the most that works, and, unless
// that is SandboxFull, a *Refusal. It must be called inside, with a private /tmp.
func ProbeSandbox(ctx context.Context, on Thread) (Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	home, err := os.MkdirTemp("", "probe-")
	if err != nil {
		return SandboxNone, err
	}
	defer os.RemoveAll(home)
	if err := probe(ctx, on, home, "true"); err != nil {
		return SandboxNone, &Refusal{err}
	}
	// Chromium and Firefox make these namespaces for the processes that work for pages, and Chromium changes their
	// root.
	if err := probe(ctx, on, home, "unshare", "--user", "--map-root-user", "--pid", "--net", "--fork", "--root=/", "true"); err != nil {
		return SandboxOurs, &Refusal{err}
	}
	return SandboxFull, nil
}

// probe runs a program as a browser is run.
func probe(ctx context.Context, on Thread, home, program string, args ...string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = home
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	j := NewJail()
	if err := j.GiveHome(home); err != nil {
		return err
	}
	err = on(func() error {
		if err := j.Enter(cmd, home); err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("making a user namespace: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}

// Refusal says that browsers cannot have their sandbox on this machine.
type Refusal struct{ Err error }

func (r *Refusal) Error() string {
	return fmt.Sprintf("the browser cannot have its sandbox on this machine (%v): %s; or measure pages that you trust with --no-sandbox", r.Err, r.Remedy())
}

// Unwrap returns what failed.
func (r *Refusal) Unwrap() error { return r.Err }

// refusals are settings by which a machine refuses user namespaces to programs: the file, what
// it holds then, and the command that allows them.
var refusals = [...]struct{ file, refuses, remedy string }{
	{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
}

// Remedy says what would allow the sandbox.
func (r *Refusal) Remedy() string {
	// clone(2): the limit is reached. unshare(1) prints it.
	if errors.Is(r.Err, syscall.ENOSPC) || strings.Contains(strings.ToLower(r.Err.Error()), syscall.ENOSPC.Error()) {
		return "allow more user namespaces, as root, with 'sysctl user.max_user_namespaces=10000'"
	}
	for _, s := range refusals {
		if text, err := os.ReadFile(s.file); err == nil && strings.TrimSpace(string(text)) == s.refuses {
			return "allow it, as root, with '" + s.remedy + "'"
		}
	}
	if isChroot() {
		return "a chroot cannot have it: " + noChroot
	}
	return "in a container, start that with the options of docs/container.md"
}
