package archive

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// harFiles reads a body that a HAR keeps in a file of its own (Playwright's content._file).
type harFiles func(name string, l Limits) ([]byte, error)

var errElsewhere = errors.New("it is in another folder") // constant

// readBeside reads a file of the HAR's own folder.
func readBeside(dir *os.Root, name string, l Limits) ([]byte, error) {
	if name != path.Base(name) || name == "." || name == ".." {
		return nil, errElsewhere
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		var inner *fs.PathError
		if errors.As(err, &inner) {
			err = inner.Err // the name is said once for all of them
		}
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	return readBody(f, st.Size(), l)
}

// readBody reads a body of size bytes.
func readBody(r io.Reader, size int64, l Limits) ([]byte, error) {
	if size > l.Record {
		return nil, fmt.Errorf("%d bytes are more than %d", size, l.Record)
	}
	if err := l.budget.take(size); err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	return b, nil
}

// isNote tells what macOS adds to a zip for a file.
func isNote(name string) bool {
	return strings.HasPrefix(path.Base(name), "._") || strings.HasPrefix(name, "__MACOSX/")
}

// soleHAR is the HAR, or the archive of Web Page Replay, of a zip that is no WACZ, such as Playwright's .har.zip, or
// nil.
func soleHAR(files map[string]*zip.File) (*zip.File, error) {
	if files[namePackage] != nil {
		return nil, nil
	}
	var names []string
	for name := range files {
		if lower := strings.ToLower(name); !isNote(name) && (strings.HasSuffix(lower, ".har") || strings.HasSuffix(lower, ".wprgo")) {
			names = append(names, name)
		}
	}
	switch slices.Sort(names); len(names) {
	case 0:
		return nil, nil
	case 1:
		return files[names[0]], nil
	}
	return nil, fmt.Errorf("the zip has %d HARs (%.80q, %.80q …): unpack it, import each, and join them with appliance archive merge",
		len(names), names[0], names[1])
}

// openZippedHAR reads a HAR of a zip, with the bodies that are files of the zip.
func (a *Archive) openZippedHAR(har *zip.File, files map[string]*zip.File, l Limits) error {
	text, err := readZipped(har, l)
	if err != nil {
		return fmt.Errorf("%s in the zip: %w", har.Name, err)
	}
	defer l.budget.give(int64(len(text)))
	return a.openHAR(io.NewSectionReader(bytes.NewReader(text), 0, int64(len(text))), func(name string, _ Limits) ([]byte, error) {
		f := files[path.Join(path.Dir(har.Name), name)]
		if f == nil {
			return nil, errors.New("it is not in the zip")
		}
		return readZipped(f, l)
	}, l)
}

// readZipped reads a file of a zip.
func readZipped(f *zip.File, l Limits) ([]byte, error) {
	if !mayBeReal(f) {
		return nil, fmt.Errorf("%s expands to far more than real ones do", f.Name)
	}
	rc, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	return readBody(rc, int64(min(f.UncompressedSize64, 1<<62)), l)
}

// mayBeReal tells a file of a zip that does not expand beyond the ratio of real ones.
func mayBeReal(f *zip.File) bool {
	return f.UncompressedSize64 <= 1<<20 || f.UncompressedSize64/defaultRatio <= f.CompressedSize64
}
