package device

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Service is a program that runs inside a namespace.
type Service struct{ process *process }

// StartService starts cmd inside the namespace and waits until it prints a line that begins
// with ready.
func (n *Namespace) StartService(ctx context.Context, name string, cmd *exec.Cmd, ready string) (*Service, error) {
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	defer out.Close()
	cmd.Stdout = theirs
	var p *process
	err = n.Do(func() error {
		p, err = start(cmd, name)
		return err
	})
	theirs.Close()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		line, err := p.waitLine(ctx, out)
		if err != nil {
			p.stop(0)
			return nil, err
		}
		if strings.HasPrefix(line, ready) {
			return &Service{p}, nil
		}
	}
}

// Stop ends the program.
func (s *Service) Stop() { s.process.stop(2 * time.Second) }
