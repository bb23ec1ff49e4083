package bisection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"eidetic/analysis/bisect"
	"eidetic/analysis/stats"
	"eidetic/internal/base/atomicfile"
)

// JournalFile is the journal's name in the folder of a bisect.
const JournalFile = "bisect.jsonl"

// maxJournal bounds a journal that is read, and maxRuns the numbers of its runs.
const (
	maxJournal = 256 << 20
	maxRuns    = 1 << 30
)

// line is a line of the journal; one of its fields is set.
type line struct {
	Header     *header     `json:"bisect,omitempty"`
	Deployed   *deployed   `json:"deployed,omitempty"`
	Untestable *untestable `json:"untestable,omitempty"`
	Begun      *begun      `json:"begun,omitempty"`
	Ended      *ended      `json:"ended,omitempty"`
}

// header says which bisect this is.
type header struct {
	Version   int      `json:"version"`
	Revisions []string `json:"revisions"`
	Deploy    string   `json:"deploy"`
	Metric    string   `json:"metric"`
	Plan      string   `json:"plan"`
	Seed      uint64   `json:"seed"`
	Records   bool     `json:"records"`
}

// deployed is a revision that the command has deployed, and its recording if one was made.
type deployed struct {
	Revision int     `json:"revision"`
	Archive  string  `json:"archive,omitempty"`
	Seconds  float64 `json:"seconds"`
}

// untestable is a revision that could not be tried.
type untestable struct {
	Revision int    `json:"revision"`
	Reason   string `json:"reason"`
}

// begun is a run that has begun. Runs of one experiment may be under way at the same time.
type begun struct {
	Run       string `json:"run"`
	Number    int    `json:"number"` // of the run in the bisect, from 0
	Control   int    `json:"control"`
	Treatment int    `json:"treatment"`
	Pairs     int    `json:"pairs"`
	Confirms  bool   `json:"confirms,omitempty"`
}

// ended is what came of it.
type ended struct {
	Of      string        `json:"of_run"`
	State   string        `json:"state"` // of the run
	Trials  int           `json:"trials"`
	Seconds float64       `json:"seconds"` // its share of the time that all runs of the experiment took; 0 for one that was cut off
	Blocks  []stats.Block `json:"blocks"`
}

// visit is a run with its outcome.
type visit struct {
	begun
	ended
}

// journal is what is known, on the disk and here.
type journal struct {
	mu       sync.Mutex // for what is added while several runs are under way
	file     *os.File
	visits   []visit
	open     []begun // without an outcome yet
	next     int     // number that no run has had
	deployed map[int]deployed
	archives map[int]string
	skipped  []untestable
}

// openJournal opens the journal of a folder, or makes one.
func openJournal(dir string, h header) (j *journal, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, JournalFile)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("%s: another bisect is at work in this folder", dir)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxJournal+1))
	if err != nil {
		return nil, err
	}
	j = &journal{file: f, deployed: map[int]deployed{}, archives: map[int]string{}}
	whole, err := j.read(content, h)
	if err != nil {
		return nil, fmt.Errorf("%s%w", name, err)
	}
	if whole < len(content) { // a line that was being written when the program was killed
		if err := f.Truncate(int64(whole)); err != nil {
			return nil, err
		}
	}
	if whole == 0 {
		if err := j.add(line{Header: &h}); err != nil {
			return nil, err
		}
	}
	return j, atomicfile.SyncDir(dir)
}

// read takes in the whole lines of a journal, and returns their length. Its errors begin with the line's
// number.
func (j *journal) read(content []byte, h header) (whole int, err error) {
	if len(content) > maxJournal {
		return 0, fmt.Errorf(": more than %d MiB", maxJournal>>20)
	}
	for n := 1; ; n++ {
		end := bytes.IndexByte(content[whole:], '\n')
		if end < 0 {
			return whole, nil
		}
		var l line
		d := json.NewDecoder(bytes.NewReader(content[whole : whole+end]))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			return 0, fmt.Errorf(":%d: %w; to begin anew, remove the file", n, err)
		}
		if (n == 1) != (l.Header != nil) {
			return 0, fmt.Errorf(":%d: the first line, and no other, says which bisect it is; to begin anew, remove the file", n)
		}
		if n == 1 && !h.equal(*l.Header) {
			return 0, fmt.Errorf(" %w; name another folder with --out, or remove it", errOther)
		}
		if err := j.take(l, len(h.Revisions)); err != nil {
			return 0, fmt.Errorf(":%d: %w; to begin anew, remove the file", n, err)
		}
		whole += end + 1
	}
}

func (h header) equal(other header) bool {
	same := slices.Equal(h.Revisions, other.Revisions)
	return same && h.Version == other.Version && h.Deploy == other.Deploy && h.Metric == other.Metric && h.Plan == other.Plan &&
		h.Seed == other.Seed && h.Records == other.Records
}

// take adds a line to what is known.
func (j *journal) take(l line, revisions int) error {
	in := func(r int) bool { return r >= 0 && r < revisions }
	switch {
	case l.Header != nil:
	case l.Deployed != nil && in(l.Deployed.Revision):
		j.deployed[l.Deployed.Revision] = *l.Deployed
		j.archives[l.Deployed.Revision] = l.Deployed.Archive
	case l.Untestable != nil && in(l.Untestable.Revision):
		j.skipped = append(j.skipped, *l.Untestable)
	case l.Begun != nil && in(l.Begun.Control) && in(l.Begun.Treatment) && l.Begun.Number >= 0 && l.Begun.Number < maxRuns &&
		j.under(l.Begun.Run) < 0:
		j.open = append(j.open, *l.Begun)
		j.next = max(j.next, l.Begun.Number+1, len(j.visits)+len(j.open))
	case l.Ended != nil && j.under(l.Ended.Of) >= 0:
		at := j.under(l.Ended.Of)
		j.visits = append(j.visits, visit{j.open[at], *l.Ended})
		j.open = slices.Delete(j.open, at, at+1)
	default:
		return errors.New("not a line of a bisect's journal")
	}
	return nil
}

// under is the place of a run among those that are under way, or -1.
func (j *journal) under(run string) int {
	return slices.IndexFunc(j.open, func(b begun) bool { return b.Run == run })
}

// add writes a line to the disk, and takes it.
func (j *journal) add(l line) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return j.take(l, bisect.MaxRevisions+1)
}

func (j *journal) close() { _ = j.file.Close() } // every line was synced

// state is what analysis/bisect is asked with.
func (j *journal) state() (s bisect.State) {
	for _, v := range j.visits {
		s.Visits = append(s.Visits, bisect.Visit{Control: v.Control, Treatment: v.Treatment, Confirms: v.Confirms, Blocks: v.Blocks})
	}
	for _, u := range j.skipped {
		s.Untestable = append(s.Untestable, u.Revision)
	}
	return s
}

// deploySeconds are how long deploying took.
func (j *journal) deploySeconds() (out []float64) {
	for _, d := range j.deployed {
		out = append(out, d.Seconds)
	}
	slices.Sort(out) // the mean is the same each time
	return out
}

// secondsPerPair is how long a pair of trials took, on the average; 0 if it is not known.
func (j *journal) secondsPerPair() float64 {
	seconds, pairs := 0.0, 0
	for _, v := range j.visits {
		if v.Seconds > 0 {
			seconds, pairs = seconds+v.Seconds, pairs+v.Pairs
		}
	}
	if pairs == 0 {
		return 0
	}
	return seconds / float64(pairs)
}
