package main

import (
	"fmt"
	"io"
	"sync"
)

// streams are the process's standard streams, passed to every command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// note prints a line for a person, apart from what a program reads.
func (s *streams) note(format string, args ...any) { fmt.Fprintf(s.err, format+"\n", args...) }

// output is a standard output that remembers that it could not be written, so that no command ends with success whose
// words a full disk has swallowed, however it prints.
type output struct {
	io.Writer
	mu   sync.Mutex
	lost error // the first
}

func (o *output) Write(p []byte) (n int, err error) {
	if n, err = o.Writer.Write(p); err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.lost == nil {
			o.lost = err
		}
	}
	return n, err
}

// Fd is that of the file below, by which a terminal is known.
func (o *output) Fd() uintptr {
	if f, ok := o.Writer.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// or is a command's own error or, of one that succeeded, the output's.
func (o *output) or(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		err = cannot(o.lost)
	}
	return err
}
