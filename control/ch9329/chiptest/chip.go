// Package chiptest is a CH9329 in software at the end of a pseudo-terminal, for tests. It
// follows the data sheet: framing, checksums, statuses, the 3 ms after which a frame counts
// as broken off, configuration, reset. Frames flow in; reports flow out to a hid.Sink, as
// the chip's USB end would send them; faults are switched on by the test.
package chiptest

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/control/hid"
)

// Faults are what is wrong with a chip or its line. Counters count down.
type Faults struct {
	LoseAnswers  int  // answers that are not sent; the commands are carried out
	LoseBytes    int  // commands of which the chip misses a byte
	Damage       int  // commands that arrive with a wrong bit
	DamageAnswer int  // answers that arrive with a wrong bit
	LoseAnswerTo byte // a command whose next answer is not sent; it is carried out
	Refuse       byte // the status that every report gets
	Dead         bool // it does nothing until it is reset, as after idling
	Detached     bool // no device at the USB end
	Extra        int  // bytes behind the configuration that its stated length does not have, as of a CH9329F
}

// Chip is a simulated chip.
type Chip struct {
	// Path is the stable name of its serial port, as of /dev/serial/by-id.
	Path string
	t    testing.TB
	sink hid.Sink

	mu     sync.Mutex
	faults Faults
	baud   int
	config [50]byte
	master *os.File
	slave  *os.File
	ended  chan struct{}
}

// New plugs in a chip that works at this baud rate; it is unplugged when the test ends.
func New(t testing.TB, baud int, sink hid.Sink) *Chip {
	t.Helper()
	c := &Chip{Path: filepath.Join(t.TempDir(), "usb-1a86_USB_Serial-if00-port0"), t: t, sink: sink, baud: baud}
	c.config[0], c.config[1] = 0x80, 0x80
	binary.BigEndian.PutUint32(c.config[3:], uint32(baud))
	copy(c.config[9:], []byte{0, 3, 0x86, 0x1a, 0x29, 0xe1}) // packet interval, vendor, product
	c.Plug()
	t.Cleanup(c.Unplug)
	return c
}

// Plug plugs the serial cable in: a new terminal under the old name.
func (c *Chip) Plug() {
	c.t.Helper()
	master, slave, name, err := openTerminal()
	if err == nil {
		err = os.Symlink(name, c.Path)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.master, c.slave, c.ended = master, slave, make(chan struct{})
	go c.serve(master, slave, c.ended)
}

// openTerminal returns the two ends of a pseudo-terminal. The chip holds the far end
// open too, so that the near one can be read while nobody else has it open.
func openTerminal() (master, slave *os.File, name string, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, "", err
	}
	var number int
	if err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err == nil {
		number, err = unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	}
	if err == nil {
		err = unix.SetNonblock(int(master.Fd()), true) // Fd made it blocking
	}
	if err == nil {
		name = fmt.Sprintf("/dev/pts/%d", number)
		slave, err = os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err == nil {
		err = makeRaw(slave)
	}
	if err != nil {
		master.Close()
		return nil, nil, "", err
	}
	return master, slave, name, nil
}

// makeRaw keeps the terminal from echoing before the driver has set it.
func makeRaw(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = conn.Control(func(fd uintptr) {
		var term *unix.Termios
		if term, inner = unix.IoctlGetTermios(int(fd), unix.TCGETS); inner == nil {
			term.Lflag, term.Iflag, term.Oflag = 0, 0, 0
			inner = unix.IoctlSetTermios(int(fd), unix.TCSETS, term)
		}
	})
	if err == nil {
		err = inner
	}
	return err
}

// Unplug pulls the serial cable.
func (c *Chip) Unplug() {
	c.mu.Lock()
	master, slave, ended := c.master, c.slave, c.ended
	c.master, c.slave = nil, nil
	c.mu.Unlock()
	if master == nil {
		return
	}
	_ = os.Remove(c.Path)
	_ = slave.Close()
	_ = master.Close()
	<-ended
}

// Set changes the faults.
func (c *Chip) Set(f Faults) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = f
}

// SetBaud changes the rate by itself, as a chip does that forgets what it was set to.
func (c *Chip) SetBaud(baud int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.baud = baud
}

// Baud is the rate at which it works.
func (c *Chip) Baud() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.baud
}

// serve reads the terminal until it is closed.
func (c *Chip) serve(master, slave *os.File, ended chan struct{}) {
	defer close(ended)
	var held []byte
	buffer := make([]byte, 256)
	for {
		deadline := time.Time{}
		if len(held) > 0 {
			deadline = time.Now().Add(packetGap)
		}
		_ = master.SetReadDeadline(deadline)
		n, err := master.Read(buffer)
		if os.IsTimeout(err) {
			held = nil
			c.answer(master, slave, 0xc0, []byte{0xe1})
			continue
		}
		if err != nil {
			return
		}
		if held = append(held, buffer[:n]...); !c.listens(slave) {
			held = nil // at another rate the bytes are noise
			continue
		}
		held = c.frame(master, slave, held)
	}
}

// packetGap is the pause within a frame after which it counts as broken off: 3 ms in the
// data sheet. Ours is longer, because a test's machine stalls.
const packetGap = 60 * time.Millisecond

// listens says whether the driver's baud rate is the chip's.
func (c *Chip) listens(slave *os.File) bool {
	conn, err := slave.SyscallConn()
	if err != nil {
		return false
	}
	rate := 0
	_ = conn.Control(func(fd uintptr) {
		if term, err := unix.IoctlGetTermios(int(fd), unix.TCGETS); err == nil {
			rate = map[uint32]int{unix.B9600: 9600, unix.B115200: 115200}[term.Cflag&unix.CBAUD]
		}
	})
	return rate == c.Baud()
}

