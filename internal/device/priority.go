package device

import "syscall"

// renice changes the niceness of a process group; a device that cannot be
// reniced is only less smooth to film, and lost frames are counted anyway.
func renice(group, niceness int) {
	_ = syscall.Setpriority(syscall.PRIO_PGRP, group, niceness)
}
