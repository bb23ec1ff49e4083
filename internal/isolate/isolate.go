// Package isolate runs this program again in namespaces of its own: network,
// mounts, processes, System V memory, host name and, for an ordinary user, a user
// namespace in which it is root. In goes a command line of this program; what
// it does to interfaces, routes, mounts and processes is seen by nobody outside,
// and all of it vanishes when its first process ends, however it ends: the
// kernel kills every process of a process namespace with its first one, and
// drops network devices and mounts with their last user.
package isolate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// stopGrace is how long the inside may wind down after a signal.
const stopGrace = 20 * time.Second

// Available says why namespaces cannot be made here, with the mending command,
// or nil.
func Available(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "/bin/true")
	cmd.SysProcAttr = attributes()
	if err := cmd.Run(); err != nil {
		if os.Geteuid() == 0 {
			return fmt.Errorf("this machine does not let root make namespaces (%w): a container needs --privileged", err)
		}
		return fmt.Errorf("this machine does not let an ordinary user make namespaces (%w): run as root, or allow it with 'sysctl kernel.unprivileged_userns_clone=1' or 'sysctl kernel.apparmor_restrict_unprivileged_userns=0'", err)
	}
	return nil
}

// Run executes this program with args inside new namespaces, its standard
// streams ours, and waits for it. extra files become descriptors 3, 4, … inside.
// When ctx ends, the inside gets SIGTERM and, after a grace, SIGKILL; when this
// process dies, it is killed by the kernel. The error is an *exec.ExitError when
// the inside ended with another status than 0.
func Run(ctx context.Context, args []string, extra ...*os.File) error {
	// PR_SET_PDEATHSIG fires when the *thread* that forked ends, so that thread
	// must live as long as the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = extra
	cmd.SysProcAttr = attributes()
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		return fmt.Errorf("starting the lab's namespaces: %w", err)
	}
	return err
}

// attributes asks for the namespaces; only a user who is not root needs one of
// users, and root without it can also open devices.
func attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return attr
}
