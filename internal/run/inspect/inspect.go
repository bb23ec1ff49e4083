// Package inspect judges a recording in a process of its own with a memory limit, so that a hostile one
// ends that process and nothing else. A recording comes from people who upload it, and from pages, which
// fill what a run records.
//
// In go a file and the command that starts this program again; out come the archive's facts, warnings
// and quality, or the reason why it is refused. The process has three limits: the reading's own budget
// (package archive), the Go runtime's soft limit, which makes it collect garbage instead of growing, and
// RLIMIT_DATA, at which the kernel gives it no more. (RLIMIT_AS does not fit: Go reserves address space
// far beyond what it uses.)
package inspect

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// Report is what is found out about a recording.
type Report struct {
	Info     lab.ArchiveInfo `json:"info"`
	Warnings []string        `json:"warnings"`
	Quality  archive.Quality `json:"quality"`
	// Pages are the recording's, and Requests its first ones. Long addresses are cut off.
	Pages    []archive.Page  `json:"pages"`
	Requests []archive.Entry `json:"requests"`
	// Foreign says that the file is no WACZ: another program's, to be imported.
	Foreign bool `json:"foreign,omitempty"`
	// Refused says why the file cannot be read.
	Refused string `json:"refused,omitempty"`
}

// Bounds of a report.
const (
	maxProblems = 500
	maxPages    = 100
	maxRequests = 3000
	maxURL      = 400
	maxWord     = 80
)

// Inspect judges a recording in this process.
func Inspect(file string, memory int64) Report {
	a, err := archive.OpenWithin(file, archive.Limits{Memory: memory})
	if err != nil {
		return Report{Refused: err.Error()}
	}
	r := Report{Info: a.Info(), Warnings: a.Warnings(), Quality: archive.Assess(a), Foreign: !isWACZ(file)}
	if n := len(r.Quality.Problems) - maxProblems; n > 0 {
		r.Quality.Problems = append(r.Quality.Problems[:maxProblems:maxProblems], archive.Problem{
			Kind: "more", What: fmt.Sprintf("%d more problems are not listed", n),
		})
	}
	for _, p := range a.Pages()[:min(len(a.Pages()), maxPages)] {
		p.URL, p.Title = cut(p.URL, maxURL), cut(p.Title, maxURL)
		r.Pages = append(r.Pages, p)
	}
	for _, e := range a.Exchanges()[:min(len(a.Exchanges()), maxRequests)] {
		entry := archive.EntryOf(e)
		entry.URL = cut(entry.URL, maxURL)
		for _, text := range []*string{&entry.Method, &entry.Type, &entry.ID, &entry.Protocol, &entry.Truncated} {
			*text = cut(*text, maxWord)
		}
		r.Requests = append(r.Requests, entry)
	}
	return r
}

// isWACZ says whether a file is a package as WACZ 1.1.1 has it.
func isWACZ(file string) bool {
	z, err := zip.OpenReader(file)
	if err != nil {
		return false
	}
	defer z.Close()
	return slices.ContainsFunc(z.File, func(f *zip.File) bool { return f.Name == "datapackage.json" })
}

// cut shortens a text of a recording.
func cut(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "") }

// Checker judges and changes recordings in processes of their own.
type Checker struct {
	// Command starts this program's half in the process ([Serve]); the file and its memory in bytes are
	// appended, and of a change the new file. Without a command the work is done in this process, for tests.
	Command []string
	// Memory is what a reading may take; 0 is archive's default.
	Memory int64
	// Turn waits until no other check goes on, since each may take all the memory; nil lets them run at once.
	Turn func(context.Context) (done func(), err error)
}

// limit is how long a check may take: a recording of 4 GB takes a tenth of it.
const limit = 5 * time.Minute

// maxReport bounds what a process may say.
const maxReport = 8 << 20

// Check judges a recording. An error means that it could not be judged; that it is refused is in the
// report.
func (c Checker) Check(ctx context.Context, file string) (Report, error) {
	memory := c.Memory
	if memory == 0 {
		memory = archive.MemoryOf(archive.DefaultShare)
	}
	if len(c.Command) == 0 {
		return Inspect(file, memory), nil
	}
	var r Report
	died, err := c.start(ctx, &r, nil, file, strconv.FormatInt(memory, 10))
	if died != "" {
		return Report{Refused: died}, err
	}
	return r, err
}

// start has a process of its own fill an answer in. died says why it ended without one.
func (c Checker) start(ctx context.Context, answer any, input []byte, args ...string) (died string, err error) {
	if c.Turn != nil {
		done, err := c.Turn(ctx)
		if err != nil {
			return "", err
		}
		defer done()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Command[0], append(c.Command[1:len(c.Command):len(c.Command)], args...)...)
	out, words := &bounded{left: maxReport}, &bounded{left: 4 << 10}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), out, words
	cmd.Env = append(os.Environ(), "GOTRACEBACK=none")
	err = cmd.Run()
	if cause := ctx.Err(); errors.Is(cause, context.Canceled) {
		return "", cause
	}
	if err == nil && out.left >= 0 {
		return "", json.Unmarshal(out.Bytes(), answer)
	}
	return whyDied(ctx, cmd.ProcessState, words.String(), err), nil
}

// whyDied says why a process ended without a report.
func whyDied(ctx context.Context, state *os.ProcessState, words string, err error) string {
	reason := fmt.Sprint(err)
	if status, ok := state.Sys().(syscall.WaitStatus); ok {
		switch {
		case ctx.Err() != nil || status.Signaled() && status.Signal() == syscall.SIGXCPU:
			return fmt.Sprintf("checking it took more than %v: no real recording does", limit)
		case strings.Contains(words, "out of memory"), strings.Contains(words, "cannot allocate memory"),
			status.Signaled() && status.Signal() == syscall.SIGKILL:
			return "checking it took more memory than it may: no real recording does"
		}
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(words), "\n"); line != "" {
		reason += ": " + line
	}
	return "the process that checks it ended by itself (" + reason + "): it may have been made to do that"
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	bytes.Buffer
	left int
}

// Write keeps what fits. It is no error that the rest does not: the process must not wait, nor end.
func (b *bounded) Write(p []byte) (int, error) {
	if keep := min(len(p), max(b.left, 0)); keep > 0 {
		_, _ = b.Buffer.Write(p[:keep])
	}
	b.left -= len(p)
	return len(p), nil
}

// ReadFrom hides the buffer's, which would go past Write.
func (b *bounded) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{b}, r) }

// Serve is the half of Check in the process of its own.
func Serve(w io.Writer, file string, memory int64) error {
	if err := confine(file, memory); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(Inspect(file, memory))
}

// confine gives this process the limits under which it may read a file.
func confine(file string, memory int64) error {
	st, err := os.Stat(file)
	if err != nil {
		return err
	}
	// A reading takes twice what it counts until the garbage is collected; the rest is the program.
	soft := 2*archive.MemoryFor(st.Size(), memory) + 64<<20
	debug.SetMemoryLimit(soft)
	hard := uint64(soft + soft/2 + 256<<20)
	seconds := uint64(2 * limit / time.Second)
	for _, l := range []struct {
		what     string
		resource int
		cur, max uint64
	}{
		{"memory", unix.RLIMIT_DATA, hard, hard},
		{"processor time", unix.RLIMIT_CPU, seconds, seconds + 5},
		{"size of files", unix.RLIMIT_FSIZE, maxFile, maxFile},
	} {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.cur, Max: l.max}); err != nil {
			return fmt.Errorf("limit the %s: %w", l.what, err)
		}
	}
	return nil
}
