package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/base/programs"
	"eidetic/internal/lab"
	"eidetic/internal/run/counters"
	"eidetic/internal/run/isolate"
)

// Workshop is where browsers are prepared: with programs that a plan may have named, on profiles that it may have
// named. So what is started here is confined as the browsers are.
type Workshop struct {
	Dir       string // of the homes; it should be a RAM file system
	Authority string // PEM file of the certificate authority that browsers trust
	Namespace *Namespace
	Sandbox   isolate.Sandbox
}

// askLimit bounds the time of a program that prepares a browser, and maxSaid what is kept of its output.
const (
	askLimit = time.Minute
	maxSaid  = 4096
)

// version asks a program for its version, in a home of its own. words are of its command, and may name files.
func (w Workshop) version(ctx context.Context, program string, words []string) (string, error) {
	home, err := os.MkdirTemp(w.Dir, "version-")
	if err != nil {
		return "", err
	}
	defer removeAll(home) // at worst the folder stays until the run ends
	said, err := w.run(ctx, home, programFiles(program, words), program, "--version")
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", program, err)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	return line, nil
}

// trust puts the authority into a store of certificates in a home, which is made if there is none.
func (w Workshop) trust(ctx context.Context, home, store string) error {
	certutil, err := programs.Certutil().Find()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(store, 0o700); err != nil {
		return fmt.Errorf("preparing the browser's home: %w", err)
	}
	steps := [][]string{{"-A", "-n", "box", "-t", "C,,", "-i", w.Authority}}
	if _, err := os.Lstat(filepath.Join(store, "cert9.db")); errors.Is(err, fs.ErrNotExist) {
		steps = append([][]string{{"-N", "--empty-password"}}, steps...)
	}
	for _, args := range steps {
		args = append([]string{"-d", "sql:" + store}, args...)
		if said, err := w.run(ctx, home, []string{w.Authority}, certutil, args...); err != nil {
			return fmt.Errorf("putting %s among the browser's authorities: %w: %s", w.Authority, err, strings.TrimSpace(said))
		}
	}
	return nil
}

// run has a program do its work in a home, confined as a browser, and returns what it says at the end. It does not
// outlive the call.
func (w Workshop) run(ctx context.Context, home string, readable []string, program string, args ...string) (said string, err error) {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = home, environment(home, "")
	out := &tail{max: maxSaid}
	cmd.Stdout = out
	p, _, err := startConfined(cmd, filepath.Base(program), home, w.Namespace, w.Sandbox, readable, nil)
	if err != nil {
		return "", err
	}
	defer p.stop(0)
	limit := time.NewTimer(askLimit)
	defer limit.Stop()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-limit.C:
		return "", fmt.Errorf("it did not end within %v", askLimit)
	case <-p.done:
	}
	if p.err != nil {
		return "", p.ended()
	}
	return out.String(), nil
}

// startConfined starts a program in a home that becomes its own. Besides the system's files it sees the readable ones.
// The event is the start of the program.
func startConfined(
	cmd *exec.Cmd, name, home string, ns *Namespace, s isolate.Sandbox, readable []string, c *counters.Counters,
) (p *process, execed lab.Event, err error) {
	j := isolate.NewJail()
	if s != isolate.SandboxNone {
		if err := j.GiveHome(home); err != nil {
			return nil, execed, fmt.Errorf("giving %s its home: %w", name, err)
		}
	}
	var counted *counters.Set
	err = ns.Do(func() (err error) {
		counted = c.Begin() // before the filter of system calls
		if s != isolate.SandboxNone {
			if err := j.Enter(cmd, home, readable...); err != nil {
				return err
			}
		}
		execed.Earliest = lab.Monotonic()
		p, err = start(cmd, name)
		execed.Latest = lab.Monotonic()
		return err
	})
	if err != nil {
		counted.End()
		return p, execed, err
	}
	p.counted = counted
	return p, execed, nil
}

// folderBounds are those of a folder that becomes a part of a home.
type folderBounds struct {
	bytes int64
	files int // with folders
}

func ofProfile() folderBounds { return folderBounds{2 << 30, 200_000} }

// copyFolder copies the files and folders below another one, and nothing else: a link could lead to any file that this
// process may read, and a browser's locks are links and sockets of a process that is not there any more.
func copyFolder(to, from string, most folderBounds) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer root.Close()
	left, files := most.bytes, 0
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if files++; files > most.files {
			return fmt.Errorf("%s has more than %d files: name the folder of one profile", from, most.files)
		}
		target := filepath.Join(to, filepath.FromSlash(path))
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		n, err := copyFile(target, root, path, left)
		if left -= n; err == nil && left < 0 {
			err = fmt.Errorf("%s has more than %d bytes: name the folder of one profile", from, most.bytes)
		}
		return err
	})
}

// copyFile copies a file of a folder, of which no more than some bytes, and one more, are read.
func copyFile(to string, root *os.Root, path string, most int64) (n int64, err error) {
	// Not blocking: what was a file may be a pipe by now.
	in, err := root.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(out, io.LimitReader(in, most+1))
	return n, errors.Join(err, out.Close())
}
