package device

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// mostProcesses bounds how many processes of a browser are read.
const mostProcesses = 200

// Memory reads how much memory each process of the browser has. Whether it reads shares, too, is the caller's choice:
// for that the kernel looks at every page, some milliseconds a process.
type Memory struct {
	proc  string
	names map[string]string // by PID and start
}

// NewMemory reads the processes of its own namespace.
func NewMemory() *Memory { return &Memory{proc: "/proc", names: map[string]string{}} }

// Read returns the processes in the order of their IDs.
func (m *Memory) Read(shares bool) (list []lab.ProcessMemory) {
	all := processes(m.proc)
	pids := make([]int, 0, len(all))
	for pid, p := range all {
		if isProgram(filepath.Join(m.proc, strconv.Itoa(pid)), p.name) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	for _, pid := range pids[:min(len(pids), mostProcesses)] {
		dir := filepath.Join(m.proc, strconv.Itoa(pid))
		rss, _, ok := residentOf(dir)
		if !ok || rss == 0 { // it has ended
			continue
		}
		one := lab.ProcessMemory{At: lab.Monotonic(), PID: pid, Name: m.name(dir, pid, all[pid]), RSS: rss}
		if shares {
			one.PSS = shareOf(dir)
		}
		list = append(list, one)
	}
	return list
}

// residentOf reads statm (proc_pid_statm(5)): the second number is of pages in memory, the third of those among them
// that belong to files or are shared.
func residentOf(dir string) (bytes, shared int64, ok bool) {
	text, err := os.ReadFile(filepath.Join(dir, "statm"))
	if err != nil {
		return 0, 0, false
	}
	fields := strings.Fields(string(text))
	if len(fields) < 3 {
		return 0, 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	with, errShared := strconv.ParseInt(fields[2], 10, 64)
	page := int64(os.Getpagesize())
	return pages * page, with * page, err == nil && errShared == nil
}

// shareOf reads smaps_rollup: 0 where the kernel has none, or does not let us.
func shareOf(dir string) int64 {
	for _, line := range lines(filepath.Join(dir, "smaps_rollup")) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kB, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return kB << 10
		}
	}
	return 0
}

// name is what a process is in its browser: Chromium's say so by --type, Firefox's by their names.
func (m *Memory) name(dir string, pid int, p procStat) string {
	key := fmt.Sprint(pid, " ", p.begun)
	if name, ok := m.names[key]; ok {
		return name
	}
	command, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return p.name
	}
	// What Chromium's zygote starts writes its arguments anew, with spaces between them.
	name := roleOf(p.name, bytes.FieldsFunc(command, func(r rune) bool { return r == 0 || r == ' ' }))
	if len(m.names) < 10*mostProcesses {
		m.names[key] = name
	}
	return name
}

func roleOf(comm string, args [][]byte) string {
	if !strings.HasPrefix(comm, "chrom") && !strings.HasPrefix(comm, "google-chrom") {
		return lab.OneLine(comm, 40)
	}
	kind, sub := "", ""
	for _, a := range args {
		if v, ok := bytes.CutPrefix(a, []byte("--type=")); ok {
			kind = string(v)
		}
		if v, ok := bytes.CutPrefix(a, []byte("--utility-sub-type=")); ok {
			sub = string(v[bytes.LastIndexByte(v, '.')+1:])
		}
	}
	switch {
	case sub != "":
		return lab.OneLine(kind+" "+sub, 60)
	case kind != "":
		return lab.OneLine(kind, 40)
	case strings.Contains(comm, "crashpad"):
		return "crashpad"
	}
	return "browser"
}
