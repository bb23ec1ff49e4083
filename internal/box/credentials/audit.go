package credentials

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/lab"
)

// Act is an entry of the audit log.
type Act struct {
	Time   time.Time `json:"time" doc:"When"`
	Who    string    `json:"who" doc:"Name of the token; box is the box's own, and empty is somebody without a right one" example:"nightly"`
	What   string    `json:"what" doc:"What was done" example:"POST /api/v1/runs"`
	From   string    `json:"from" doc:"Address that it came from" example:"192.0.2.7"`
	Status int       `json:"status,omitempty" doc:"Status of the answer" example:"202"`
}

const (
	// maxAudit is the size at which the log's file is put aside; there are at most two.
	maxAudit = 512 << 10
	// MaxEvents is how many events are kept in memory, for [Store.Events].
	MaxEvents = 1000
	// maxText bounds each text of an event, in bytes.
	maxText = 200
	// oftenPerMinute bounds entries of one kind: what strangers did, what one token was refused, and one deed of one token.
	oftenPerMinute = 30
	// mostKinds bounds the kinds of entries that are counted.
	mostKinds = 1000
)

// audit is the log: the last events in memory, and the file.
type audit struct {
	dir    string
	log    *slog.Logger
	mu     sync.Mutex
	events []Act // newest last, at most MaxEvents
	file   *os.File
	size   int64
	broken bool // the last write failed, and that was logged
	kinds  map[string]*kind
	// leftOut counts what was left out of kinds that are not counted any more, and is not said yet.
	leftOut int
}

// kind counts entries of one kind: so many were written since minute began, and so many were left out since the last one.
type kind struct {
	minute        time.Time
	seen, leftOut int
}

// openAudit reads the events of earlier processes; without a folder there are none.
func openAudit(dir string, log *slog.Logger) *audit {
	a := &audit{dir: dir, log: log, kinds: map[string]*kind{}}
	if dir == "" {
		return a
	}
	events, err := readEvents(filepath.Join(dir, auditFile))
	if err != nil {
		log.Error("a part of the audit log cannot be read", "error", err)
	}
	a.events = newest(events, MaxEvents, one)
	a.reopen()
	return a
}

// readEvents reads the events of a log's two files, the oldest first. A line that is none, such as the last one before a
// power cut, is left out.
func readEvents(path string) (events []Act, err error) {
	for _, name := range []string{path + ".1", path} {
		f, openErr := os.Open(name)
		if openErr != nil {
			if !errors.Is(openErr, fs.ErrNotExist) {
				err = errors.Join(err, openErr)
			}
			continue
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 8<<10)
		for lines.Scan() {
			if e, ok := decodeEvent(lines.Bytes()); ok {
				events = append(events, e)
			}
		}
		err = errors.Join(err, lines.Err(), f.Close())
	}
	return events, err
}

// decodeEvent reads a line of the log.
func decodeEvent(line []byte) (e Act, ok bool) {
	err := json.Unmarshal(line, &e)
	return e.bounded(), err == nil && !e.Time.IsZero()
}

// bounded shortens the texts of an event.
func (e Act) bounded() Act {
	for _, text := range []*string{&e.Who, &e.What, &e.From} {
		*text = shortened(*text, maxText)
	}
	return e
}

