package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/box/automation"
	"eidetic/internal/box/credentials"
	"eidetic/internal/box/suites"
	"eidetic/internal/keep/backup"
	"eidetic/internal/keep/redact"
	"eidetic/internal/keep/store"
	"eidetic/internal/web/panel"
)

// backups lets the panel write the box into one file, and put such a file in its place.
type backups struct {
	data     string
	software string
	runs     *store.Store
	config   func() (string, error) // text of the configuration; empty for the defaults
	// restart has the service started again.
	restart func()
	// configure applies a configuration that came with a backup; nil keeps it in the data folder.
	configure func(ctx context.Context, text string) error
}

// Backups returns what backs the service up. settings is nil where there is no box; restart has
// the service started again.
func (s *Service) Backups(runs *store.Store, settings panel.Settings, restart func()) panel.Backups {
	b := backups{data: s.Data, software: s.Software, runs: runs, restart: restart, config: s.configText(settings)}
	if settings != nil {
		b.configure = settings.Set
	}
	return b
}

// configText returns what reads the configuration; nil where there is none.
func (s *Service) configText(settings panel.Settings) func() (string, error) {
	switch {
	case settings != nil:
		return settings.Text
	case s.ConfigFile != "":
		return func() (string, error) {
			text, err := os.ReadFile(s.ConfigFile)
			return string(text), err
		}
	}
	return nil
}

// FinishRestore puts a backup that waits in the place of the data folder's content. It must
// run before anything else opens the folder.
func FinishRestore(data string, log *slog.Logger) error {
	left, _ := atomicfile.WithPrefix(data, copies) // the next start tries again
	for _, dir := range left {
		_ = os.RemoveAll(dir)
	}
	done, err := backup.Apply(data)
	if done {
		log.Info("the backup was restored", "data", data)
	}
	return err
}

// copies begins the names of folders with copies of databases, for a backup that is being made.
const copies = ".backup-"

// Backup implements panel.Backups. It works at the lowest priority, since a trial may go on.
func (b backups) Backup(ctx context.Context, w io.Writer, secrets bool) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19)
		done <- b.write(ctx, w, secrets)
	}()
	return <-done
}

// snapshot is what is copied before the first byte is written, since it changes meanwhile.
type snapshot struct {
	dir      string // of copies of the databases
	runs     []string
	manifest backup.Manifest
}

