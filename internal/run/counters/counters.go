// Package counters has the kernel and the processor count what programs do, and reads the energy that the machine takes.
// In go a program that the calling thread starts next (perf_event_open(2)) and the kernel's files of RAPL's zones
// (power/powercap/powercap.rst), out come sums since then, and in words what is counted and why the rest is not.
package counters

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
)

// counter is an event that the kernel counts (perf_event_open(2)).
type counter struct {
	name      string // one of the lab.Counter… constants
	kind      uint32
	config    uint64
	ofKernels bool // it happens in the kernel alone: counted outside it, it is always 0
}

// counterList are the events that are counted where the machine has them.
var counterList = [...]counter{ // constant
	{name: lab.CounterCycles, kind: unix.PERF_TYPE_HARDWARE, config: unix.PERF_COUNT_HW_CPU_CYCLES},
	{name: lab.CounterInstructions, kind: unix.PERF_TYPE_HARDWARE, config: unix.PERF_COUNT_HW_INSTRUCTIONS},
	{name: lab.CounterCacheMisses, kind: unix.PERF_TYPE_HARDWARE, config: unix.PERF_COUNT_HW_CACHE_MISSES},
	{name: lab.CounterBranchMisses, kind: unix.PERF_TYPE_HARDWARE, config: unix.PERF_COUNT_HW_BRANCH_MISSES},
	{name: lab.CounterTaskClock, kind: unix.PERF_TYPE_SOFTWARE, config: unix.PERF_COUNT_SW_TASK_CLOCK},
	{name: lab.CounterSwitches, kind: unix.PERF_TYPE_SOFTWARE, config: unix.PERF_COUNT_SW_CONTEXT_SWITCHES, ofKernels: true},
	{name: lab.CounterMigrations, kind: unix.PERF_TYPE_SOFTWARE, config: unix.PERF_COUNT_SW_CPU_MIGRATIONS, ofKernels: true},
	{name: lab.CounterFaults, kind: unix.PERF_TYPE_SOFTWARE, config: unix.PERF_COUNT_SW_PAGE_FAULTS},
}

// Counters count events of the programs that are started on a device, from the first instruction of each and with all
// processes and threads that it starts. Where the kernel refuses, Counters count less, or nothing, and say so.
type Counters struct {
	mu     sync.Mutex
	sets   []*Set // of the programs that run
	ended  map[string]float64
	seen   map[string]bool
	user   bool // what the kernel does is not counted
	shared bool // the processor counted a part of the time, from which the whole is told
	lacks  map[string]error
}

// New counts nothing yet.
func New() *Counters {
	return &Counters{ended: map[string]float64{}, seen: map[string]bool{}, lacks: map[string]error{}}
}

// Set is the counters of one program. They belong to the thread that starts it, and the kernel gives each
// process and thread that comes of it its own, whose sum is read.
type Set struct {
	of   *Counters
	open map[string]int // descriptors
}

// Begin opens counters for the program that the calling thread starts next. It must come before the thread is confined.
// They count from the program's exec on. It works for nil, too.
func (c *Counters) Begin() *Set {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	set := &Set{of: c, open: map[string]int{}}
	for _, one := range counterList {
		fd, err := one.openFor(0, c.user)
		if (errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)) && !c.user {
			if fd, err = one.openFor(0, true); err == nil {
				c.user = true
			}
		}
		if err == nil && c.user && one.ofKernels {
			_ = unix.Close(fd) // it was only opened
			err = unix.EACCES
		}
		if err != nil {
			c.lacks[one.name] = err
			continue
		}
		set.open[one.name], c.seen[one.name] = fd, true
	}
	c.sets = append(c.sets, set)
	return set
}

// openFor opens a counter of a thread, 0 for this one, and of all that comes of it.
func (o counter) openFor(tid int, user bool) (int, error) {
	attr := unix.PerfEventAttr{
		Type: o.kind, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Config: o.config,
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
		Bits:        unix.PerfBitDisabled | unix.PerfBitInherit | unix.PerfBitEnableOnExec,
	}
	if user {
		attr.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	}
	return unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
}