// shortened cuts a text off after so many bytes, and says so.
func shortened(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// one counts an event.
func one(Act) int { return 1 }

// newest drops the oldest events until the sizes of the others are together no more than most: of somebody who has more
// than a token's share first, so that nobody drives out what others did.
func newest(events []Act, most int, size func(Act) int) []Act {
	all, of := 0, map[string]int{}
	for _, e := range events {
		all += size(e)
	}
	if all <= most {
		return events
	}
	for _, e := range events {
		of[e.Who] += size(e)
	}
	for _, isDropped := range []func(Act) bool{
		func(e Act) bool { return of[e.Who] > lab.ShareOf(most) },
		func(Act) bool { return true },
	} {
		events = slices.DeleteFunc(events, func(e Act) bool {
			if all <= most || !isDropped(e) {
				return false
			}
			all, of[e.Who] = all-size(e), of[e.Who]-size(e)
			return true
		})
	}
	return events
}

// reopen opens the file to append to it. Every event begins a line, also after a torn one.
func (a *audit) reopen() {
	f, err := os.OpenFile(filepath.Join(a.dir, auditFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		a.fails(err)
		return
	}
	info, err := f.Stat()
	if err != nil {
		a.fails(errors.Join(err, f.Close()))
		return
	}
	a.file, a.size = f, info.Size()
	if a.size > 0 {
		n, err := f.WriteString("\n")
		a.size += int64(n)
		a.fails(err)
	}
}

// fails logs the first of a row of failures.
func (a *audit) fails(err error) {
	if err != nil && !a.broken {
		a.log.Error("the audit log is in memory only: its file cannot be written", "error", err)
	}
	a.broken = err != nil
}

// add appends an event.
func (a *audit) add(e Act) {
	e = e.bounded()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = newest(append(a.events, e), MaxEvents, one)
	if a.dir == "" {
		return
	}
	line, err := json.Marshal(e)
	if err != nil {
		a.fails(err)
		return
	}
	if a.file != nil && a.size+int64(len(line)) > maxAudit {
		a.fails(errors.Join(a.file.Close(), a.putAside()))
		a.file = nil
	}
	if a.file == nil {
		a.reopen()
	}
	if a.file == nil {
		return
	}
	n, err := a.file.Write(append(line, '\n'))
	a.size += int64(n)
	a.fails(err)
}

// putAside makes room in the log's file: its events, and those of earlier ones that it still has room for, go to another.
func (a *audit) putAside() error {
	path := filepath.Join(a.dir, auditFile)
	events, err := readEvents(path)
	lineOf := func(e Act) []byte {
		line, _ := json.Marshal(e) // of texts and numbers
		return append(line, '\n')
	}
	var content []byte
	for _, e := range newest(events, maxAudit, func(e Act) int { return len(lineOf(e)) }) {
		content = append(content, lineOf(e)...)
	}
	if failed := atomicfile.WriteFile(path+".1", content, 0o600); failed != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(err, os.Remove(path))
}

func (a *audit) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return nil
	}
	err := a.file.Close()
	a.file = nil
	return err
}

// Record writes into the log what somebody with a right token did. One deed that is done again and again, or refused
// ones of one token, cannot drive the others out.
func (s *Store) Record(who Identity, what, from string, status int) {
	e := Act{s.Now().UTC(), who.Name, what, from, status}.bounded()
	of := e.Who + " " + e.From + " " + e.What
	if status >= http.StatusBadRequest {
		of = "refused " + e.Who
	}
	s.recordOften(of, e)
}

// recordStranger writes that the nth wrong token came from an address.
func (s *Store) recordStranger(n int, from string) {
	what := "a wrong token"
	if n > 1 {
		what = fmt.Sprintf("%d wrong tokens", n)
	}
	s.recordOften("", Act{s.Now().UTC(), "", what, from, http.StatusUnauthorized})
}

// recordOften writes an event of a kind of which only so many are written in a minute; the next one says how many were
// left out.
func (s *Store) recordOften(of string, e Act) {
	a := s.audit
	a.mu.Lock()
	k := a.kinds[of]
	if k == nil {
		if len(a.kinds) >= mostKinds {
			a.forget(e.Time)
		}
		k = &kind{}
		a.kinds[of] = k
	}
	if e.Time.Sub(k.minute) > time.Minute {
		k.minute, k.seen = e.Time, 0
	}
	if k.seen >= oftenPerMinute {
		k.leftOut++
		a.mu.Unlock()
		return
	}
	k.seen++
	said := ""
	if k.leftOut > 0 {
		said = fmt.Sprintf("; %d such entries were left out before", k.leftOut)
		k.leftOut = 0
	}
	if a.leftOut > 0 {
		said += fmt.Sprintf("; %d of other kinds were left out before", a.leftOut)
		a.leftOut = 0
	}
	e.What = shortened(e.What, maxText-len(said)-len("…")) + said // add cuts the end off
	a.mu.Unlock()
	a.add(e)
}

// forget makes room for another kind: it drops those whose minute is over and of which nothing was left out, or else all,
// and keeps how many entries were left out of them.
func (a *audit) forget(now time.Time) {
	maps.DeleteFunc(a.kinds, func(_ string, k *kind) bool { return k.leftOut == 0 && now.Sub(k.minute) > time.Minute })
	if len(a.kinds) < mostKinds {
		return
	}
	for _, k := range a.kinds {
		a.leftOut += k.leftOut
	}
	clear(a.kinds)
}

// Events returns the newest events, newest first, at most limit.
func (s *Store) Events(limit int) []Act {
	s.audit.mu.Lock()
	defer s.audit.mu.Unlock()
	all := s.audit.events
	if len(all) > limit {
		all = all[len(all)-limit:]
	}
	all = slices.Clone(all)
	slices.Reverse(all)
	return all
}
