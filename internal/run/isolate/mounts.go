package isolate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Mounts configures the inside's view of the file system.
type Mounts struct {
	// Keep names folders that stay visible although they are below a covered one, such as
	// an output folder in /tmp. They must exist.
	Keep []string
	// Resolver is the address written to the inside's /etc/resolv.conf. With it, the inside's
	// /etc/hosts knows localhost alone, so that every other name is asked for there.
	Resolver string
	// TempSize bounds the RAM file system at /tmp, in bytes.
	TempSize int64
}

// covered lists the folders that get a fresh RAM file system: those in which X servers,
// browsers and libraries leave sockets, locks and shared memory.
var covered = [...]string{"/tmp", "/dev/shm"}

// Mount gives the calling process, which Run started, its private view. Call it once, before
// other goroutines open files below /tmp.
func Mount(m Mounts) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	kept, err := openKept(m.Keep)
	if err != nil {
		return err
	}
	defer func() {
		for _, k := range kept {
			k.file.Close()
		}
	}()
	for _, dir := range covered {
		options := fmt.Sprintf("mode=1777,size=%d", m.TempSize)
		if err := syscall.Mount("eidetic", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
			return fmt.Errorf("mounting a RAM file system at %s: %w", dir, err)
		}
	}
	// TMPDIR may name a folder that is covered now.
	if err := os.MkdirAll(os.TempDir(), 0o700); err != nil {
		return fmt.Errorf("making TMPDIR anew: %w", err)
	}
	for _, k := range kept {
		if err := os.MkdirAll(k.path, 0o755); err != nil {
			return fmt.Errorf("keeping %s: %w", k.path, err)
		}
		if err := syscall.Mount(fmt.Sprintf("/proc/self/fd/%d", k.file.Fd()), k.path, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return fmt.Errorf("keeping %s: %w", k.path, err)
		}
	}
	if err := resolver(m.Resolver); err != nil {
		return err
	}
	// The kernel refuses a fresh /proc in containers that mask parts of it. Then the outer
	// /proc stays, which shows our processes under other PIDs.
	_ = syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, "")
	return nil
}

type keptDir struct {
	path string
	file *os.File
}

// openKept opens those folders that would be covered.
func openKept(dirs []string) ([]keptDir, error) {
	var kept []keptDir
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("keeping %s: %w", dir, err)
		}
		if abs, err = filepath.EvalSymlinks(abs); err != nil {
			return nil, fmt.Errorf("keeping %s: %w", dir, err)
		}
		for _, c := range covered {
			if abs != c && !strings.HasPrefix(abs, c+"/") {
				continue
			}
			f, err := os.Open(abs)
			if err != nil {
				return nil, fmt.Errorf("keeping %s: %w", dir, err)
			}
			kept = append(kept, keptDir{abs, f})
			break
		}
	}
	return kept, nil
}

// resolver mounts files over /etc/resolv.conf, which programs inside read to find their
// name server, and over /etc/hosts.
func resolver(address string) error {
	if address == "" {
		return nil
	}
	if err := cover("/etc/resolv.conf", "nameserver "+address+"\n"); err != nil {
		return err
	}
	if _, err := os.Stat("/etc/hosts"); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return cover("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")
}

// cover mounts a file with this text over another file.
func cover(file, text string) error {
	ours := filepath.Join("/tmp", filepath.Base(file))
	if err := os.WriteFile(ours, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the inside's %s: %w", file, err)
	}
	target, err := filepath.EvalSymlinks(file)
	if err != nil {
		return fmt.Errorf("the machine has no readable %s to put ours over (%w): make one, it may be empty", file, err)
	}
	if err := syscall.Mount(ours, target, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("putting the lab's own file over %s: %w", target, err)
	}
	return nil
}
