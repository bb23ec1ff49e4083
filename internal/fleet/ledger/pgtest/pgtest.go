// Package pgtest runs a private PostgreSQL server for tests and benchmarks: its files are in a folder, it listens on a
// socket in that folder alone, and it ends with the process that started it. In flows the folder; out flow addresses of
// empty databases. The server can be killed and started again, as a machine's would be.
package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
)

// Cluster is a server and its files.
type Cluster struct {
	dir, programs string
	settings      []string
	server        *exec.Cmd
	over          chan struct{} // closed when the server has ended
	databases     int
}

// Programs returns the folder of the newest PostgreSQL of Debian, which is not on the PATH, or "".
func Programs() string {
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is well formed
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return filepath.Dir(all[len(all)-1])
}

// Lasting is the setting of a server whose commits survive a power cut. A test does without: what a killed
// process has written is in the kernel.
const Lasting = "fsync=on"

// Start makes a cluster in an empty folder and starts its server, with more settings, such as Lasting.
func Start(ctx context.Context, dir string, settings ...string) (*Cluster, error) {
	c := &Cluster{dir: dir, programs: Programs(), settings: append([]string{"fsync=off", "listen_addresses=", "max_connections=100"}, settings...)}
	if c.programs == "" {
		return nil, errors.New("PostgreSQL is not installed")
	}
	// A test removes the files: they need not reach the disk.
	cmd := exec.CommandContext(ctx, filepath.Join(c.programs, "initdb"),
		"--pgdata", c.data(), "--username", "postgres", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	cmd.SysProcAttr = noRoot()
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w; it said:\n%s", err, out)
	}
	return c, c.Restart(ctx)
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// noRoot is a user namespace in which the user is nobody: PostgreSQL does not run as root.
func noRoot() *syscall.SysProcAttr {
	const nobody = 65534
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Getegid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
}

// Restart starts the server and waits until it answers. A server that was killed recovers first.
func (c *Cluster) Restart(ctx context.Context) error {
	for {
		if err := c.launch(); err != nil {
			return err
		}
		err := c.answers(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		// It ended again: processes of the killed one are still there.
	}
}

func (c *Cluster) launch() error {
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"-D", c.data(), "-k", c.dir}
	for _, setting := range c.settings {
		args = append(args, "-c", setting)
	}
	c.server = exec.Command(filepath.Join(c.programs, "postgres"), args...)
	c.server.Stdout, c.server.Stderr, c.server.SysProcAttr = log, log, noRoot()
	c.over = make(chan struct{})
	started := make(chan error, 1)
	go func() {
		// The kernel kills the server when the thread that started it ends.
		runtime.LockOSThread()
		defer close(c.over)
		err := c.server.Start()
		started <- err
		if err == nil {
			_ = c.server.Wait() // how it ended is in its log
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}

// answers waits until the server does. It returns an error if the server ended.
func (c *Cluster) answers(ctx context.Context) error {
	db, err := sql.Open("pgx", c.address("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if db.PingContext(ctx) == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("postgres does not answer: %w; its log is %s", ctx.Err(), filepath.Join(c.dir, "log"))
		case <-c.over:
			return errors.New("postgres ended while it started")
		case <-tick.C:
		}
	}
}

func (c *Cluster) address(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + database}
	u.RawQuery = url.Values{"host": {c.dir}, "sslmode": {"disable"}}.Encode()
	return u.String()
}

// Database makes an empty database and returns its address.
func (c *Cluster) Database(ctx context.Context) (address string, err error) {
	db, err := sql.Open("pgx", c.address("postgres"))
	if err != nil {
		return "", err
	}
	defer db.Close()
	c.databases++
	name := fmt.Sprintf("test%d", c.databases)
	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	return c.address(name), nil
}

// Kill ends the server as a power cut would, as far as its processes know.
func (c *Cluster) Kill() error { return c.end(syscall.SIGKILL) }

// Stop ends the server; connections are cut.
func (c *Cluster) Stop() error { return c.end(syscall.SIGQUIT) }

func (c *Cluster) end(how syscall.Signal) error {
	err := c.server.Process.Signal(how)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-c.over
	return err
}
