package service

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/keep/store"
	"eidetic/internal/run/inspect"
	"eidetic/internal/web/panel"
)

// UploadsDir is the folder of the uploaded recordings, below the data folder.
const UploadsDir = "archives"

// Uploads are the recordings that people uploaded; it implements [panel.Archives].
type Uploads struct {
	Dir string
	// Check judges an upload, in a process of its own.
	Check inspect.Checker
}

// maxUpload bounds an upload.
const maxUpload = 4 << 30

// incoming is the prefix of the names of uploads, and of folders of changed recordings, that are not complete yet.
const incoming = ".incoming-"

// removeIncomplete removes the uploads during which an earlier service ended. It is
// for the service's start: later an incomplete upload may be in progress.
func (a Uploads) removeIncomplete(log *slog.Logger) {
	left, err := atomicfile.WithPrefix(a.Dir, incoming)
	if err != nil {
		log.Warn("incomplete uploads cannot be looked for", "error", err)
	}
	for _, file := range left {
		if err := os.RemoveAll(file); err != nil {
			log.Warn("an incomplete upload cannot be removed", "error", err)
			continue
		}
		log.Info("removed an incomplete upload", "file", file)
	}
}

// makeDir makes the folder if there is none.
func (a Uploads) makeDir() error {
	err := os.Mkdir(a.Dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(a.Dir))
}

// refuse returns an error that the panel shows to the one who asked.
func refuse(status int, format string, args ...any) error {
	return &panel.Refusal{Status: status, Err: fmt.Errorf(format, args...)}
}

// path is where a recording is, or would be.
func (a Uploads) path(name string) (string, error) {
	if !store.ValidID(name) || !strings.HasSuffix(name, ".wacz") {
		return "", refuse(http.StatusUnprocessableEntity,
			"%q is not a name of a recording: letters, digits, '.', '-' and '_', and .wacz at the end", name)
	}
	return filepath.Join(a.Dir, name), nil
}

// List implements panel.Archives.
func (a Uploads) List(context.Context) ([]panel.Archive, error) {
	entries, err := os.ReadDir(a.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []panel.Archive
	for _, e := range entries {
		if _, err := a.path(e.Name()); err != nil || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // removed just now
		}
		all = append(all, archiveOf(info))
	}
	return all, nil
}

// Put implements panel.Archives. A recording gets its name only when it is
// complete and can be read. The same file again is stored once more, whatever match is: its answer may
// have been lost.
func (a Uploads) Put(ctx context.Context, name, match string, content io.Reader, free func() error) (panel.Archive, error) {
	path, err := a.path(name)
	if err != nil {
		return panel.Archive{}, err
	}
	if err := a.makeDir(); err != nil {
		return panel.Archive{}, err
	}
	f, err := os.CreateTemp(a.Dir, incoming)
	if err != nil {
		return panel.Archive{}, err
	}
	defer os.Remove(f.Name()) // it has its final name by then, if all went well
	n, err := io.Copy(f, io.LimitReader(content, maxUpload+1))
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	switch {
	case ctx.Err() != nil:
		return panel.Archive{}, ctx.Err()
	case err != nil:
		return panel.Archive{}, err
	case n > maxUpload:
		return panel.Archive{}, refuse(http.StatusRequestEntityTooLarge, "a recording of more than %d GiB is not accepted", maxUpload>>30)
	}
	return a.accept(ctx, f.Name(), path, match, free)
}

// Begin implements [errand.Recordings].
func (a Uploads) Begin() (dir string, err error) {
	if err := a.makeDir(); err != nil {
		return "", err
	}
	return os.MkdirTemp(a.Dir, incoming)
}

// Keep implements [errand.Recordings].
func (a Uploads) Keep(ctx context.Context, file, name string) error {
	path, err := a.path(name)
	if err != nil {
		return err
	}
	if err := syncFile(file); err != nil {
		return err
	}
	_, err = a.accept(ctx, file, path, "", nil)
	return err
}