// frame carries out the frames that have arrived, and returns what is left.
func (c *Chip) frame(master, slave *os.File, b []byte) []byte {
	for {
		switch {
		case len(b) >= 2 && (b[0] != 0x57 || b[1] != 0xab):
			c.answer(master, slave, 0xc0, []byte{0xe2})
			return nil
		case len(b) < 5 || len(b) < 6+int(b[4]):
			return b
		}
		end := 6 + int(b[4])
		whole := append([]byte(nil), b[:end]...)
		b = b[end:]
		c.command(master, slave, whole)
	}
}

// command carries out a frame.
func (c *Chip) command(master, slave *os.File, f []byte) {
	c.mu.Lock()
	faults, cmd, data := c.faults, f[3], f[5:len(f)-1]
	switch {
	case faults.Dead && cmd == 0x0f:
		c.faults.Dead = false
	case faults.Dead:
		c.mu.Unlock()
		return
	case faults.LoseBytes > 0:
		c.faults.LoseBytes--
		c.mu.Unlock()
		c.answer(master, slave, cmd|0xc0, []byte{0xe1})
		return
	case faults.Damage > 0:
		c.faults.Damage--
		f[len(f)-1] ^= 4
	}
	if sum(f[:len(f)-1]) != f[len(f)-1] {
		c.mu.Unlock()
		c.answer(master, slave, cmd|0xc0, []byte{0xe4})
		return
	}
	c.mu.Unlock()
	c.obey(master, slave, cmd, data, faults)
}

// obey answers a command that arrived whole.
func (c *Chip) obey(master, slave *os.File, cmd byte, data []byte, faults Faults) {
	status := byte(0)
	switch {
	case cmd == 0x01:
		c.answer(master, slave, 0x81, c.info(faults))
		return
	case cmd == 0x08:
		c.mu.Lock()
		config := append(append([]byte(nil), c.config[:]...), make([]byte, faults.Extra)...)
		c.mu.Unlock()
		for i := range faults.Extra {
			config[len(c.config)+i] = byte(i)
		}
		c.answer(master, slave, 0x88, config)
		return
	case cmd == 0x09 && len(data) == len(c.config):
		c.mu.Lock()
		copy(c.config[:], data)
		c.mu.Unlock()
	case cmd == 0x0f && len(data) == 0:
		c.answer(master, slave, 0x8f, []byte{0})
		c.mu.Lock()
		c.baud = int(binary.BigEndian.Uint32(c.config[3:]))
		c.mu.Unlock()
		return
	case cmd == 0x02 && len(data) == 8, cmd == 0x04 && len(data) == 7 && data[0] == 2, cmd == 0x05 && len(data) == 5 && data[0] == 1:
		if status = faults.Refuse; faults.Detached {
			status = 0xe6
		}
		if status == 0 && c.report(cmd, data) != nil {
			status = 0xe6
		}
	case cmd == 0x02 || cmd == 0x04 || cmd == 0x05 || cmd == 0x09 || cmd == 0x0f:
		status = 0xe5
	default:
		status = 0xe3
	}
	if status != 0 {
		cmd |= 0xc0
	}
	c.answer(master, slave, cmd|0x80, []byte{status})
}

// info is the answer to GET_INFO.
func (c *Chip) info(f Faults) []byte {
	b := []byte{0x30, 1, 0, 0, 0, 0, 0, 0}
	if f.Detached {
		b[1] = 0
	}
	if on, known := c.sink.CapsLock(context.Background()); on && known {
		b[2] = 2
	}
	return b
}

// report hands a report to the device.
func (c *Chip) report(cmd byte, data []byte) (err error) {
	ctx := context.Background()
	switch cmd {
	case 0x02:
		k := hid.Keyboard{Modifiers: data[0]}
		for i := range k.Keys {
			k.Keys[i] = hid.Usage(data[2+i])
		}
		_, err = c.sink.Send(ctx, k)
	case 0x04:
		wide := func(b []byte) uint16 { return (binary.LittleEndian.Uint16(b) & 0xfff) << 3 }
		_, err = c.sink.Send(ctx, hid.Pointer{Buttons: data[1], X: wide(data[2:]) + 4, Y: wide(data[4:]) + 4, Wheel: int8(data[6])})
	case 0x05:
		_, err = c.sink.Send(ctx, hid.Motion{Buttons: data[1], DX: int8(data[2]), DY: int8(data[3]), Wheel: int8(data[4])})
	}
	return err
}

// answer sends an answer, unless a fault keeps it back.
func (c *Chip) answer(master, slave *os.File, cmd byte, data []byte) {
	f := append([]byte{0x57, 0xab, 0x00, cmd, byte(min(len(data), len(c.config)))}, data...)
	f = append(f, sum(f))
	c.mu.Lock()
	switch {
	case c.faults.Dead:
		f = nil
	case c.faults.LoseAnswers > 0:
		c.faults.LoseAnswers--
		f = nil
	case c.faults.LoseAnswerTo != 0 && cmd == c.faults.LoseAnswerTo|0x80:
		c.faults.LoseAnswerTo = 0
		f = nil
	case c.faults.DamageAnswer > 0:
		c.faults.DamageAnswer--
		f[len(f)-2] ^= 1
	}
	c.mu.Unlock()
	if c.listens(slave) {
		_, _ = master.Write(f) // a cable that was pulled is noticed by the next reading
	}
}

func sum(b []byte) (s byte) {
	for _, v := range b {
		s += v
	}
	return s
}
