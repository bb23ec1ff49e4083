// Package unshare runs a program in Linux namespaces of its own: in go a command
// and the namespaces that it gets, out comes the command's result. An ordinary
// user also gets a user namespace, in which the program is root. See unshare(1)
// and namespaces(7).
package unshare

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Network and Mounts are the namespaces that a program needs to have a network
// and settings of its own below /proc/sys.
const Network, Mounts = syscall.CLONE_NEWNET, syscall.CLONE_NEWNS

// Run runs cmd in the new namespaces of flags (CLONE_NEW…) and waits for it. The
// kernel kills the program when this process ends.
func Run(cmd *exec.Cmd, flags uintptr) error {
	// PR_SET_PDEATHSIG fires when the *thread* that forked ends, so that thread
	// must live as long as the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Cloneflags, cmd.SysProcAttr.Pdeathsig = flags, syscall.SIGKILL
	// Root needs no user namespace, and without one it can also open devices.
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return cmd.Run()
}
