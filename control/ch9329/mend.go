package ch9329

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"go.bug.st/serial"

	"eidetic/internal/lab"
)

var (
	errNoAnswer = errors.New("the chip does not answer") // constant
	errTwice    = errors.New("the chip's answer was lost, and it is not known whether the mouse has moved: " +
		"it was not done again, so as not to do it twice") // constant
)

// mendLimit is how long mending takes at most where the caller's context ends later.
const mendLimit = 20 * time.Second

// do sends a command and returns its answer's data and when it came. A command that may be
// carried out twice without harm (again) is repeated until the chip answers.
func (c *Chip) do(ctx context.Context, cmd byte, data []byte, again bool) ([]byte, lab.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, mendLimit)
	defer cancel()
	for try := 0; ; try++ {
		answer, at, err := c.exchange(ctx, cmd, data)
		if err == nil {
			return answer, at, nil
		}
		var status Status
		said := errors.As(err, &status)
		switch {
		case ctx.Err() != nil:
			return nil, at, fmt.Errorf("%w (%w)", err, ctx.Err())
		case said && !status.damaged():
			return nil, at, c.explain(ctx, status)
		case !said && !again:
			return nil, at, errors.Join(errTwice, c.mend(ctx))
		}
		c.healed++
		if try == 0 && c.port != nil { // a disturbed byte: ask once more before anything else
			continue
		}
		if mendErr := c.mend(ctx); mendErr != nil {
			return nil, at, mendErr
		}
	}
}

// explain adds to a refusal whether a device is plugged in at the chip's other end.
func (c *Chip) explain(ctx context.Context, status Status) error {
	data, _, err := c.exchange(ctx, cmdInfo, nil)
	if err != nil {
		return status
	}
	if i, err := c.info(data); err == nil && !i.Connected {
		return fmt.Errorf("no device is connected at the chip's USB end: plug it in, or wake the device (%w)", status)
	}
	return status
}

// mend finds the chip again, round after round, until ctx ends.
func (c *Chip) mend(ctx context.Context) error {
	for {
		err := c.round(ctx)
		if err == nil || errors.Is(err, errNoPermission) {
			return err
		}
		timer := time.NewTimer(100 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w, although it was looked for at %d and %d baud and reset: is its cable plugged in at both ends?", err, Slow, Fast)
		}
	}
}

// round looks for the chip once: at the rate it had, at the other, and at both after a
// reset, which brings back a chip that has stopped after idling.
func (c *Chip) round(ctx context.Context) error {
	rates := []int{Slow, Fast}
	if c.baud == Fast || c.baud == 0 && c.o.Baud == Fast {
		rates = []int{Fast, Slow}
	}
	err := errNoAnswer
	for _, reset := range []bool{false, true} {
		for _, rate := range rates {
			if err = c.reopen(rate); err != nil {
				return err
			}
			if reset {
				_, _ = c.port.Write(appendFrame(nil, cmdReset, nil)) // whether it helped is asked next
			}
			if err = c.alive(ctx, reset); err == nil {
				return c.adopt(ctx)
			}
			if ctx.Err() != nil {
				return err
			}
		}
	}
	return err
}

// alive asks the chip a few times; after a reset it needs a moment.
func (c *Chip) alive(ctx context.Context, patient bool) error {
	tries := usualTries
	if patient {
		tries = 5
	}
	_, err := c.ask(ctx, tries, cmdInfo, nil)
	return err
}

// usualTries is how often a chip is asked: a byte may have been disturbed.
const usualTries = 2

// ask sends a command that may be carried out twice until the chip answers well, so many times at most.
func (c *Chip) ask(ctx context.Context, tries int, cmd byte, data []byte) (answer []byte, err error) {
	for range tries {
		if answer, _, err = c.exchange(ctx, cmd, data); err == nil || ctx.Err() != nil {
			return answer, err
		}
	}
	return nil, err
}

