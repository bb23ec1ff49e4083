// Package isolate runs this program again in namespaces of its own: network, mounts,
// processes, System V memory, host name and, for an ordinary user, a user namespace in which
// it is root. Its input is a command line of this program. What the inside does to
// interfaces, routes, mounts and processes is invisible outside and vanishes when its first
// process ends, however that ends: the kernel kills every process of a PID namespace with
// its first one, and removes network devices and mounts with their last user.
package isolate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"eidetic/internal/base/unshare"
)

// stopGrace is how long the inside may take to end after SIGTERM, before SIGKILL.
const stopGrace = 20 * time.Second

// Available returns nil if namespaces can be made here, or an error that says why not and
// which command allows it.
func Available(ctx context.Context) error {
	err := unshare.Run(exec.CommandContext(ctx, "/bin/true"), namespaces)
	if !rootIsMount() || err != nil && isChroot() {
		return errors.New("this is a chroot, in which the kernel makes neither private mounts nor user namespaces: " + noChroot)
	}
	if err != nil {
		if os.Geteuid() == 0 {
			return fmt.Errorf("this machine does not let root make namespaces (%w): a container needs the options of docs/container.md", err)
		}
		return fmt.Errorf("this machine does not let an ordinary user make namespaces (%w): run as root, or allow it "+
			"with 'sysctl kernel.unprivileged_userns_clone=1' or 'sysctl kernel.apparmor_restrict_unprivileged_userns=0'; "+
			"a container needs the options of docs/container.md", err)
	}
	return nil
}

// noChroot says what to do instead of chroot(2).
const noChroot = "make the folder the root of a mount namespace instead, with unshare(1) and pivot_root(8), " +
	"or use a container with the options of docs/container.md"

// rootIsMount reports whether the root folder is a mount point, as it is everywhere but in a
// chroot. A chroot without /proc shows no mounts.
func rootIsMount() bool {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == "/" {
			return true
		}
	}
	return false
}

// isChroot reports whether the root folder is another than that of the first process, if this
// process may know. A mount namespace may have another root as well, without being a chroot: this
// explains a failure and does not foretell one.
func isChroot() bool {
	ours, err := os.Stat("/")
	first, firstErr := os.Stat("/proc/1/root")
	return err == nil && firstErr == nil && !os.SameFile(ours, first)
}

// Run executes this program with args inside new namespaces, its standard
// streams ours, and waits for it. extra files become descriptors 3, 4, … inside.
// When ctx ends, the inside gets SIGTERM and, after a grace, SIGKILL; when this
// process dies, it is killed by the kernel. The error is an *exec.ExitError when
// the inside ended with another status than 0.
func Run(ctx context.Context, args []string, extra ...*os.File) error {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread enters a control group, and ends with this function
		ended <- run(ctx, enter, args, extra)
	}()
	return <-ended
}

// run is Run on a thread of its own: what is started from a thread is born in the thread's control group. enter is the
// function of that name.
func run(ctx context.Context, enter func(*exec.Cmd) (leave func()), args []string, extra []*os.File) error {
	command := func() *exec.Cmd {
		cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
		cmd.Args[0] = os.Args[0]
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.ExtraFiles = extra
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = stopGrace
		return cmd
	}
	cmd := command()
	leave := enter(cmd)
	grouped := cmd.SysProcAttr != nil
	err := unshare.Run(cmd, namespaces)
	leave()
	if grouped && cmd.Process == nil && ctx.Err() == nil { // some filters of system calls refuse clone3, which enters the group
		err = unshare.Run(command(), namespaces) // the inside then bounds itself
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		return fmt.Errorf("start the lab's namespaces: %w", err)
	}
	return err
}

// namespaces are those of the inside, besides the user namespace.
const namespaces = unshare.Network | unshare.Mounts | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
