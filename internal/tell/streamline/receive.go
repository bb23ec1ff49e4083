package streamline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"eidetic/internal/lab"
)

// mostConnections bounds the programs that annotate at once over TCP.
const mostConnections = 64

// Receiver takes annotations until its context ends.
type Receiver struct {
	Clock lab.Clock
	// Emit gets each annotation, one at a time, with Source ("fifo", "tcp") and Group set.
	Emit func(lab.Annotation)

	mu sync.Mutex
}

func (r *Receiver) emit(source, group string) func(lab.Annotation) {
	return func(a lab.Annotation) {
		a.Source, a.Group = source, group
		r.mu.Lock()
		defer r.mu.Unlock()
		r.Emit(a)
	}
}

// FIFO makes a named pipe, or takes one that is there, and reads it until ctx ends. It removes the pipe if it made
// it.
func (r *Receiver) FIFO(ctx context.Context, path string) error {
	made := false
	switch err := syscall.Mkfifo(path, 0o666); {
	case err == nil:
		made = true
	case !errors.Is(err, syscall.EEXIST):
		return fmt.Errorf("make the named pipe %s: %w", path, err)
	}
	if made {
		defer os.Remove(path)
	}
	// Open for writing too: the pipe does not end when its last writer closes it.
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("open the named pipe: %w", err)
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return errors.Join(fmt.Errorf("%s is there and is no named pipe: name another path", path), err, f.Close())
	}
	defer context.AfterFunc(ctx, func() { f.Close() })()
	return r.read(ctx, f, "fifo", "fifo")
}

// Listen takes connections until ctx ends, and closes l. Each connection is a group of its own.
func (r *Receiver) Listen(ctx context.Context, l net.Listener) error {
	var open sync.WaitGroup
	defer open.Wait()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	free := make(chan struct{}, mostConnections)
	for n := 1; ; n++ {
		c, err := l.Accept()
		if err != nil {
			l.Close()
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept annotations: %w", err)
		}
		select {
		case free <- struct{}{}:
		default:
			c.Close()
			continue
		}
		group := fmt.Sprintf("tcp %d", n)
		open.Go(func() {
			defer func() { c.Close(); <-free }()
			defer context.AfterFunc(ctx, func() { c.Close() })()
			_ = r.read(ctx, c, "tcp", group) // a device that goes away ends its connection alone
		})
	}
}

func (r *Receiver) read(ctx context.Context, from interface{ Read([]byte) (int, error) }, source, group string) error {
	var p Parser
	emit := r.emit(source, group)
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		p.Feed(buf[:n], r.Clock(), emit)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}
