package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// session is the state of one call of this program.
type session struct {
	config
	self  string // this program
	began time.Time
	slow  *slowness

	mu       sync.Mutex // guards what follows, and keeps blocks of output together
	w        io.Writer
	progress *progress
	first    []outcome
	tried    int // so many of first have had their second try
	second   []outcome
	notes    []note   // of stages and jobs
	broken   []string // jobs that failed for another reason than a test
	left     []string // processes that tests left running
	leftOut  []string // parts for which there was no time
}

// outcome is a result with the job that produced it.
type outcome struct {
	*result
	job     job
	pattern string // of the second try
}

// note is the time that a stage or job took.
type note struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_seconds"`
	command bool    // it is no go test
}

func newSession(c config, w io.Writer) *session {
	began := time.Now()
	s := &session{config: c, w: w, began: began}
	if !c.verbose {
		s.progress = newProgress(w, began)
	}
	return s
}

func (s *session) prepare(ctx context.Context) (err error) {
	if s.self, err = os.Executable(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return err
	}
	if s.config.slow > 1 {
		s.slow, err = newSlowness(s.config.slow)
	}
	return err
}

func (s *session) close() { s.slow.remove() }

func (s *session) printf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.hide()
	fmt.Fprintf(s.w, format, args...)
}

// runPlan says what it will do, and does it.
func (s *session) runPlan(ctx context.Context) error {
	stages, err := plan(ctx, s.config)
	if err != nil {
		return err
	}
	s.announce(stages)
	if s.progress != nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go s.keepTime(ctx)
	}
	for _, stage := range stages {
		s.runStage(ctx, stage)
	}
	return nil
}

// keepTime shows the progress every second, until the context ends.
func (s *session) keepTime(ctx context.Context) {
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-tick.C:
			s.tell((*progress).show)
		case <-ctx.Done():
			tick.Stop()
			return
		}
	}
}

// announce says what will run, and how long the same took last time.
func (s *session) announce(stages []stage) {
	packages := map[string]bool{}
	var others []string
	for _, j := range jobs(stages) {
		for _, p := range j.packages {
			packages[p] = true
		}
		if len(j.command) > 0 {
			others = append(others, j.name)
		}
	}
	if s.progress != nil {
		for _, j := range jobs(stages) {
			s.progress.packages += len(j.packages)
		}
		s.progress.last = readTimes(s.out).Last[s.config.group]
	}
	text := fmt.Sprintf("The tests of %d packages", len(packages))
	if len(others) > 0 {
		text += ", and before or beside them: " + strings.Join(others, ", ")
	}
	if last := readTimes(s.out).Last[s.config.group]; last > 0 && s.config.group != groupPackages {
		text += fmt.Sprintf(". Last time it took %s here", clock(time.Duration(last)*time.Second))
	}
	s.printf("%s. Full output: %s\n", text, s.out)
}

func jobs(stages []stage) (all []job) {
	for _, st := range stages {
		for _, lane := range st.lanes {
			all = append(all, lane...)
		}
		all = append(all, st.pool...)
	}
	return all
}

// runStage runs the lanes of a stage beside each other, and the jobs of a lane
// one after another, and then those of the pool.
func (s *session) runStage(ctx context.Context, st stage) {
	began := time.Now()
	pool := make(chan job, len(st.pool))
	for _, j := range st.pool {
		pool <- j
	}
	close(pool)
	var lanes sync.WaitGroup
	for _, lane := range st.lanes {
		lanes.Go(func() {
			for _, j := range lane {
				if ctx.Err() != nil || !s.runJob(ctx, j) && j.needed {
					break
				}
			}
			for j := range pool {
				if ctx.Err() == nil {
					s.runJob(ctx, j)
				}
			}
		})
	}
	lanes.Wait()
	s.add(note{Name: "stage " + st.name, Seconds: time.Since(began).Seconds()})
}

func (s *session) add(n note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, n)
}

// tell changes what the terminal shows.
func (s *session) tell(change func(*progress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.progress)
}

