package adb

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

const (
	// phoneTick is the unit of processor times in /proc, of which Android's kernels have 100 a second.
	phoneTick = 10 * time.Millisecond
	// mostUsers bounds the processes of one package.
	mostUsers = 50
)

// Used reads what the processes of a package have used: /proc/PID/stat (proc(5)), of those that ps calls by the package
// or by PACKAGE:SERVICE. With memory, dumpsys asks each of them, which takes a second, for its proportional set size.
func (p Phone) Used(ctx context.Context, name string, memory bool) (use lab.ProgramUse, err error) {
	if err := checkPackage(name); err != nil {
		return use, err
	}
	out, err := p.run(ctx, "ps", "-A", "-o", "PID,NAME")
	if err != nil {
		return use, err
	}
	words := []string{"cat"}
	for _, pid := range pidsOf(out, name) {
		words = append(words, fmt.Sprintf("/proc/%d/stat", pid))
	}
	if len(words) == 1 {
		use.At = lab.Monotonic()
		return use, nil
	}
	// cat fails if one of the processes has ended meanwhile; what it says of the others is good.
	if out, err = p.run(ctx, append(words, "2>&1;", "true")...); err != nil {
		return use, err
	}
	use.At = lab.Monotonic()
	for line := range strings.Lines(out) {
		switch ran, ok := ranOf(line); {
		case ok:
			use.Processes, use.Ran = use.Processes+1, use.Ran+int64(ran)
		case strings.HasPrefix(line, "cat:") && !strings.Contains(line, "No such"): // file, or process
			return use, fmt.Errorf("adb: the processor time of %s cannot be read: the phone says: %.300s", name, strings.TrimSpace(line))
		}
	}
	if !memory {
		return use, nil
	}
	if out, err = p.run(ctx, "dumpsys", "meminfo", "--package", name); err != nil {
		return use, err
	}
	use.Memory = memoryOf(out)
	return use, nil
}

// pidsOf reads ps: "PID NAME".
func pidsOf(ps, name string) (pids []int) {
	for line := range strings.Lines(ps) {
		fields := strings.Fields(line)
		if len(fields) != 2 || fields[1] != name && !strings.HasPrefix(fields[1], name+":") || len(pids) == mostUsers {
			continue
		}
		if pid, err := strconv.Atoi(fields[0]); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ranOf reads a line of /proc/PID/stat, whose name in brackets may hold any characters.
func ranOf(stat string) (time.Duration, bool) {
	const utime, stime = 11, 12 // after the name
	const bits = 34             // which is 2.7 years, and the sum of all processes stays within 64
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= stime {
		return 0, false
	}
	user, err := strconv.ParseInt(fields[utime], 10, bits)
	system, errSystem := strconv.ParseInt(fields[stime], 10, bits)
	if err != nil || errSystem != nil || user < 0 || system < 0 {
		return 0, false
	}
	return time.Duration(user+system) * phoneTick, true
}

// memoryOf sums the totals of dumpsys meminfo, in bytes: "TOTAL PSS: 123456 TOTAL RSS: …" since Android 11, before that
// "TOTAL: 123456 …".
func memoryOf(out string) (bytes int64) {
	for line := range strings.Lines(out) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "TOTAL PSS:")
		if !ok {
			rest, ok = strings.CutPrefix(strings.TrimSpace(line), "TOTAL:")
		}
		fields := strings.Fields(rest)
		if !ok || len(fields) == 0 {
			continue
		}
		if kB, err := strconv.ParseInt(fields[0], 10, 40); err == nil && kB >= 0 && bytes < 1<<50 {
			bytes += kB << 10
		}
	}
	return bytes
}
