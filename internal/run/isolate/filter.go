package isolate

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denied lists the system calls that a confined program and what it starts do not get, also not in user namespaces of
// their own, in which they have every capability: those that reach the kernel's own code and keys, other processes,
// mounts and the machine's state. What is left has what browsers need to make their own sandboxes: namespaces, chroot,
// and filters like this one (seccomp(2)).
func denied() []uint32 {
	return []uint32{
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
		unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
		unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS,
		unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_QUOTACTL,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
		unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	}
}

// Where the fields of struct seccomp_data are; of an argument the lower half, on a little-endian machine.
const (
	dataNumber, dataArch = 0, 4
	firstArgument        = 16
)

// x32 is the bit that other numbers of the same system calls have on x86-64.
const x32 = 0x40000000

// filterProgram is the filter in the kernel's form (classic BPF): whatever is not named is allowed.
func filterProgram() ([]unix.SockFilter, error) {
	arch, ok := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("confined programs have no filter of system calls on %s", runtime.GOARCH)
	}
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	argument := func(n uint32) unix.SockFilter { return load(firstArgument + 8*n) }
	// unless skips so many instructions if the value is another one.
	unless := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: skip}
	}
	end := func(with uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with} }
	allow, deny := end(unix.SECCOMP_RET_ALLOW), end(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM))

	program := []unix.SockFilter{
		load(dataArch), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: arch, Jt: 1}, deny,
		load(dataNumber), {Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: x32, Jf: 1}, deny,
	}
	for _, number := range denied() {
		program = append(program, unless(number, 1), deny)
	}
	// Sockets of the machine's own kinds: of the network namespace, and not of what a namespace does not part, such as
	// AF_VSOCK, which reaches the machine that this one is a guest of. Of netlink the routes, and what udev tells.
	sockets := []unix.SockFilter{argument(0)}
	for _, family := range []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6} {
		sockets = append(sockets, unless(family, 1), allow)
	}
	sockets = append(sockets, unless(unix.AF_NETLINK, 5), argument(2))
	for _, protocol := range []uint32{unix.NETLINK_ROUTE, unix.NETLINK_KOBJECT_UEVENT} {
		sockets = append(sockets, unless(protocol, 1), allow)
	}
	sockets = append(sockets, deny)
	program = append(append(program, unless(unix.SYS_SOCKET, uint8(len(sockets)))), sockets...)
	// Terminals are not typed into.
	return append(program, unless(unix.SYS_IOCTL, 5), argument(1), unless(unix.TIOCSTI, 1), deny, unless(unix.TIOCLINUX, 1), deny, allow), nil
}

// filter puts the filter on the calling thread, and on what it starts. The thread has given up set-user-ID programs.
func filter() error {
	program, err := filterProgram()
	if err != nil {
		return err
	}
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, number := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&p)))
	runtime.KeepAlive(program)
	switch {
	case number == 0:
		return nil
	case errors.Is(number, unix.ENOSYS), errors.Is(number, unix.EINVAL):
		return fmt.Errorf("the kernel has no filters of system calls (CONFIG_SECCOMP_FILTER): %w", number)
	}
	return fmt.Errorf("filtering a confined program's system calls: %w", number)
}
