package priority

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// behind is by how much (nice(2)) a process that is behind others lets them go first: each gets three times as much of
// a processor that both want.
const behind = 5

// ErrNoReturn is in the error of a process that could go behind others but not start one that does not.
var ErrNoReturn = errors.New("the user's limit of nice values (RLIMIT_NICE, nice in limits.conf, LimitNICE=+0 in a unit) lets " + // constant
	"nothing go ahead again")

// Behind lets other processes go before this one. The returned function, called on a locked thread, lets what is
// started there (fork(2)) be as this process was, until back is called. Real-time threads are not affected.
func Behind() (ahead func() (back func()), err error) {
	usual, err := niceOf(0)
	if err != nil {
		return nil, err
	}
	later := min(usual+behind, 19)
	if !mayReturn(usual, later) {
		return nil, ErrNoReturn
	}
	for again := true; again; { // a thread that starts meanwhile has the value of the one that started it
		if again, err = lowerAll(later); err != nil {
			return nil, err
		}
	}
	return func() (back func()) {
		thread := unix.Gettid()
		_ = unix.Setpriority(unix.PRIO_PROCESS, thread, usual) // mayReturn has tried it
		return func() { _ = unix.Setpriority(unix.PRIO_PROCESS, thread, later) }
	}, nil
}

// niceOf reads the nice value of a thread, 0 for the calling one.
func niceOf(thread int) (int, error) {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, thread)
	if err != nil {
		return 0, fmt.Errorf("read a nice value: %w", err)
	}
	return 20 - n, nil // the system call's answer is 1 to 40
}

// mayReturn tries it on a thread that ends then.
func mayReturn(usual, later int) bool {
	answer := make(chan bool)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		thread := unix.Gettid()
		answer <- unix.Setpriority(unix.PRIO_PROCESS, thread, later) == nil && unix.Setpriority(unix.PRIO_PROCESS, thread, usual) == nil
	}()
	return <-answer
}

// lowerAll lowers each thread, and says whether there was one to lower.
func lowerAll(to int) (again bool, err error) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false, fmt.Errorf("list this process's threads: %w", err)
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		switch now, err := niceOf(id); {
		case errors.Is(err, unix.ESRCH): // it has ended
		case err != nil:
			return false, err
		case now < to:
			if err := unix.Setpriority(unix.PRIO_PROCESS, id, to); err != nil && !errors.Is(err, unix.ESRCH) {
				return false, fmt.Errorf("let others go first: %w", err)
			}
			again = true
		}
	}
	return again, nil
}
