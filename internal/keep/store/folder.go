package store

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/lab"
)

// The states of a run, as in lab.Run.State.
const (
	StateQueued      = "queued" // in the panel only: not started, has no folder
	StateRunning     = "running"
	StateDone        = "done"
	StateFailed      = "failed"
	StateInterrupted = "interrupted"
)

// ErrNotFound is returned for a run that the store does not have.
var ErrNotFound = errors.New("no such run")

// Latest is what leads to the newest run, beside the folder of all.
const Latest = "latest"

// RunFile is the file of a run's folder that has all of it, with the secrets of its plan; TrialFile is that of a trial's
// folder, with what was typed.
const (
	RunFile   = "run.json"
	TrialFile = "trial.json"
)

const (
	runsDir    = "runs"
	trialsDir  = "trials"
	lockFile   = ".lock"
	reportFile = "report.json"
)

var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// ValidID says whether a run may have this name: letters, digits, dot, dash
// and underscore, at most 128 of them, starting with a letter or digit. Such
// a name is one path element and needs no escaping in a URL.
func ValidID(id string) bool { return idPattern.MatchString(id) }

// Folder is the folder of one run, held by the process that writes it.
type Folder struct {
	dir  string
	lock *os.File
	own  *os.File // of a resumed run: the folder itself, so that nobody completes it meanwhile
	// trials holds the digest of each trial.json as written, so that saving
	// after every trial does not sync all the earlier ones again.
	trials map[int][sha256.Size]byte
}

// Create makes root/runs/<run.ID> for a new run, takes its lock, writes what is known
// of the run and points root/latest to the folder. The caller closes the folder when
// the run has ended.
func Create(root string, run *lab.Run) (*Folder, error) {
	f, err := makeFolder(root, run, nil)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(publish(root, run.ID), publishCells(root, run)); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("create run: %w", err)
	}
	return f, nil
}

// Put makes the folder of a run that is complete when it appears: fill writes the files into the folder, and what it
// changes of the run is saved, before the folder gets its name. Whoever is killed meanwhile leaves nothing that is
// listed.
func Put(root string, run *lab.Run, fill func(dir string) error) error {
	f, err := makeFolder(root, run, fill)
	if err != nil {
		return err
	}
	return f.Close()
}

// makeFolder makes a run's folder; a nil fill writes nothing besides the run.
func makeFolder(root string, run *lab.Run, fill func(dir string) error) (*Folder, error) {
	if !ValidID(run.ID) {
		return nil, fmt.Errorf("create run: %q is not a run ID (letters, digits, '.', '-', '_')", run.ID)
	}
	runs := filepath.Join(root, runsDir)
	if err := os.MkdirAll(runs, 0o755); err != nil {
		return nil, fmt.Errorf("create run: make the output folder: %w", err)
	}
	dir := filepath.Join(runs, run.ID)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("create run: %s exists already (%w)", dir, errors.Join(err, fs.ErrExist))
	}
	// The folder is renamed once run.json is in it, so readers never see a folder without a run.
	unnamed, err := os.MkdirTemp(runs, ".new-")
	if err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	f := &Folder{dir: unnamed, trials: map[int][sha256.Size]byte{}}
	if err = os.Chmod(unnamed, 0o755); err == nil {
		err = f.prepare(run, fill)
	}
	if err == nil {
		err = os.Rename(unnamed, dir) // fails if another process has created the run meanwhile
	}
	if err != nil {
		_ = f.Close()
		_ = os.RemoveAll(unnamed) // the temporary folder made above
		return nil, fmt.Errorf("create run: %w", err)
	}
	f.dir = dir
	if err := atomicfile.SyncDir(runs); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("create run: %w", err)
	}
	return f, nil
}

