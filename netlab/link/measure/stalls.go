package measure

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// stalls are the times at which this machine gave no processor time to what measures.
type stalls []time.Duration

func (s stalls) longest() (d time.Duration) {
	for _, one := range s {
		d = max(d, one)
	}
	return d
}

func (s stalls) sum() (d time.Duration) {
	for _, one := range s {
		d += one
	}
	return d
}

// leastStall is how late a wake-up has to be: a third of what the round trips are held to, and more than a quiet
// machine needs.
const leastStall = 350 * time.Microsecond

// watchStalls notes stalls until it is ended: on each processor a thread sleeps for a millisecond at a time, and finds
// out by how much it wakes up late. The link's own lateness is not used: a link that is late by itself is at fault.
func watchStalls() (end func() stalls) {
	var over atomic.Bool
	var threads sync.WaitGroup
	var mu sync.Mutex
	var all stalls
	watch := func(processor int) {
		runtime.LockOSThread() // and the thread, whose settings are changed, ends with its goroutine
		var one unix.CPUSet
		one.Set(processor)
		_ = unix.SchedSetaffinity(0, &one) // a thread that may run anywhere notices less
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		var own stalls
		for before := time.Now(); !over.Load(); {
			nap := unix.NsecToTimespec(int64(time.Millisecond))
			_ = unix.Nanosleep(&nap, nil) // an interrupted one is shorter
			now := time.Now()
			if late := now.Sub(before) - time.Millisecond; late >= leastStall {
				own = append(own, late)
			}
			before = now
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, own...)
	}
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		may.Set(0)
	}
	for processor := range len(may) * 64 {
		if may.IsSet(processor) {
			threads.Go(func() { watch(processor) })
		}
	}
	return func() stalls {
		over.Store(true)
		threads.Wait()
		return all
	}
}

// fault is a way in which a measurement differs from the profile.
type fault struct {
	text string
	// excused tells whether stalls of the measuring machine can have caused it.
	excused func(stalls) bool
}

// never is for what a late machine cannot cause.
func never(stalls) bool { return false }

// lateEchoes excuses late echoes that stalls can have met: at its sending, where it enters and leaves the link, and at
// its arrival. An echo under way else is not touched.
func lateEchoes(n int, interval time.Duration) func(stalls) bool {
	const moments = 4
	return func(s stalls) bool {
		met := 0
		for _, one := range s {
			met += moments * (1 + int(one/interval))
		}
		return n <= met
	}
}

// lostTime excuses a goodput that differs by a share of the span. TCP takes a long stall for a loss, and then sends
// less for many round trips; of a short one it makes up for most.
func lostTime(share float64, span time.Duration) func(stalls) bool {
	const long, amplified = 50 * time.Millisecond, 5
	return func(s stalls) bool {
		return s.longest() >= long || share*span.Seconds() <= .02*span.Seconds()+amplified*s.sum().Seconds()
	}
}

// tries is how often a figure is measured that stalls of this machine may have spoilt.
const tries = 5

// settle measures until the result says something of the link: it agrees with the profile, or differs by more than this
// machine's stalls meanwhile can explain.
func (r *Result) settle(watch func() func() stalls, measure func() ([]Row, []fault, error)) error {
	for try := 1; ; try++ {
		end := watch()
		rows, faults, err := measure()
		seen := end()
		if err != nil {
			return err
		}
		excused := len(seen) > 0
		var why []string
		for _, f := range faults {
			excused = excused && f.excused(seen)
			why = append(why, f.text)
		}
		if len(faults) == 0 || !excused {
			r.Rows, r.Why = append(r.Rows, rows...), append(r.Why, why...)
			return nil
		}
		for i := range why {
			why[i] += fmt.Sprintf(", but this machine stalled meanwhile: %d times, for up to %v", len(seen), seen.longest().Round(10*time.Microsecond))
		}
		if try == tries {
			r.Rows, r.Unsure = append(r.Rows, rows...), append(r.Unsure, why...)
			return nil
		}
		r.Again = append(r.Again, why...)
	}
}
