package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"eidetic/internal/base/atomicfile"
)

const (
	incoming  = ".restore-incoming-" // begins the names of folders in which a backup is unpacked
	ready     = ".restore-ready"     // a backup that is unpacked and checked: the new state
	replaced  = ".restore-replaced"  // what it replaces
	namesFile = "restore.json"
	// reserve is the room on the disk that a restore leaves, in bytes.
	reserve = 256 << 20
)

// Stage unpacks a backup beside the content of the data folder. check, which may be nil, looks
// at the unpacked files before they count. When Stage has returned nil the next [Apply]
// puts the backup in the place of what is there; with an error nothing has changed.
func Stage(r io.Reader, data string, check func(dir string, m Manifest) error) (Manifest, error) {
	if err := removeIncoming(data); err != nil {
		return Manifest{}, err
	}
	if _, err := os.Lstat(filepath.Join(data, ready)); err == nil {
		return Manifest{}, errors.New("another backup waits to take the place of the old content: start the service once")
	}
	room, err := roomIn(data)
	if err != nil {
		return Manifest{}, err
	}
	dir, err := os.MkdirTemp(data, incoming)
	if err != nil {
		return Manifest{}, fmt.Errorf("restore: %w", err)
	}
	m, err := unpack(r, dir, room)
	if err == nil && check != nil {
		err = check(dir, m)
	}
	if err == nil {
		err = settle(dir, filepath.Join(data, ready))
	}
	if err != nil {
		return m, errors.Join(err, os.RemoveAll(dir))
	}
	return m, atomicfile.SyncDir(data)
}

// removeIncoming removes what killed processes unpacked.
func removeIncoming(data string) error {
	left, err := atomicfile.WithPrefix(data, incoming)
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// roomIn is how many bytes a restore may write.
func roomIn(data string) (int64, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(data, &disk); err != nil {
		return 0, fmt.Errorf("restore: %w", err)
	}
	return max(0, int64(disk.Bavail)*disk.Bsize-reserve), nil
}

func unpack(r io.Reader, dir string, room int64) (Manifest, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Manifest{}, fmt.Errorf("restore: %w", err)
	}
	defer root.Close()
	made := ""
	return Read(r, room, func(_ Manifest, e Entry) error {
		if parent := filepath.Dir(e.Name); parent != made {
			if err := root.MkdirAll(parent, 0o755); err != nil {
				return fmt.Errorf("restore: %w", err)
			}
			made = parent
		}
		f, err := root.OpenFile(e.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, modeOf(e.Name))
		if err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		_, err = io.Copy(f, e.Content)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		return root.Chtimes(e.Name, e.ModTime, e.ModTime)
	})
}

// modeOf is the mode of a file. That of runs and recordings is everybody's, in a data folder that is its owner's.
func modeOf(name string) fs.FileMode {
	if strings.HasPrefix(name, "runs/") || strings.HasPrefix(name, "archives/") {
		return 0o644
	}
	return 0o600
}

// settle puts the unpacked files on the disk and gives their folder its final name.
func settle(dir, final string) error {
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	names := []string{}
	for _, e := range all {
		names = append(names, e.Name())
	}
	text, err := json.Marshal(names)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, namesFile), text, 0o600); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Syncfs(int(d.Fd())), d.Close()); err != nil {
		return fmt.Errorf("restore: put the files on the disk: %w", err)
	}
	return os.Rename(dir, final)
}

// Apply puts a staged backup in the place of the data folder's content, or finishes what a
// killed Apply began. It returns false where there is none. What is not in the backup and belongs
// to this machine alone stays: of a backup without secrets the token, the keys and the Wi-Fi network.
func Apply(data string) (bool, error) {
	if err := errors.Join(removeIncoming(data), remove(filepath.Join(data, ready+".done"))); err != nil {
		return false, fmt.Errorf("restore: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(data, ready, namesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, remove(filepath.Join(data, replaced))
	}
	var names []string
	if err == nil {
		err = json.Unmarshal(text, &names)
	}
	if err != nil {
		return false, fmt.Errorf("restore: %s: %w", namesFile, err)
	}
	if err := exchange(data, names); err != nil {
		return false, fmt.Errorf("restore: %w", err)
	}
	return true, nil
}

func remove(dir string) error { return os.RemoveAll(dir) }

func exchange(data string, names []string) error {
	in, out := filepath.Join(data, ready), filepath.Join(data, replaced)
	if err := os.MkdirAll(out, 0o700); err != nil {
		return err
	}
	all, err := os.ReadDir(data)
	if err != nil {
		return err
	}
	for _, e := range all {
		name := e.Name()
		_, waits := os.Lstat(filepath.Join(in, name))
		// Of a name of the backup that does not wait any more, the new file is there already.
		if !isOld(name, names) || slices.Contains(names, name) && waits != nil {
			continue
		}
		if err := os.Rename(filepath.Join(data, name), filepath.Join(out, name)); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(in, name), filepath.Join(data, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := atomicfile.SyncDir(data); err != nil {
		return err
	}
	// The name goes first: a killed removal must not look like a backup that waits.
	if err := errors.Join(os.Rename(in, in+".done"), atomicfile.SyncDir(data)); err != nil {
		return err
	}
	return errors.Join(remove(in+".done"), remove(out))
}

// isOld says whether a name in the data folder is part of the state that a backup replaces.
func isOld(name string, names []string) bool {
	if slices.Contains(names, name) {
		return true
	}
	base, _, _ := strings.Cut(name, ".db")
	switch {
	case strings.Contains(name, ".db") && slices.Contains([]string{"queue", "automation", "index"}, base):
		return true // with -wal, -shm, -journal and .damaged
	case strings.HasPrefix(name, "cell-") && strings.HasSuffix(name, ".html"):
		return true
	}
	return slices.Contains([]string{"runs", "archives", "credentials", "bisects", "latest", "report.html", "timeline.html", "report.json", "run.json", "trials"}, name)
}