func (f *Folder) prepare(run *lab.Run, fill func(dir string) error) error {
	lock, err := os.OpenFile(filepath.Join(f.dir, lockFile), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	f.lock = lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if fill != nil {
		if err := fill(f.dir); err != nil {
			return err
		}
	}
	return f.Save(run)
}

// published are the names that root links to through latest.
func published() []string {
	return []string{"report.html", "timeline.html", reportFile, RunFile, trialsDir}
}

// publish points root/latest at the run and the other names through it.
func publish(root, id string) error {
	if err := link(filepath.Join(runsDir, id), filepath.Join(root, Latest)); err != nil {
		return err
	}
	for _, name := range published() {
		if err := link(filepath.Join(Latest, name), filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return nil
}

// publishCells points names in root at the reports of the run's pages and users, and removes those of an
// earlier run that had more.
func publishCells(root string, run *lab.Run) error {
	old, err := fs.Glob(os.DirFS(root), "cell-*.html")
	if err != nil {
		return err
	}
	for _, c := range run.Cells {
		for _, name := range []string{c.Report, strings.TrimSuffix(c.Report, ".html") + "-timeline.html"} {
			if err := link(filepath.Join(Latest, name), filepath.Join(root, name)); err != nil {
				return err
			}
			old = slices.DeleteFunc(old, func(other string) bool { return other == name })
		}
	}
	for _, name := range old {
		path := filepath.Join(root, name)
		if target, err := os.Readlink(path); err == nil && target == filepath.Join(Latest, name) {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// link makes or replaces a symbolic link in one step. A file of that name that is not
// a link belongs to the user and stays.
func link(target, name string) error {
	switch info, err := os.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink == 0:
		return nil
	}
	// A unique temporary name: runs of two devices may begin at once in one process.
	temp := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+"."+rand.Text()+".tmp")
	if err := os.Symlink(target, temp); err != nil {
		return err
	}
	if err := os.Rename(temp, name); err != nil {
		_ = os.Remove(temp)
		return err
	}
	return nil
}

// Path is the run's folder.
func (f *Folder) Path() string { return f.dir }

// TrialName is the name of a trial's folder: 001, 002, … 1000.
func TrialName(n int) string { return fmt.Sprintf("%03d", n) }

// TrialDir makes the folder of trial n, which counts from 1, and returns its path.
func (f *Folder) TrialDir(n int) (string, error) {
	if n < 1 || n > MaxTrials {
		return "", fmt.Errorf("trial folder: number %d is outside 1 … %d", n, MaxTrials)
	}
	dir := filepath.Join(f.dir, trialsDir, TrialName(n))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("trial folder: %w", err)
	}
	return dir, nil
}

// Save writes run.json, report.json and a trial.json for each trial. Each file is
// replaced atomically and synced before any file that refers to it, so after a power cut
// every trial listed in run.json is complete, and so is a run whose state is final. A
// number that JSON cannot represent (NaN, infinity) is an error that names the field;
// leave a measurement without a value out.
func (f *Folder) Save(run *lab.Run) error {
	if err := checkFinite(run); err != nil {
		return fmt.Errorf("save run: %w", err)
	}
	whole, err := encode(withoutSeries(run))
	if err == nil {
		err = checkReadable(whole)
	}
	if err != nil {
		return fmt.Errorf("save run: %w", err)
	}
	for _, t := range run.Trials {
		dir, err := f.TrialDir(t.Number)
		if err != nil {
			return fmt.Errorf("save run: %w", err)
		}
		b, err := encode(t)
		if err != nil {
			return fmt.Errorf("save run: trial %d: %w", t.Number, err)
		}
		digest := sha256.Sum256(b)
		if f.trials[t.Number] == digest {
			continue
		}
		if err := syncTree(dir); err != nil {
			return fmt.Errorf("save run: trial %d: %w", t.Number, err)
		}
		if err := atomicfile.WriteFile(filepath.Join(dir, TrialFile), b, 0o644); err != nil {
			return fmt.Errorf("save run: trial %d: %w", t.Number, err)
		}
		f.trials[t.Number] = digest
	}
	if err := writeJSON(filepath.Join(f.dir, reportFile), NewReport(run)); err != nil {
		return fmt.Errorf("save run: %w", err)
	}
	if run.State != StateRunning {
		if err := syncTree(f.dir); err != nil {
			return fmt.Errorf("save run: %w", err)
		}
	}
	if err := atomicfile.WriteFile(filepath.Join(f.dir, RunFile), whole, 0o644); err != nil {
		return fmt.Errorf("save run: %w", err)
	}
	return nil
}

// withoutSeries returns the run as run.json holds it: without the per-frame series and
// the costs of a trial's parts, which only trial.json has. They are most of a trial's
// bytes, and run.json is rewritten after each trial.
func withoutSeries(run *lab.Run) *lab.Run {
	short := *run
	short.Trials = make([]*lab.Trial, len(run.Trials))
	for i, t := range run.Trials {
		bare := *t
		bare.LoadHistogram, bare.VisualProgress, bare.FrameTimes = nil, nil, nil
		bare.Parts = nil
		bare.Steps = withoutCurves(t.Steps)
		short.Trials[i] = &bare
	}
	return &short
}

// checkReadable refuses what DecodeRun would refuse, before it replaces a run.json
// that can be read.
func checkReadable(b []byte) error {
	err := checkBounds(b)
	if len(b) > MaxRunBytes {
		err = fmt.Errorf("larger than %d MiB", MaxRunBytes>>20)
	}
	if err != nil {
		return fmt.Errorf("%s would be too large to be read again: %w; ask for fewer trials", RunFile, err)
	}
	return nil
}

// Close releases the lock. The lock file stays: if it were removed, two processes could
// lock different files of the same name.
func (f *Folder) Close() error {
	if f.lock == nil {
		return nil
	}
	err := f.lock.Close()
	if f.own != nil {
		err = errors.Join(err, f.own.Close())
	}
	f.lock, f.own = nil, nil
	return err
}

// isLocked says whether a living process holds the run's lock. It does not follow links
// or block on pipes: the lock file may have been replaced by a link to a file that
// another program locks.
func isLocked(dir string) bool {
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer lock.Close()
	// A shared lock, so that two readers do not see each other as the writer.
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		return errors.Is(err, syscall.EWOULDBLOCK)
	}
	return false
}

func writeJSON(path string, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, b, 0o644)
}

func encode(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", " ")
	return append(b, '\n'), err
}
