package archive

import (
	"errors"

	"eidetic/internal/lab"
)

// Writer records. Its methods may be called from many goroutines.
type Writer struct{}

// Create starts a recording that will be packed as path. Until Close the
// records are in path + [WorkingSuffix]; either file in the way is an error.
func Create(path string, o CreateOptions) (*Writer, error) { return nil, errors.ErrUnsupported }

// Add appends an exchange; when it returns nil the records are with the
// operating system. An exchange without an ID is given one. The writer keeps
// no reference to e.
func (w *Writer) Add(e *lab.Exchange) error { return errors.ErrUnsupported }

// AddDNS appends an answer of the name server.
func (w *Writer) AddDNS(d DNS) error { return errors.ErrUnsupported }

// AddPage notes a document that was visited.
func (w *Writer) AddPage(p Page) error { return errors.ErrUnsupported }

// Count returns the exchanges added so far.
func (w *Writer) Count() int { return 0 }

// Close packs the working file into the WACZ and removes it. On an error the
// working file stays, and Open reads it.
func (w *Writer) Close() error { return errors.ErrUnsupported }

// Discard ends the recording and removes the working file; after Close it does nothing.
func (w *Writer) Discard() error { return errors.ErrUnsupported }
