package box

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxAnswer bounds the length of a typed line.
const maxAnswer = 256

// Terminals combines all screens and serial ports of a box into one terminal: it shows
// a question on each of them and takes the first answer.
type Terminals struct {
	files []*os.File
	lines chan string
}

// OpenTerminals opens the named terminals and skips those that do not exist. It
// returns an error if none exists.
func OpenTerminals(names []string) (*Terminals, error) {
	t := &Terminals{lines: make(chan string)}
	var missing error
	for _, name := range names {
		f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			missing = errors.Join(missing, err)
			continue
		}
		t.files = append(t.files, f)
		go t.read(f)
	}
	if len(t.files) == 0 {
		return nil, errors.Join(errors.New("no terminal"), missing)
	}
	return t, nil
}

// read passes on typed lines for as long as the program runs.
func (t *Terminals) read(f *os.File) {
	for tooLong := true; tooLong; {
		s := bufio.NewScanner(f)
		s.Buffer(make([]byte, maxAnswer), maxAnswer)
		for s.Scan() {
			t.lines <- strings.TrimSpace(s.Text())
		}
		tooLong = errors.Is(s.Err(), bufio.ErrTooLong) // for example a key that is held down
	}
}

// Lines are the typed lines.
func (t *Terminals) Lines() <-chan string { return t.lines }

// Say shows text on all of them.
func (t *Terminals) Say(text string) {
	for _, f := range t.files {
		_, _ = f.WriteString(strings.ReplaceAll(text, "\n", "\r\n"))
	}
}

// Ask shows a question on all of them and returns the first answer.
func (t *Terminals) Ask(ctx context.Context, question string) (string, error) {
	t.Say(question)
	select {
	case line := <-t.lines:
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
