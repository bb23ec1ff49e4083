package device

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/base/priority"
	"eidetic/internal/lab"
)

// Host reports what of this machine could explain a difference between two runs, or spoil
// a trial.
type Host struct {
	// Processes is a folder like /proc with the processes of the whole machine, for a caller
	// whose own /proc shows only part of them; "" is /proc.
	Processes string
	// System is where the kernel shows its devices; "" is /sys.
	System string
}

// Wall is the wall clock.
func (Host) Wall() time.Time { return time.Now() }

// Awake keeps the processors from entering sleep states until release is called.
func (Host) Awake() (release func()) { return lab.Awake() }

// Facts describes the machine.
func (Host) Facts() lab.Host {
	awake, priority, root := lab.MayStayAwake(), realtime(), os.Getuid() == 0 && !userNamespace()
	return lab.Host{
		OS:          field("/etc/os-release", "PRETTY_NAME=", "="),
		Kernel:      kernel(),
		Processor:   field("/proc/cpuinfo", "model name", ":"),
		Cores:       runtime.NumCPU(),
		MemoryBytes: memory(),
		Go:          runtime.Version(),
		Governor:    first("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
		LoadAverage: first("/proc/loadavg"),
		KeptAwake:   &awake,
		IdleDriver:  first("/sys/devices/system/cpu/cpuidle/current_driver"),
		SMT:         first("/sys/devices/system/cpu/smt/active"),
		NoTurbo:     turboOff(first("/sys/devices/system/cpu/intel_pstate/no_turbo"), first("/sys/devices/system/cpu/cpufreq/boost")),
		HugePages:   chosen(first("/sys/kernel/mm/transparent_hugepage/enabled")),
		Realtime:    &priority,
		Root:        &root,
	}
}

// turboOff is 1 where turbo is off, by Intel's driver or by the others' boost; "" where neither says it.
func turboOff(noTurbo, boost string) string {
	if other := map[string]string{"0": "1", "1": "0"}[boost]; noTurbo == "" {
		return other
	}
	return noTurbo
}

// chosen returns the word in brackets, as in "always [madvise] never".
func chosen(list string) string {
	_, rest, _ := strings.Cut(list, "[")
	word, _, _ := strings.Cut(rest, "]")
	return word
}

// realtime is the highest real-time priority that this process may use, 0 for none.
func realtime() int {
	if os.Getuid() == 0 && !userNamespace() {
		return 99
	}
	return priority.Limit()
}

func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
}

func memory() int64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	return int64(s.Totalram) * int64(s.Unit)
}

// userNamespace says whether this process is root only in a user namespace.
func userNamespace() bool {
	all := lines("/proc/self/uid_map")
	return len(all) != 1 || strings.Join(strings.Fields(all[0]), " ") != "0 0 4294967295"
}

// field returns what follows separator in the first line that starts with prefix.
func field(file, prefix, separator string) string {
	for _, line := range lines(file) {
		if !strings.HasPrefix(line, prefix) {
			continue
		}
		if _, value, ok := strings.Cut(line, separator); ok {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}

func first(file string) string {
	if all := lines(file); len(all) > 0 {
		return strings.TrimSpace(all[0])
	}
	return ""
}

func readInt(file string) int64 {
	n, _ := strconv.ParseInt(first(file), 10, 64)
	return n
}

func lines(file string) []string {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimRight(string(content), "\n"), "\n")
}