// End closes the counters of a program that has ended; what they counted remains in the sums. It works for nil, too.
func (s *Set) End() {
	if s == nil {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for name, fd := range s.open {
		s.of.ended[name] += s.of.read(fd)
		_ = unix.Close(fd) // it was only read
	}
	s.open = nil
	s.of.sets = slices.DeleteFunc(s.of.sets, func(one *Set) bool { return one == s })
}

// read reads a counter. One that shared its register of the processor with others is told by the part of the time.
func (c *Counters) read(fd int) float64 {
	var b [24]byte
	if n, err := unix.Read(fd, b[:]); err != nil || n != len(b) {
		return 0
	}
	count := float64(binary.NativeEndian.Uint64(b[:]))
	enabled, running := float64(binary.NativeEndian.Uint64(b[8:])), float64(binary.NativeEndian.Uint64(b[16:]))
	if running <= 0 || running >= enabled {
		return count
	}
	c.shared = true
	return count * enabled / running
}

// Total is what was counted so far, by name, for each counter that this machine has. It works for nil, too.
func (c *Counters) Total() map[string]float64 {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := map[string]float64{}
	for name := range c.seen {
		sum[name] = c.ended[name]
		for _, s := range c.sets {
			if fd, ok := s.open[name]; ok {
				sum[name] += c.read(fd)
			}
		}
	}
	return sum
}

// paranoidFile says who may count.
const paranoidFile = "/proc/sys/kernel/perf_event_paranoid"

// Describe says what is counted, and why the rest is not. It is "" for nil, and before a program was started.
func (c *Counters) Describe() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen)+len(c.lacks) == 0 {
		return ""
	}
	return described(c.seen, c.lacks, c.user, c.shared, firstLine(paranoidFile))
}

// described tells in words what is counted. lacks has the kernel's answer for each other counter.
func described(seen map[string]bool, lacks map[string]error, user, shared bool, paranoid string) string {
	var have, none, refused []string
	other := ""
	for _, one := range counterList {
		name, err := one.name, lacks[one.name]
		switch {
		case seen[one.name]:
			have = append(have, name)
		case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
			refused = append(refused, name)
		case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV):
			none = append(none, name)
		case err != nil:
			other = "; the kernel says: " + err.Error()
		}
	}
	text := "none"
	if len(have) > 0 {
		text = strings.Join(have, ", ")
	}
	if user && len(have) > 0 {
		text += ", outside the kernel alone"
	}
	if shared {
		text += "; the processor has fewer registers than counters, which took turns: numbers are told from a part of the time"
	}
	if len(none) > 0 {
		text += "; this machine has no " + strings.Join(none, ", ") + ", as most virtual machines"
	}
	switch {
	case len(refused) > 0:
		text += "; the kernel refuses " + strings.Join(refused, ", ") + advice(paranoid)
	case user && len(have) > 0:
		text += "; the kernel refuses its own part" + advice(paranoid)
	}
	return text + other
}

// advice says what lets a program count.
func advice(paranoid string) string {
	const way = "'sysctl kernel.perf_event_paranoid=1', as root, or measure as root"
	if paranoid == "" {
		return ": allow it with " + way
	}
	return fmt.Sprintf(" (kernel.perf_event_paranoid is %s): allow it with %s; in a container, its filter of system calls may refuse, too", paranoid, way)
}

// Here says what can be counted here and why the rest cannot: for a doctor. An error says that nothing can.
func Here() (string, error) {
	c := New()
	set := c.Begin()
	set.End()
	if _, err := os.Stat(paranoidFile); errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("this kernel does not count events (CONFIG_PERF_EVENTS)")
	}
	text := c.Describe()
	if len(c.seen) == 0 {
		return "", errors.New(text)
	}
	return text, nil
}
