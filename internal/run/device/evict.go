package device

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Evicted is what taking a program out of the page cache came to.
type Evicted struct {
	Bytes int64 // of the program's files
	Left  int64 // of them that stay, because another process uses them
	Known bool  // whether the kernel tells what stays
}

// Share is the share of the bytes that stay.
func (e Evicted) Share() float64 {
	if e.Bytes == 0 {
		return 0
	}
	return float64(e.Left) / float64(e.Bytes)
}

// Evict takes a browser's files out of the page cache: its program's folder, so that the next start
// reads them from the disk. Of an app that lies among other programs it is its own file. Libraries of the system stay,
// as they do for a person who starts a browser on a desktop.
func Evict(p Program) (e Evicted, err error) {
	program, isApp := "", false
	switch p := p.(type) {
	case *Chromium:
		program = p.Program
	case *other:
		program, isApp = p.program, p.what.IsApp
	}
	folder, err := programFolder(program)
	if isApp && err != nil { // of a small program there is nothing else
		folder, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return e, err
	}
	e.Known = true
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		e.Bytes += info.Size()
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			return fmt.Errorf("taking %s out of the page cache: %w", path, err)
		}
		left, known := cached(f, info.Size())
		e.Left += left
		e.Known = e.Known && known
		return nil
	})
	return e, err
}

// programFolder is where a program's files are: Debian's commands are scripts or links whose
// program is in a folder of their name below /usr/lib.
func programFolder(program string) (string, error) {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return "", err
	}
	own := filepath.Join("/usr/lib", filepath.Base(real))
	if info, err := os.Stat(own); err == nil && info.IsDir() {
		return own, nil
	}
	folder := filepath.Dir(real)
	for _, shared := range []string{"/usr/bin", "/usr/local/bin", "/bin", "/usr/lib"} {
		if folder == shared {
			return "", fmt.Errorf("%s lies among other programs: name the browser by the path of its own folder (browser: {command: …})", real)
		}
	}
	return folder, nil
}

// cached is how many bytes of a file are in the page cache.
func cached(f *os.File, size int64) (bytes int64, known bool) {
	if size == 0 {
		return 0, true
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, false
	}
	defer func() { _ = unix.Munmap(m) }()
	page := int64(os.Getpagesize())
	in := make([]byte, (size+page-1)/page)
	if err := mincore(m, in); err != nil {
		return 0, false
	}
	for _, b := range in {
		if b&1 != 0 {
			bytes += page
		}
	}
	return min(bytes, size), true
}
