package device

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"eidetic/internal/lab"
)

// mostThreads bounds the threads that are read, and the files that are open for them.
const mostThreads = 1000

// thread is one of the browser's, with what it had at its last reading.
type thread struct {
	pid         int
	at          lab.Time
	ran, waited int64
	file        *os.File // its schedstat
	told, seen  bool
}

// readThreads reads the processor time and the waits of each thread of a browser's process: proc_pid_schedstat(5) has
// both in ns. It is done as often as processes are looked for.
func (s *Sampler) readThreads(now lab.Time, pid int) {
	dir := filepath.Join(s.proc, strconv.Itoa(pid), "task")
	names, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, name := range names {
		tid, err := strconv.Atoi(name.Name())
		if err != nil {
			continue
		}
		t := s.threads[tid]
		if t == nil {
			if len(s.threads) >= mostThreads {
				s.out.Left++
				continue
			}
			file, err := os.Open(filepath.Join(dir, name.Name(), "schedstat"))
			if err != nil {
				continue
			}
			t = &thread{pid: pid, file: file, at: s.listed}
			s.threads[tid] = t
			if s.first { // what was before is nobody's
				t.at = now
				t.ran, t.waited = schedule(file)
			}
		}
		t.seen = true
		ran, waited := schedule(t.file)
		one := lab.ProcessSample{At: now, PID: pid, TID: tid, For: int64(now - t.at), Ran: ran - t.ran, Waited: waited - t.waited}
		if one.Ran < 0 || one.Waited < 0 { // it cannot be read now
			continue
		}
		t.at, t.ran, t.waited = now, ran, waited
		if one.Ran+one.Waited == 0 {
			continue
		}
		if !t.told { // a thread names itself after it was born
			comm, _ := os.ReadFile(filepath.Join(dir, name.Name(), "comm")) // nameless where it is gone
			one.Name, one.Of, t.told = lab.OneLine(string(bytes.TrimSpace(comm)), 40), lab.OfBrowser, true
		}
		s.emit(one)
	}
}

// forgetThreads closes the files of threads that are gone.
func (s *Sampler) forgetThreads() {
	for tid, t := range s.threads {
		if !t.seen {
			t.file.Close()
			delete(s.threads, tid)
		}
		t.seen = false
	}
}