// runJob runs a job and reports whether it succeeded.
func (s *session) runJob(ctx context.Context, j job) bool {
	began := time.Now()
	s.tell(func(p *progress) { p.begin(j.name) })
	defer s.tell(func(p *progress) { p.end(j.name) })
	if len(j.command) > 0 {
		var said bytes.Buffer
		end := s.supervised(ctx, j, j.command, &said, &said)
		s.add(note{j.name, time.Since(began).Seconds(), end.cpu.Seconds(), len(j.command) > 0})
		verdict := "ok  "
		if end.code != 0 {
			verdict = "FAIL"
		}
		if s.progress == nil || end.code != 0 {
			s.printf("%s%s\t%s\t%.1fs\n", said.String(), verdict, j.name, time.Since(began).Seconds())
		}
		if end.code != 0 {
			s.mu.Lock()
			s.broken = append(s.broken, j.name)
			s.mu.Unlock()
		}
		return end.code == 0
	}
	results := s.goTest(ctx, j, "")
	good := true
	for _, r := range results {
		good = good && r.passed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = append(s.first, results...)
	return good
}

// goTest runs the packages of a job, or only the tests that match a pattern, and prints
// the results.
func (s *session) goTest(ctx context.Context, j job, pattern string) (results []outcome) {
	again := pattern != "" || j.again
	args := append([]string{"go", "test", "-json"}, j.flags...)
	if j.run != "" && !again {
		args = append(args, "-run", j.run)
	}
	if pattern != "" {
		args = append(args, "-run", pattern)
	}
	args = append(args, s.slow.flags(s.self)...)
	args = append(args, j.packages...)
	began := time.Now()
	read, write := io.Pipe()
	var errors bytes.Buffer
	logs := logFiles{dir: s.out, second: again}
	d := reader{
		verbatim: func(text string) { s.printf("%s", text) },
		log: func(e event) {
			logs.write(e)
			summary := e.Test == "" && (strings.HasPrefix(e.Output, "ok  \t") || strings.HasPrefix(e.Output, "FAIL\t"))
			if s.verbose && !summary && !strings.HasPrefix(e.Output, "=== ") {
				s.printf("%s", e.Output)
			}
		},
		done: func(r *result) {
			o := outcome{r, j, pattern}
			results = append(results, o)
			if text := s.block(ctx, o, again); s.progress == nil || !o.passed || again {
				s.printf("%s", text)
			}
			s.tell(func(p *progress) { p.packageDone(o.top("pass")) })
		},
	}
	over := make(chan error, 1)
	go func() { over <- d.read(read) }()
	end := s.supervised(ctx, j, args, write, &errors)
	_ = write.Close()
	err := <-over
	logs.close()
	s.add(note{j.name, time.Since(began).Seconds(), end.cpu.Seconds(), len(j.command) > 0})
	if errors.Len() > 0 {
		s.printf("%s", errors.String())
	}
	failed := false
	for _, r := range results {
		failed = failed || !r.passed
	}
	if ctx.Err() == nil && (err != nil || end.code != 0 && !failed) {
		s.printf("FAIL\t%s: go test ended with status %d (%v)\n", j.name, end.code, err)
		s.mu.Lock()
		s.broken = append(s.broken, j.name)
		s.mu.Unlock()
	}
	return results
}

// block returns the text that is printed for a package. The text of a package that will be
// run again has no line with FAIL: each package has at most one such line, its last.
func (s *session) block(ctx context.Context, o outcome, again bool) string {
	if o.passed {
		if strings.Contains(o.summaryLine(), "no test files") {
			return ""
		}
		return o.summaryLine() + "\n"
	}
	story := o.story()
	if s.verbose {
		story = ""
	}
	if again || !o.hasSecondTry() || ctx.Err() != nil {
		return story + o.summaryLine() + "\n"
	}
	return fmt.Sprintf("%sfailed\t%s\t%.3fs\t(run again below)\n", story, o.Package, o.took.Seconds())
}

// hasSecondTry reports whether a failed package is run once more. A package that does not
// compile would fail again, and a data race is a fault even if it is rare.
func (o outcome) hasSecondTry() bool { return !o.passed && !o.notBuilt && !o.raced }

// mostPatterns is the largest number of failed tests of a package that are run again by
// themselves; if more failed, the whole package is run again.
const mostPatterns = 12

// secondTries runs the failed tests once more, one after another.
func (s *session) secondTries(ctx context.Context) {
	for ; s.tried < len(s.first); s.tried++ {
		o := s.first[s.tried]
		if ctx.Err() != nil {
			return
		}
		if !o.hasSecondTry() {
			continue
		}
		patterns := o.again(o.job.casesStandAlone)
		if len(patterns) > mostPatterns {
			patterns = []string{""}
		}
		for _, pattern := range patterns {
			j := o.job
			j.name = "second try: " + o.Package + " " + pattern
			j.packages, j.again, j.nice = []string{o.Package}, true, 0
			j.flags = append([]string{"-count", "1"}, withoutCount(j.flags)...)
			s.printf("\nonce more, alone: %s %s\n", o.Package, pattern)
			results := s.goTest(ctx, j, pattern)
			for i := range results {
				results[i].pattern = pattern
				// A pattern that matches nothing proves nothing.
				if results[i].passed && results[i].top("pass")+results[i].top("skip") == 0 {
					results[i].passed = false
					s.printf("FAIL\t%s: no test matches %s\n", o.Package, pattern)
				}
			}
			if len(results) == 0 {
				results = []outcome{{&result{Package: o.Package}, j, pattern}}
			}
			s.second = append(s.second, results...)
		}
	}
}

// end is how a supervised command ended.
type end struct {
	code int
	cpu  time.Duration
}

// supervised runs a command below a supervisor, in a process group of its own: an
// interrupt from the terminal reaches only this process, which passes it on.
func (s *session) supervised(ctx context.Context, j job, command []string, stdout, stderr io.Writer) end {
	cmd := exec.Command(s.self, append([]string{superviseCommand, fmt.Sprint(j.nice)}, command...)...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Env = append(os.Environ(), j.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	// Descendants of a killed supervisor keep its output open.
	cmd.WaitDelay = lingerLimit
	if j.ownTemp {
		dir, err := os.MkdirTemp("", "t")
		if err != nil {
			fmt.Fprintln(stderr, "testrun:", err)
			return end{code: statusFailed}
		}
		defer removeTemp(dir)
		cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	}
	read, write, err := os.Pipe()
	if err != nil {
		fmt.Fprintln(stderr, "testrun:", err)
		return end{code: statusFailed}
	}
	cmd.ExtraFiles = []*os.File{write}
	started, over := make(chan error), make(chan error, 1)
	go func() {
		// The signal of the parent's death comes when the thread that started
		// the child ends: this one stays until the child has.
		runtime.LockOSThread()
		err := cmd.Start()
		write.Close()
		started <- err
		if err == nil {
			over <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		fmt.Fprintln(stderr, "testrun:", err)
		return end{code: statusFailed}
	}
	left := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(read)
		read.Close()
		left <- string(text)
	}()
	select {
	case <-over:
	case <-ctx.Done():
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-over
	}
	if text := <-left; text != "" {
		s.mu.Lock()
		for line := range strings.Lines(text) {
			s.left = append(s.left, j.name+": "+strings.TrimSpace(line))
		}
		s.mu.Unlock()
	}
	return end{cmd.ProcessState.ExitCode(), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
}

// removeTemp removes a folder of temporary files, unless something is mounted in it, whose
// files may not be ours.
func removeTemp(dir string) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err == nil && !strings.Contains(string(mounts), " "+dir) {
		_ = os.RemoveAll(dir)
	}
}

// withoutCount drops -count N.
func withoutCount(flags []string) (kept []string) {
	for i := 0; i < len(flags); i++ {
		if flags[i] == "-count" {
			i++
			continue
		}
		kept = append(kept, flags[i])
	}
	return kept
}

// logFiles keep the full output of each package.
type logFiles struct {
	dir    string
	second bool
	files  map[string]*os.File
}

func (l *logFiles) write(e event) {
	if l.files == nil {
		l.files = map[string]*os.File{}
	}
	f := l.files[e.Package]
	if f == nil {
		name := strings.ReplaceAll(strings.TrimPrefix(e.Package, module), "/", "-")
		flags := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
		if l.second {
			name, flags = name+".second", os.O_CREATE|os.O_WRONLY|os.O_APPEND
		}
		var err error
		if f, err = os.OpenFile(filepath.Join(l.dir, name+".log"), flags, 0o644); err != nil {
			return // the tests go on without their log
		}
		l.files[e.Package] = f
	}
	_, _ = f.WriteString(e.Output)
}

func (l *logFiles) close() {
	for _, f := range l.files {
		_ = f.Close()
	}
}
