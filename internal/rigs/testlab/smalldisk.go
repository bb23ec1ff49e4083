package testlab

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// OnSmallDisk calls use where a folder is a disk of 4 MB, which only that call's thread sees. It needs root.
func OnSmallDisk(dir string, use func(dir string) error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread's mounts end with it
		done <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
				return err
			}
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return err
			}
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
				return err
			}
			return use(dir)
		}()
	}()
	return <-done
}