func (b backups) write(ctx context.Context, w io.Writer, secrets bool) error {
	s, err := b.snapshot(ctx, secrets)
	if err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	out, err := backup.NewWriter(stopping{ctx, w}, s.manifest)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(b.data)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, step := range []func() error{ // in the order of the names
		func() error { return b.addConfig(out, secrets) },
		func() error { return addFolder(out, root, UploadsDir, ".wacz") },
		func() error { return addFile(out, s.dir, automationFile) },
		func() error { return addSecretFolder(out, root, "ca", secrets) },
		func() error { return b.addCredentials(out) },
		func() error { return addSecretFolder(out, root, "panel", secrets) },
		func() error { return addFile(out, s.dir, queueFile) },
		func() error { return b.addRuns(out, s.runs) },
		func() error { return addSecret(out, b.data, "token", secrets) },
		func() error { return addSecret(out, b.data, "wifi.json", secrets) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return out.Close()
}

// stopping is a writer that fails when ctx is done.
type stopping struct {
	ctx context.Context
	w   io.Writer
}

// Write implements io.Writer.
func (s stopping) Write(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.w.Write(p)
}

// forgetHooks removes webhooks, whose addresses and keys are secrets, and what was to be told them.
func forgetHooks() []string { return []string{`DELETE FROM hooks`, `DELETE FROM deliveries`} }

// forgetAnswers removes what was answered to requests with a key: it may name what is left out.
func forgetAnswers() []string {
	return []string{`DELETE FROM answers`, `DELETE FROM keys WHERE job = ''`}
}

func (b backups) snapshot(ctx context.Context, secrets bool) (s snapshot, err error) {
	s.manifest = backup.Manifest{Made: time.Now().UTC().Truncate(time.Second), Software: b.software, Secrets: secrets}
	// The runs first: one that begins after this is in the copy of the queue, and waits there.
	all, err := b.runs.Runs(ctx, "", 0)
	if err != nil {
		return s, err
	}
	for _, e := range all {
		if e.State == store.StateRunning {
			s.manifest.LeftOut = append(s.manifest.LeftOut, "run "+e.ID+": it goes on")
			continue
		}
		s.runs = append(s.runs, e.ID)
	}
	slices.Sort(s.runs)
	if s.dir, err = os.MkdirTemp(b.data, copies); err != nil {
		return s, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(s.dir) // the error before says what is wrong
		}
	}()
	for name, clean := range map[string][]string{queueFile: forgetAnswers(), automationFile: forgetHooks()} {
		if secrets {
			clean = nil
		}
		err := store.CopyDatabase(ctx, filepath.Join(b.data, name), filepath.Join(s.dir, name), clean...)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
	}
	if left, err := atomicfile.WithPrefix(filepath.Join(b.data, bisectsDir), ""); err == nil && len(left) > 0 {
		s.manifest.LeftOut = append(s.manifest.LeftOut, fmt.Sprintf("%d bisects: what they found is in no backup, their runs are", len(left)))
	}
	for _, what := range []struct{ dir, words string }{
		{suites.ShelfDir, "uploaded suites"}, {suites.ResultsDir, "results of suites: their runs are in the backup"},
	} {
		if left, err := atomicfile.WithPrefix(filepath.Join(b.data, suitesDir, what.dir), ""); err == nil && len(left) > 0 {
			s.manifest.LeftOut = append(s.manifest.LeftOut, fmt.Sprintf("%d %s", len(left), what.words))
		}
	}
	if !secrets {
		s.manifest.LeftOut = append(s.manifest.LeftOut, "secrets: the box's token, keys and certificates, Wi-Fi network, webhooks, passwords of the configuration")
	}
	return s, b.count(&s)
}

// count says how much the backup will hold.
func (b backups) count(s *snapshot) error {
	s.manifest.Runs = len(s.runs)
	folders := []string{s.dir, filepath.Join(b.data, UploadsDir)}
	for _, id := range s.runs {
		folders = append(folders, filepath.Join(b.data, "runs", id))
	}
	for _, dir := range folders {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || d.Name()[0] == '.' {
				return nil // it is only an estimate; what cannot be read fails later
			}
			if info, err := d.Info(); err == nil {
				s.manifest.Bytes += info.Size()
			}
			if filepath.Ext(path) == ".wacz" && filepath.Dir(path) == filepath.Join(b.data, UploadsDir) {
				s.manifest.Recordings++
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b backups) addConfig(out *backup.Writer, secrets bool) error {
	if b.config == nil {
		return nil
	}
	text, err := b.config()
	if err != nil || text == "" {
		return err
	}
	kept := []byte(text)
	if !secrets {
		if kept, _, err = redact.YAML(kept); err != nil {
			return nil // a configuration that cannot be read cannot be freed of passwords
		}
	}
	return out.Bytes(backup.ConfigName, kept, time.Now())
}

// addFile adds a file of a folder under its own name, if it is there.
func addFile(out *backup.Writer, dir, name string) error {
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return out.File(name, f)
}

func addSecret(out *backup.Writer, dir, name string, secrets bool) error {
	if !secrets {
		return nil
	}
	return addFile(out, dir, name)
}

// addFolder adds the plain files of a folder, those with an extension where one is given.
func addFolder(out *backup.Writer, root *os.Root, dir, ext string) error {
	all, err := fs.ReadDir(root.FS(), dir) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range all {
		if !e.Type().IsRegular() || backup.CheckName(dir+"/"+e.Name(), true) != nil || ext != "" && filepath.Ext(e.Name()) != ext {
			continue
		}
		f, _, err := store.OpenFile(root, dir+"/"+e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed just now
		}
		if err == nil {
			err = errors.Join(out.File(dir+"/"+e.Name(), f), f.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func addSecretFolder(out *backup.Writer, root *os.Root, dir string, secrets bool) error {
	if !secrets {
		return nil
	}
	return addFolder(out, root, dir, "")
}

func (b backups) addCredentials(out *backup.Writer) error {
	const dir = "credentials"
	for _, name := range []string{"audit.jsonl", "audit.jsonl.1"} {
		f, err := os.Open(filepath.Join(b.data, dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = errors.Join(out.File(dir+"/"+name, f), f.Close())
		}
		if err != nil {
			return err
		}
	}
	text, err := os.ReadFile(filepath.Join(b.data, dir, "credentials.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		text, err = credentials.WithoutSessions(text)
	}
	if err != nil {
		return err
	}
	return out.Bytes(dir+"/credentials.json", text, time.Now())
}

// addRuns adds the folders of runs. One that was removed meanwhile is left out.
func (b backups) addRuns(out *backup.Writer, ids []string) error {
	for _, id := range ids {
		release, ok := b.runs.Hold(id)
		if !ok {
			continue
		}
		root, err := b.runs.Files(id)
		if err == nil {
			err = errors.Join(out.Tree("runs/"+id, root), root.Close())
		}
		release()
		if err != nil {
			return err
		}
	}
	return nil
}

// Restore implements panel.Backups: the backup takes the place of what is there when the service
// starts again.
func (b backups) Restore(ctx context.Context, r io.Reader) (panel.Backup, error) {
	config := ""
	m, err := backup.Stage(r, b.data, func(dir string, m backup.Manifest) error {
		text, err := os.ReadFile(filepath.Join(dir, backup.ConfigName))
		if err == nil && m.Secrets {
			config = string(text)
		}
		return CheckBackup(ctx, dir)
	})
	if errors.Is(err, backup.ErrHostile) {
		return panel.Backup{}, refuse(http.StatusUnprocessableEntity, "%w", err)
	}
	if err != nil {
		return panel.Backup{}, err
	}
	if config != "" && b.configure != nil {
		if err := b.configure(ctx, config); err != nil {
			return panel.Backup{}, fmt.Errorf("the backup is restored at the next start, without its configuration: %w", err)
		}
	}
	b.restart()
	return panel.Backup{Made: m.Made, Software: m.Software, Secrets: m.Secrets, Runs: m.Runs, Recordings: m.Recordings, Bytes: m.Bytes}, nil
}

// CheckBackup looks at the files of a backup that were unpacked into a folder: this version
// must be able to read each.
func CheckBackup(ctx context.Context, dir string) error {
	wrong := func(name string, err error) error { return fmt.Errorf("%w: %s: %w", backup.ErrHostile, name, err) }
	for _, name := range []string{queueFile, automationFile} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := store.CheckDatabase(ctx, path)
		switch {
		case err != nil:
		case name == queueFile:
			var queue *store.Queue
			if queue, err = store.OpenQueue(ctx, path); err == nil {
				err = queue.Close()
			}
		default:
			err = automation.CheckFile(ctx, path)
		}
		if err != nil {
			return wrong(name, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "credentials", "credentials.json"))
	if err == nil {
		_, err = credentials.WithoutSessions(text)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return wrong("credentials.json", err)
	}
	cfg := DefaultConfig()
	text, err = os.ReadFile(filepath.Join(dir, backup.ConfigName))
	if err == nil {
		err = ParseConfig(backup.ConfigName, text, &cfg)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrTrust) {
		return wrong(backup.ConfigName, withoutSource(err))
	}
	return nil
}
