package scrcpyserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"eidetic/internal/base/adbserver"
	"eidetic/internal/lab"
)

const (
	// StartLimit bounds how long the server may take to listen: a slow phone needs some seconds.
	StartLimit = 15 * time.Second
	startPoll  = 50 * time.Millisecond
	// EndLimit bounds how long a phone is spoken with when the server is to end; it may be gone.
	EndLimit = 2 * time.Second
	// maxPrinted bounds what is kept of what the server prints.
	maxPrinted = 4 << 10
)

// Running is a server that runs on a phone.
type Running struct {
	client adbserver.Client
	serial string
	shell  *adbserver.Stream
	cancel context.CancelFunc
	ended  chan struct{} // closed when the server has ended

	mu      sync.Mutex // guards what follows
	printed []byte
	err     error
}

// Start pushes the server's file and runs it with options besides those that every start has. It returns when the server
// has taken its first connection; the caller closes that, and then stops the server.
func Start(ctx context.Context, client adbserver.Client, serial string, f File, options ...string) (*Running, io.ReadWriteCloser, error) {
	scid := rand.Uint32() >> 1
	path := fmt.Sprintf("/data/local/tmp/eidetic-scrcpy-%08x.jar", scid)
	if err := client.Push(ctx, serial, path, f.data); err != nil {
		return nil, nil, err
	}
	words := append([]string{"tunnel_forward=true", "cleanup=false", "log_level=info"}, options...)
	if f.isNumbered() {
		words = append(words, fmt.Sprintf("scid=%08x", scid))
	}
	command := fmt.Sprintf("echo $$; export CLASSPATH=%s; exec app_process / com.genymobile.scrcpy.Server %s %s",
		path, f.Version, strings.Join(words, " "))
	held, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it outlives the caller's context
	shell, err := client.Hold(held, serial, "raw", command)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	r := &Running{client: client, serial: serial, shell: shell, cancel: cancel, ended: make(chan struct{})}
	go r.listen()
	conn, err := r.connect(ctx, held, f.socket(scid))
	// The server has read its file.
	short, stop := context.WithTimeout(context.WithoutCancel(ctx), EndLimit)
	defer stop()
	if _, removed := client.Shell(short, serial, "rm -f "+path); err == nil {
		err = removed
	}
	if err != nil {
		if conn != nil {
			_ = conn.Close()
		}
		r.Stop()
		return nil, nil, err
	}
	return r, conn, nil
}

// isNumbered says whether the socket's name has a number.
func (f File) isNumbered() bool { return f.Major > 1 }

// socket is the name of the socket at which the server waits.
func (f File) socket(scid uint32) string {
	if f.isNumbered() {
		return fmt.Sprintf("scrcpy_%08x", scid)
	}
	return "scrcpy"
}

// listen keeps what the server prints.
func (r *Running) listen() {
	defer close(r.ended)
	for {
		text, err := r.shell.Next()
		r.mu.Lock()
		r.printed = append(r.printed, text...)
		if n := len(r.printed); n > maxPrinted {
			// The beginning has the process's number, the end has the error.
			r.printed = append(r.printed[:maxPrinted/2:maxPrinted/2], r.printed[n-maxPrinted/2:]...)
		}
		r.err = err
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// connect waits until the server listens. The connection ends with held.
func (r *Running) connect(ctx, held context.Context, socket string) (io.ReadWriteCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, StartLimit)
	defer cancel()
	ticker := time.NewTicker(startPoll)
	defer ticker.Stop()
	for {
		conn, err := r.client.Open(held, "host:transport:"+r.serial, "localabstract:"+socket)
		var nobody *adbserver.FailError
		if err == nil {
			return conn, nil
		}
		if !errors.As(err, &nobody) {
			return nil, err
		}
		select {
		case <-r.ended:
			return nil, r.Why()
		case <-ctx.Done():
			return nil, fmt.Errorf("the server on the phone does not listen (it prints %q): %w", r.Text(), ctx.Err())
		case <-ticker.C:
		}
	}
}

// Ended is closed when the server has ended.
func (r *Running) Ended() <-chan struct{} { return r.ended }

// Text is what the server printed, without its process's number.
func (r *Running) Text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for line := range strings.Lines(string(r.printed)) {
		line = strings.TrimSpace(line)
		if _, err := strconv.ParseUint(line, 10, 31); err == nil {
			continue
		}
		if line != "" && !strings.HasPrefix(line, "at ") && !strings.Contains(line, "INFO:") { // a stack's places
			lines = append(lines, line)
		}
	}
	return lab.Clip(strings.Join(lines, "; "), 400)
}

// Why is why the server has ended.
func (r *Running) Why() error {
	text := r.Text()
	r.mu.Lock()
	err := r.err
	r.mu.Unlock()
	switch {
	case strings.Contains(text, "does not match the client"):
		return fmt.Errorf("the server's file is not the version that it seems to be (%s): %s", text, getServer)
	case strings.Contains(text, "ClassNotFoundException"), strings.Contains(text, "Aborted"):
		return fmt.Errorf("the phone cannot run the server's file (%s): %s", text, getServer)
	case text != "":
		return fmt.Errorf("the server on the phone ended: %s", text)
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("the server on the phone ended: %w", err)
	}
	return errors.New("the server on the phone ended without a word")
}

// Reason is what an error of a connection to the server means: of a server that has ended, what it says itself.
func (r *Running) Reason(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	select {
	case <-r.ended:
		return fmt.Errorf("%w (%w)", r.Why(), err)
	case <-time.After(EndLimit):
		return err
	}
}

// Stop ends the server.
func (r *Running) Stop() {
	r.mu.Lock()
	first, _, _ := bytes.Cut(r.printed, []byte("\n"))
	r.mu.Unlock()
	pid, err := strconv.ParseUint(strings.TrimSpace(string(first)), 10, 31)
	select {
	case <-r.ended:
	default:
		if err == nil && pid > 1 {
			// A still screen's server writes nothing, so it would not notice that nobody listens.
			ctx, cancel := context.WithTimeout(context.Background(), EndLimit)
			_, _ = r.client.Shell(ctx, r.serial, fmt.Sprintf("kill %d", pid)) // the phone may be gone
			cancel()
		}
	}
	r.cancel()
	_ = r.shell.Close()
	<-r.ended
}