// accept gives a complete file its name if it can be read; free is as of Put, and nil lets everything be replaced.
func (a Uploads) accept(ctx context.Context, file, path, match string, free func() error) (panel.Archive, error) {
	report, err := a.Check.Check(ctx, file)
	if err != nil {
		return panel.Archive{}, err
	}
	if report.Refused != "" {
		// The error must not show the name of our temporary file.
		return panel.Archive{}, refuse(http.StatusUnprocessableEntity, "%s", strings.ReplaceAll(report.Refused, file, filepath.Base(path)))
	}
	var imported string
	if report.Foreign {
		made, err := a.imported(ctx, file, path)
		if err != nil {
			return panel.Archive{}, err
		}
		defer os.RemoveAll(filepath.Dir(made))
		imported, file = "it was no WACZ file, and was imported", made
	}
	// A recording that was acknowledged must survive a power cut.
	if err := errors.Join(a.settle(file, path, match, free), atomicfile.SyncDir(a.Dir)); err != nil {
		return panel.Archive{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return panel.Archive{}, err
	}
	out, quality := archiveOf(info), qualityOf(report)
	out.Warnings, out.Quality = report.Warnings, &quality
	if imported != "" {
		out.Warnings = append([]string{imported}, out.Warnings...)
	}
	return out, nil
}

// imported makes a WACZ file of an upload that another program wrote, in a folder of its own. It is called as the
// recording will be, since one without a title has the name of its file.
func (a Uploads) imported(ctx context.Context, file, path string) (out string, err error) {
	dir, err := os.MkdirTemp(a.Dir, incoming)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	out = filepath.Join(dir, filepath.Base(path))
	done, err := a.Check.Import(ctx, file, out)
	if err != nil {
		return "", err
	}
	if done.Refused != "" {
		text := strings.NewReplacer(out, filepath.Base(path), file, filepath.Base(path)).Replace(done.Refused)
		return "", refuse(http.StatusUnprocessableEntity, "%s", text)
	}
	return out, errors.Join(os.Chmod(out, 0o644), syncFile(out))
}

func qualityOf(r inspect.Report) panel.Quality {
	q := panel.Quality{Score: r.Quality.Score, Problems: []panel.ArchiveProblem{}}
	for _, p := range r.Quality.Problems {
		q.Problems = append(q.Problems, panel.ArchiveProblem{Kind: p.Kind, URL: p.URL, What: p.What, Grave: p.Grave, Gap: p.IsGap()})
	}
	return q
}

// Contents implements panel.Archives.
func (a Uploads) Contents(ctx context.Context, file string) (c panel.ArchiveContents, err error) {
	report, err := a.Check.Check(ctx, file)
	if err != nil {
		return c, err
	}
	if report.Refused != "" {
		return c, refuse(http.StatusUnprocessableEntity, "%s", strings.ReplaceAll(report.Refused, file, filepath.Base(file)))
	}
	c = panel.ArchiveContents{
		Exchanges: report.Info.Exchanges, Bytes: report.Info.Bytes, BodyBytes: report.Info.BodyBytes,
		Hosts: report.Info.Hosts, SHA256: report.Info.SHA256, Warnings: report.Warnings, Quality: qualityOf(report),
	}
	for _, p := range report.Pages {
		c.Pages = append(c.Pages, panel.ArchivedPage{URL: p.URL, Wall: p.Wall})
	}
	for _, e := range report.Requests {
		c.Requests = append(c.Requests, panel.ArchivedRequest(e))
	}
	return c, nil
}

// archiveOf is what a list says of a recording's file.
func archiveOf(info fs.FileInfo) panel.Archive {
	return panel.Archive{Name: info.Name(), Bytes: info.Size(), Modified: info.ModTime().UTC(), ETag: panel.ETagOf(info)}
}

// settle gives an upload its name. Another recording has the name only if match names it, and nothing needs it by now.
func (a Uploads) settle(upload, path, match string, free func() error) error {
	if match == "" {
		err := os.Link(upload, path) // fails if the name is taken, unlike a rename
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		same, err := sameContent(upload, path)
		if err != nil || same {
			return err
		}
	} else if free != nil {
		if err := free(); err != nil {
			return err
		}
	}
	release, err := a.lock()
	if err != nil {
		return err
	}
	defer release()
	name := filepath.Base(path)
	old, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse(http.StatusPreconditionFailed, "there is no recording %q that If-Match could name", name)
	case err != nil:
		return err
	case match == "":
		return refuse(http.StatusPreconditionFailed,
			"there is another recording %q: choose another name, or send the header If-Match: %s to replace it", name, panel.ETagOf(old))
	case match != "*" && match != panel.ETagOf(old):
		return refuse(http.StatusPreconditionFailed, "the recording %q was replaced since: its ETag is %s", name, panel.ETagOf(old))
	}
	return os.Rename(upload, path)
}

// lock keeps others from replacing a recording, so that of several who name the same ETag one does.
func (a Uploads) lock() (release func(), err error) {
	dir, err := os.Open(a.Dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the recordings: %w", err), dir.Close())
	}
	return func() { _ = dir.Close() }, nil // which ends the lock
}

// sameContent tells whether two files have the same bytes.
func sameContent(a, b string) (bool, error) {
	var sums [2][sha256.Size]byte
	for i, name := range []string{a, b} {
		f, err := os.Open(name)
		if err != nil {
			return false, err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return false, err
		}
		copy(sums[i][:], h.Sum(nil))
	}
	return sums[0] == sums[1], nil
}

// Open implements panel.Archives.
func (a Uploads) Open(name string) (*os.File, error) {
	path, err := a.path(name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse(http.StatusNotFound, "there is no recording %q", name)
	}
	return f, err
}

// Remove implements panel.Archives.
func (a Uploads) Remove(name string) error {
	path, err := a.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return refuse(http.StatusNotFound, "there is no recording %q", name)
	} else if err != nil {
		return err
	}
	return nil
}
