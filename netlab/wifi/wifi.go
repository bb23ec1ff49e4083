// Package wifi makes a radio of the box an access point for devices without a
// cable. In go an interface and the network's name and passphrase; out come a
// configuration for hostapd, which implements IEEE 802.11 and WPA2, and its
// process, which is restarted when it ends. The interface is then a device port
// like any other (package port): frames pass the same link.
package wifi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// startLimit bounds how long hostapd takes until stations can join.
	startLimit = 30 * time.Second
	// restartPause is the pause before a restart; it doubles up to restartMost.
	restartPause = time.Second
	restartMost  = time.Minute
	keptLines    = 8
)

// Config of an access point. Interface, Network and Dir are required.
type Config struct {
	Interface string // "wlan0"
	Network   Network
	// Country determines what the radio may do: "DE". Without it hostapd does only
	// what is allowed everywhere.
	Country string
	// Channel of the 2.4 GHz band, 1 to 13, or of the 5 GHz band, 36 to 48 or
	// 149 to 165 in steps of 4; default 6. See CheckChannel.
	Channel int
	// Dir is the folder of hostapd.conf and its control socket. Because of the
	// passphrase it should be on a file system in memory.
	Dir string
	// Program is hostapd's path, default that of the PATH or /usr/sbin.
	Program string
	Log     *slog.Logger
}

// AccessPoint is a running hostapd. End it with Close.
type AccessPoint struct {
	c      Config
	file   string
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	last []string // hostapd's last lines
	up   bool
}

// Start writes the configuration, starts hostapd and returns when stations can
// join.
func Start(ctx context.Context, c Config) (*AccessPoint, error) {
	fail := func(err error) (*AccessPoint, error) {
		return nil, fmt.Errorf("start the access point on %s: %w", c.Interface, err)
	}
	text, err := c.hostapd()
	if err != nil {
		return fail(err)
	}
	if c.Program == "" {
		if c.Program, err = exec.LookPath("hostapd"); err != nil {
			c.Program = "/usr/sbin/hostapd"
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if err := private(c.Dir); err != nil {
		return fail(err)
	}
	a := &AccessPoint{c: c, file: filepath.Join(c.Dir, "hostapd-"+c.Interface+".conf"), done: make(chan struct{})}
	if err := os.WriteFile(a.file, []byte(text), 0o600); err != nil {
		return fail(err)
	}
	life, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	first := make(chan error, 1)
	go a.keep(life, first)
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	select {
	case err = <-first:
	case <-ctx.Done():
		err = ctx.Err()
	case <-limit.C:
		err = fmt.Errorf("hostapd did not enable the access point within %v; it printed: %s", startLimit, a.output())
	}
	if err != nil {
		return fail(errors.Join(err, a.Close()))
	}
	return a, nil
}

// private makes a folder that only this user can access. Another user may have
// made a folder or a link of this name, which is an error.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !ok || int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is not a folder that only this user can access: remove it", dir)
	}
	return nil
}

// keep runs hostapd until life ends. first gets nil when stations can join,
// or the error of the first start.
func (a *AccessPoint) keep(life context.Context, first chan<- error) {
	defer close(a.done)
	pause := restartPause
	var told sync.Once
	for {
		begun := time.Now()
		err := a.run(life, func() { told.Do(func() { first <- nil }) })
		if life.Err() != nil {
			return
		}
		never := false
		told.Do(func() {
			never = true
			first <- fmt.Errorf("%w; it printed: %s", err, a.output())
		})
		if never { // Start returns the error
			return
		}
		a.c.Log.Error("hostapd ended", "interface", a.c.Interface, "error", err, "printed", a.output())
		if time.Since(begun) > restartMost {
			pause = restartPause
		}
		select {
		case <-life.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, restartMost)
	}
}

// run runs hostapd once; enabled is called when stations can join.
func (a *AccessPoint) run(life context.Context, enabled func()) error {
	// PR_SET_PDEATHSIG fires when the *thread* that forked ends, so that thread
	// must live as long as hostapd.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(life, a.c.Program, a.file)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // hostapd then takes the network down
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer out.Close()
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			a.handleLine(lines.Text(), enabled)
		}
		_, _ = io.Copy(io.Discard, out) // after a line that is too long for the Scanner
	}()
	err := cmd.Run()
	_ = in.Close() // it always succeeds
	<-read
	a.mu.Lock()
	a.up = false
	a.mu.Unlock()
	if err == nil {
		err = errors.New("hostapd ended by itself")
	}
	return err
}

// handleLine keeps a line that hostapd printed and takes the state from it.
func (a *AccessPoint) handleLine(line string, enabled func()) {
	a.c.Log.Debug("hostapd", "line", line)
	a.mu.Lock()
	if a.last = append(a.last, line); len(a.last) > keptLines {
		a.last = slices.Delete(a.last, 0, 1)
	}
	on := strings.Contains(line, "AP-ENABLED")
	if on {
		a.up = true
	} else if strings.Contains(line, "AP-DISABLED") {
		a.up = false
	}
	a.mu.Unlock()
	if on {
		enabled()
	}
}

// output returns hostapd's last lines.
func (a *AccessPoint) output() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.last, " | ")
}

// Up reports whether stations can join now.
func (a *AccessPoint) Up() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.up
}

// Close takes the network down.
func (a *AccessPoint) Close() error {
	a.cancel()
	<-a.done
	if err := os.Remove(a.file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the configuration of hostapd: %w", err)
	}
	return nil
}
