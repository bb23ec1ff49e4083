package bisection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// The exit statuses of a command that mean something of their own.
const (
	statusSkip     = 125 // as of git bisect run: this revision cannot be tried
	statusNotRun   = 126 // of the shell: the command is no program
	statusNotThere = 127 // of the shell: there is no such command
)

// tailOfOutput is how much of what a command printed is shown.
const tailOfOutput = 400

// deploy deploys a revision, unless it was before, and has its page recorded if that is how revisions are kept.
// ok is false if the revision cannot be tried.
func (h *hunt) deploy(ctx context.Context, at int) (ok bool, err error) {
	if _, done := h.journal.deployed[at]; done {
		return true, nil
	}
	r := h.Revisions[at]
	h.Say("Deploying %s", described(r))
	start := h.Since()
	deploy := func() (string, error) { return h.command(ctx, at) }
	if h.Deployer != nil {
		deploy = func() (string, error) { return h.Deployer(ctx, r) }
	}
	reason, err := deploy()
	if err != nil {
		return false, err
	}
	d := deployed{Revision: at}
	if reason == "" && h.Records {
		h.Say("Recording the page of %s", r.Name)
		if d.Archive, err = h.Lab.Record(ctx, r.Name); err != nil {
			var lab *LabError
			if ctx.Err() != nil || errors.As(err, &lab) {
				return false, err
			}
			reason = "its page could not be recorded: " + err.Error()
		}
	}
	if reason == "" {
		d.Seconds = (h.Since() - start).Seconds()
		return true, h.journal.add(line{Deployed: &d})
	}
	if at == 0 || at == len(h.Revisions)-1 {
		return false, &UntestableError{r.Name, reason}
	}
	return false, h.skip(at, reason)
}

// described is a revision with its words and its author.
func described(r Revision) string {
	text := r.Name
	if r.Words != "" {
		text += " (" + r.Words + ")"
	}
	if r.Author != "" {
		text += " by " + r.Author
	}
	return text
}

// command runs the person's command. It returns why the revision cannot be tried, or "".
func (h *hunt) command(ctx context.Context, at int) (reason string, err error) {
	folder := filepath.Join(h.Dir, "deploy")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	return Deploy(ctx, h.Deploy, h.Revisions[at].Name, filepath.Join(folder, fmt.Sprintf("%04d.log", at)), h.Limit)
}

// Deploy has a command deploy a revision, within the limit; what it prints goes to a file. It returns why the revision
// cannot be tried, or "". An error is about the command.
func Deploy(ctx context.Context, command, revision, file string, limit time.Duration) (reason string, err error) {
	log, err := os.Create(file)
	if err != nil {
		return "", err
	}
	defer log.Close()
	limited, done := context.WithTimeout(ctx, limit)
	defer done()
	cmd := exec.CommandContext(limited, "/bin/sh", "-c", command, "deploy", revision)
	cmd.Env = append(os.Environ(), "REVISION="+revision)
	// The file itself, and no pipe: a server that the command leaves running goes on writing to it.
	cmd.Stdout, cmd.Stderr = log, log
	// What the command starts belongs to its group, and ends with it if it takes too long.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case limited.Err() != nil:
		return fmt.Sprintf("the command did not end within %v%s", limit, lastWords(log)), nil
	case err == nil:
		return "", nil
	case !errors.As(err, &exit):
		return "", fmt.Errorf("deploy: %w", err)
	case exit.ExitCode() == statusNotRun || exit.ExitCode() == statusNotThere:
		return "", fmt.Errorf("deploy: the shell cannot run it (status %d)%s", exit.ExitCode(), lastWords(log))
	case exit.ExitCode() == statusSkip:
		return fmt.Sprintf("the command says so, with status 125%s", lastWords(log)), nil
	}
	return fmt.Sprintf("the command failed: %v%s", exit, lastWords(log)), nil
}

// lastWords are the last that the command said, and where the rest is.
func lastWords(log *os.File) string {
	size, err := log.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return "; it printed nothing"
	}
	tail := make([]byte, min(size, tailOfOutput))
	n, _ := log.ReadAt(tail, size-int64(len(tail))) // what can be read is shown
	return fmt.Sprintf("; it printed, at the end: %q (%s)", tail[:n], log.Name())
}
