package member

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// digested is what a file had when it was read.
type digested struct {
	size     int64
	modified time.Time
	sha256   string
}

// files are files of a run's folder, and where their content is.
type files struct {
	root  *os.Root
	list  []fleet.File
	taken map[string][]byte // content of files that change while the run goes on, by digest
}

func (f *files) close() {
	if f.root != nil {
		_ = f.root.Close() // it was only read
	}
}

// numbers are the files of a run at its end of which one is handed in where there are too many.
func isNumbers(name string) bool {
	return name == "run.json" || name == "report.json" || strings.HasPrefix(name, "trials/") && path.Base(name) == "trial.json"
}

// collect lists the files of a run that has ended.
func (s *session) collect(p *part) (*files, error) {
	k := p.get()
	root, err := s.Store.Files(k.Run)
	if err != nil {
		return nil, err
	}
	all := &files{root: root}
	all.list, err = p.digest(root, ".", k.Stay)
	if err != nil {
		all.close()
		return nil, err
	}
	if len(all.list) > fleet.MaxFiles {
		s.Log.Warn("a run has too many files for the fleet: its numbers are handed in, its films stay", "run", k.Run, "files", len(all.list))
		all.list = slices.DeleteFunc(all.list, func(f fleet.File) bool { return !isNumbers(f.Path) })
	}
	return all, nil
}

// digest lists the files below a folder of a run. A file that has not changed since it was read last is not read again.
func (p *part) digest(root *os.Root, below string, stay []string) (list []fleet.File, err error) {
	err = fs.WalkDir(root.FS(), below, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil {
			return err
		}
		if base := path.Base(name); strings.HasPrefix(base, ".") && name != "." {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || name == "pin.json" || name == "thinned.json" { // these two are about the box's copy
			return nil
		}
		got, err := p.digestFile(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		f := fleet.File{Path: name, Bytes: got.size, SHA256: got.sha256, Stays: stays(stay, name)}
		if fleet.CheckFiles([]fleet.File{f}) == nil {
			list = append(list, f)
		}
		return nil
	})
	return list, err
}

// stays says whether the content of a file stays on the box until somebody wants it.
func stays(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, path.Base(name))
		return ok && err == nil
	})
}

func (p *part) digestFile(root *os.Root, name string) (digested, error) {
	f, info, err := store.OpenFile(root, name)
	if err != nil {
		return digested{}, err
	}
	defer f.Close()
	if known := p.digests[name]; known.sha256 != "" && known.size == info.Size() && known.modified.Equal(info.ModTime()) {
		return known, nil
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return digested{}, err
	}
	got := digested{n, info.ModTime(), hex.EncodeToString(sum.Sum(nil))}
	p.digests[name] = got
	return got, nil
}

// handIn hands in the run of a part: the list of its files, those that the head lacks, and how it ended.
func (s *session) handIn(ctx context.Context, p *part) error {
	k := p.get()
	p.mu.Lock()
	p.measured = true
	p.mu.Unlock()
	wake(s.more) // its device is free
	p.say(stateHandingIn, "")
	if !s.Store.Has(k.Run) {
		if !p.stopped() {
			return &returned{"its run was deleted on the box"}
		}
		return s.end(ctx, p, func() (fleet.Outcome, *files, error) {
			return fleet.Outcome{State: store.StateInterrupted, Error: "it was cancelled before it began", Files: []fleet.File{}}, &files{}, nil
		})
	}
	release, ok := s.Store.Hold(k.Run)
	if !ok {
		return errors.New("the folder of the run is in use")
	}
	defer release()
	run, err := s.Store.Run(k.Run)
	if err != nil {
		return s.end(ctx, p, func() (fleet.Outcome, *files, error) {
			return fleet.Outcome{State: store.StateFailed, Error: clip(err.Error(), maxReason), Files: []fleet.File{}}, &files{}, nil
		})
	}
	if run.State == store.StateDone {
		s.wasMeasured(k.Device)
	}
	return s.end(ctx, p, func() (fleet.Outcome, *files, error) {
		all, err := s.collect(p)
		if err != nil {
			return fleet.Outcome{}, nil, err
		}
		return outcomeOf(run, all.list), all, nil
	})
}

func outcomeOf(run *lab.Run, list []fleet.File) fleet.Outcome {
	o := fleet.Outcome{State: run.State, Error: clip(run.Error, maxReason), Files: list, Trials: len(run.Trials)}
	if o.Files == nil {
		o.Files = []fleet.File{}
	}
	for _, t := range run.Trials {
		if !t.Valid {
			o.Thrown++
		}
	}
	return o
}

// end tells the head how the part ended, until it has taken that with all files.
func (s *session) end(ctx context.Context, p *part, outcome func() (fleet.Outcome, *files, error)) error {
	return s.repeat(ctx, p, func(token string) error {
		o, all, err := outcome()
		if err != nil {
			return err
		}
		defer all.close()
		part := p.get().Part
		for last := -1; ; {
			missing, err := s.call.End(ctx, part, token, o)
			if err != nil || len(missing) == 0 {
				return err
			}
			if len(missing) == last {
				return fmt.Errorf("the head wants %d files once more that it has got", len(missing))
			}
			last = len(missing)
			if err := s.send(ctx, part, token, all, missing); err != nil {
				return err
			}
		}
	})
}

// send uploads the files with the digests that are missing.
func (s *session) send(ctx context.Context, part, token string, all *files, missing []string) error {
	wanted := map[string]bool{}
	for _, digest := range missing {
		wanted[digest] = true
	}
	for _, f := range all.list {
		if !wanted[f.SHA256] {
			continue
		}
		delete(wanted, f.SHA256) // files may be alike
		if err := s.sendOne(ctx, part, token, all, f); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	for digest := range wanted {
		return fmt.Errorf("the head wants %.70q, which is no file of the run", digest)
	}
	return nil
}

func (s *session) sendOne(ctx context.Context, part, token string, all *files, f fleet.File) error {
	if content, ok := all.taken[f.SHA256]; ok {
		return s.call.upload(ctx, s.Times, part, token, f.SHA256, f.Bytes, bytes.NewReader(content))
	}
	file, _, err := store.OpenFile(all.root, f.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	return s.call.upload(ctx, s.Times, part, token, f.SHA256, f.Bytes, file)
}
