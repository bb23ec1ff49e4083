package scrcpy

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
	// startLimit bounds how long the server may take to listen: a slow phone needs some seconds.
	startLimit = 15 * time.Second
	startPoll  = 50 * time.Millisecond
	// endLimit bounds how long a phone is spoken with when filming ends; it may be gone.
	endLimit = 2 * time.Second
	// maxPrinted bounds what is kept of what the server prints.
	maxPrinted = 4 << 10
)

// running is the server that runs on a phone.
type running struct {
	client adbserver.Client
	serial string
	shell  *adbserver.Stream
	cancel context.CancelFunc
	ended  chan struct{} // closed when the server has ended

	mu      sync.Mutex // guards what follows
	printed []byte
	err     error
}

// start pushes the server's file and runs it, and returns when it has taken the connection of its video.
func start(ctx context.Context, o Options, server Server, serial string) (*running, io.ReadCloser, error) {
	scid := rand.Uint32() >> 1
	path := fmt.Sprintf("/data/local/tmp/eidetic-scrcpy-%08x.jar", scid)
	if err := o.Client.Push(ctx, serial, path, server.data); err != nil {
		return nil, nil, err
	}
	command := fmt.Sprintf("echo $$; export CLASSPATH=%s; exec app_process / com.genymobile.scrcpy.Server %s %s",
		path, server.Version, strings.Join(server.speaks.options(scid, o), " "))
	held, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it outlives Open's context
	shell, err := o.Client.Hold(held, serial, "raw", command)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	r := &running{client: o.Client, serial: serial, shell: shell, cancel: cancel, ended: make(chan struct{})}
	go r.listen()
	video, err := r.connect(ctx, held, server.speaks.socket(scid))
	// The server has read its file.
	short, stop := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer stop()
	if _, removed := o.Client.Shell(short, serial, "rm -f "+path); err == nil {
		err = removed
	}
	if err != nil {
		if video != nil {
			_ = video.Close()
		}
		r.stop()
		return nil, nil, err
	}
	return r, video, nil
}

// listen keeps what the server prints.
func (r *running) listen() {
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
func (r *running) connect(ctx, held context.Context, socket string) (io.ReadCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
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
			return nil, r.why()
		case <-ctx.Done():
			return nil, fmt.Errorf("the server on the phone does not listen (it prints %q): %w", r.text(), ctx.Err())
		case <-ticker.C:
		}
	}
}

// text is what the server printed, without its process's number.
func (r *running) text() string {
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

// why is why the server has ended.
func (r *running) why() error {
	text := r.text()
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

// stop ends the server.
func (r *running) stop() {
	r.mu.Lock()
	first, _, _ := bytes.Cut(r.printed, []byte("\n"))
	r.mu.Unlock()
	pid, err := strconv.ParseUint(strings.TrimSpace(string(first)), 10, 31)
	select {
	case <-r.ended:
	default:
		if err == nil && pid > 1 {
			// A still screen's server writes nothing, so it would not notice that nobody listens.
			ctx, cancel := context.WithTimeout(context.Background(), endLimit)
			_, _ = r.client.Shell(ctx, r.serial, fmt.Sprintf("kill %d", pid)) // the phone may be gone
			cancel()
		}
	}
	r.cancel()
	_ = r.shell.Close()
	<-r.ended
}
