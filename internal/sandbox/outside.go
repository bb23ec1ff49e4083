package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"

	"eidetic/internal/execute"
	"eidetic/internal/isolate"
)

// Run carries the task out in namespaces that end with it, and shows a person its
// progress. The error is an *exec.ExitError when the inner half has told the
// person why it failed.
func (t Task) Run(ctx context.Context, c Commands) error {
	t.Events = false
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return isolate.Run(ctx, append(slices.Clone(c.Inside), string(text)))
}

// RunWithEvents carries the task out in namespaces that end with it, makes the
// inner half's connections to origins, and passes its events on to news.
func (t Task) RunWithEvents(ctx context.Context, c Commands, news execute.News) error {
	t.Events = true
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	outside, inside, err := isolate.DialSockets()
	if err != nil {
		return err
	}
	defer inside.Close()
	go isolate.ServeDials(ctx, outside, new(net.Dialer).DialContext)
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	told := make(chan error, 1)
	go func() { told <- readEvents(read, news) }()
	err = isolate.Run(ctx, append(slices.Clone(c.Inside), string(text)), write, inside)
	write.Close()
	reported := <-told
	var exit *exec.ExitError
	if reported != nil && errors.As(err, &exit) {
		return reported
	}
	return err
}
