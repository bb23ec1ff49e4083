package device

import "syscall"

// renice changes the niceness of a process group.
func renice(group, niceness int) error {
	return syscall.Setpriority(syscall.PRIO_PGRP, group, niceness)
}
