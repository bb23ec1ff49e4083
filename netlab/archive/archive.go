package archive

import (
	"errors"
	"io"

	"eidetic/internal/lab"
)

// Archive is a recording in RAM. It is not changed after it was opened and
// may be shared by sessions.
type Archive struct{}

// Open reads a WACZ, or a WARC file (plain, .gz) such as a cut-off working
// file, with default limits.
func Open(path string) (*Archive, error) { return nil, errors.ErrUnsupported }

// OpenReader reads the same from r, which holds size bytes.
func OpenReader(r io.ReaderAt, size int64, l Limits) (*Archive, error) {
	return nil, errors.ErrUnsupported
}

// Exchanges returns the exchanges by Order. They are shared: do not change them.
func (a *Archive) Exchanges() []*lab.Exchange { return nil }

// DNS returns the recorded answers in the order of the recording.
func (a *Archive) DNS() []DNS { return nil }

// Pages returns the documents that were visited.
func (a *Archive) Pages() []Page { return nil }

// Options returns what the recording was created with, as far as the file says.
func (a *Archive) Options() CreateOptions { return CreateOptions{} }

// Info describes the archive for a report.
func (a *Archive) Info() lab.ArchiveInfo { return lab.ArchiveInfo{} }

// Warnings says what was wrong with the file and could be mended, such as a
// cut-off end: one line each.
func (a *Archive) Warnings() []string { return nil }