// adopt sets a chip that was found to the rate that the options name.
func (c *Chip) adopt(ctx context.Context) error {
	if c.o.Baud == 0 || c.o.Baud == c.baud {
		return nil
	}
	config, err := c.ask(ctx, usualTries, cmdGet, nil)
	if err != nil {
		return fmt.Errorf("reading its configuration: %w", err)
	}
	const length, baudAt = 50, 3
	if len(config) != length {
		return fmt.Errorf("its configuration has %d bytes instead of %d", len(config), length)
	}
	config = append([]byte(nil), config...)
	binary.BigEndian.PutUint32(config[baudAt:], uint32(c.o.Baud))
	if _, err := c.ask(ctx, usualTries, cmdSet, config); err != nil {
		return fmt.Errorf("setting it to %d baud: %w", c.o.Baud, err)
	}
	// A chip whose answer was lost has restarted all the same: whether it has is asked at the new rate.
	_, _ = c.ask(ctx, usualTries, cmdReset, nil)
	if err := c.reopen(c.o.Baud); err != nil {
		return err
	}
	if err := c.alive(ctx, true); err != nil {
		return fmt.Errorf("it does not answer at %d baud, to which it was set: %w", c.o.Baud, err)
	}
	return nil
}

var errNoPermission = errors.New("this user may not use the port: join the group dialout, or run as root") // constant

// reopen opens the port, anew if it is open already, because the file of a cable that was
// plugged in again is another one.
func (c *Chip) reopen(baud int) error {
	_ = c.Close() // a port whose cable is gone cannot be closed well
	port, err := serial.Open(c.o.Path, &serial.Mode{BaudRate: baud})
	if err != nil {
		return openError(err)
	}
	c.port, c.baud, c.read = port, baud, nil
	return nil
}

// openError says what to do about a port that cannot be opened.
func openError(err error) error {
	var known *serial.PortError
	if errors.As(err, &known) {
		switch known.Code() {
		case serial.PortBusy:
			return errors.New("another program uses the port: end it")
		case serial.PortNotFound:
			return errors.New("there is no such port: is the cable plugged in? appliance devices lists what is")
		case serial.PermissionDenied:
			return errNoPermission
		case serial.InvalidSerialPort:
			return errors.New("it is not a serial port")
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return errors.New("there is no such port: is the cable plugged in? appliance devices lists what is")
	}
	return err
}

// wire is how long n bytes take at a baud rate: ten bits each.
func wire(n, baud int) time.Duration {
	return time.Duration(n) * 10 * time.Second / time.Duration(baud)
}

// exchange sends one command and waits for its answer. Answers to other commands, which
// were given up, are skipped.
func (c *Chip) exchange(ctx context.Context, cmd byte, data []byte) ([]byte, lab.Time, error) {
	if err := ctx.Err(); err != nil {
		return nil, c.clock(), err
	}
	if c.port == nil {
		return nil, c.clock(), errNoAnswer
	}
	c.read = nil
	if err := c.port.ResetInputBuffer(); err != nil {
		return nil, c.clock(), c.lost(err)
	}
	if _, err := c.port.Write(appendFrame(nil, cmd, data)); err != nil {
		return nil, c.clock(), c.lost(err)
	}
	limit := time.Now().Add(c.o.Answer + wire(2*overhead+len(data)+maxData+maxExtra, c.baud))
	var buffer [256]byte
	for {
		left := time.Until(limit)
		if left <= 0 || ctx.Err() != nil {
			return nil, c.clock(), errNoAnswer
		}
		if err := c.port.SetReadTimeout(min(left, 50*time.Millisecond)); err != nil {
			return nil, c.clock(), c.lost(err)
		}
		n, err := c.port.Read(buffer[:])
		at := c.clock()
		if err != nil {
			return nil, at, c.lost(err)
		}
		if answer, done, err := c.take(buffer[:n], cmd); done {
			c.used = time.Now()
			return answer, at, err
		}
	}
}

// take adds what was read and looks for the answer to a command in it.
func (c *Chip) take(more []byte, cmd byte) (answer []byte, done bool, err error) {
	c.read = append(c.read, more...)
	for {
		f, rest, ok, _ := nextFrame(c.read)
		c.read = rest
		switch {
		case !ok:
			return nil, false, nil
		case f.cmd == cmd|errorMark && len(f.data) == 1:
			return nil, true, Status(f.data[0])
		case f.cmd != cmd|answerMark:
			continue
		case cmd == cmdInfo || cmd == cmdGet:
			return f.data, true, nil
		case len(f.data) == 1 && f.data[0] != 0:
			return nil, true, Status(f.data[0])
		}
		return f.data, true, nil
	}
}

// lost closes a port that fails: its cable was unplugged.
func (c *Chip) lost(err error) error {
	_ = c.Close()
	return fmt.Errorf("%w: the port is gone (%w)", errNoAnswer, err)
}
