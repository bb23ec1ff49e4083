package powertest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"eidetic/control/power"
)

// Kernel is a machine with USB hubs and GPIO chips, of which the files are real and what they do is simulated.
type Kernel struct {
	power.Kernel
	t testing.TB

	mu    sync.Mutex
	hubs  map[string]*hub  // by their files
	lines map[string]*line // by "gpiochip0/17"
	Stuck bool             // switches and relays do not move
}

// hub is a simulated hub.
type hub struct {
	super, ganged bool
	on            map[uint16]bool
	onSwitch      func(port int, on bool)
}

// line is a simulated line of a GPIO chip.
type line struct {
	k              *Kernel
	active, in, my bool
	low            bool
	onSwitch       func(on bool)
}

// NewKernel makes a machine without hubs and chips.
func NewKernel(t testing.TB) *Kernel {
	k := &Kernel{t: t, hubs: map[string]*hub{}, lines: map[string]*line{}}
	k.Kernel = power.Kernel{Root: t.TempDir(), Control: k.control, Line: k.take}
	return k
}

// Kinds of hubs.
const (
	Hub2   = "of USB 2"
	Hub3   = "of USB 3"
	Ganged = "that switches all ports together"
)

// AddHub plugs a hub with four ports in, as sysfs would name it: "1-1", or "usb1" for the bus's own. onSwitch, if it is
// not nil, is called when a port is switched.
func (k *Kernel) AddHub(name, kind string, onSwitch func(port int, on bool)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	number := len(k.hubs) + 1
	h := &hub{super: kind == Hub3, ganged: kind == Ganged, on: map[uint16]bool{1: true, 2: true, 3: true, 4: true}, onSwitch: onSwitch}
	k.hubs[filepath.Join(k.Root, "dev/bus/usb/001", fmt.Sprintf("%03d", number))] = h
	protocol := "01"
	if h.super {
		protocol = "03"
	}
	for file, text := range map[string]string{"busnum": "1", "devnum": fmt.Sprint(number), "maxchild": "4", "bDeviceProtocol": protocol} {
		k.write(filepath.Join("sys/bus/usb/devices", name, file), text+"\n")
	}
}

// Pair makes two hubs the halves of one, as a hub of USB 3 is: their ports have the same numbers.
func (k *Kernel) Pair(one, other string) {
	for _, names := range [][2]string{{one, other}, {other, one}} {
		for n := 1; n <= 4; n++ {
			at := filepath.Join(k.Root, "sys/bus/usb/devices", names[0], names[0]+":1.0", fmt.Sprintf("%s-port%d", names[0], n), "peer")
			err := os.MkdirAll(filepath.Dir(at), 0o755)
			if err == nil {
				err = os.Symlink(fmt.Sprintf("../../../%s/%s:1.0/%s-port%d", names[1], names[1], names[1], n), at)
			}
			if err != nil {
				k.t.Fatal(err)
			}
		}
	}
}

func (k *Kernel) write(name, text string) {
	path := filepath.Join(k.Root, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// On says whether a port of a hub has power: of the n-th hub that was plugged in, from 1.
func (k *Kernel) On(nth, port int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.hubs[filepath.Join(k.Root, "dev/bus/usb/001", fmt.Sprintf("%03d", nth))].on[uint16(port)]
}

var errStall = errors.New("broken pipe") // as the kernel calls a hub's refusal

// control does what the standards say that hubs do (USB 2.0, 11.24.2; USB 3.2, 10.16.2).
func (k *Kernel) control(_ context.Context, file string, r power.Request, data []byte) error {
	k.mu.Lock()
	h := k.hubs[file]
	if h == nil {
		k.mu.Unlock()
		return os.ErrNotExist
	}
	_, known := h.on[r.Index]
	descriptor := uint16(0x2900)
	if h.super {
		descriptor = 0x2a00
	}
	moved := false
	var err error
	switch {
	case r.Type == 0xa0 && r.Request == 6 && r.Value == descriptor && len(data) >= 7:
		copy(data, []byte{9, byte(descriptor >> 8), 4, 1, 0, 50, 100})
		if h.ganged {
			data[3] = 0
		}
	case r.Type == 0xa3 && r.Request == 0 && r.Value == 0 && known && len(data) == 4:
		bit := 8
		if h.super {
			bit = 9
		}
		status := uint16(0)
		if h.on[r.Index] {
			status = 1 << bit
		}
		binary.LittleEndian.PutUint16(data, status)
	case r.Type == 0x23 && (r.Request == 1 || r.Request == 3) && r.Value == 8 && known && len(data) == 0:
		if on := r.Request == 3; !k.Stuck {
			moved, h.on[r.Index] = h.on[r.Index] != on, on
		}
	default:
		err = errStall
	}
	on := h.on[r.Index]
	k.mu.Unlock()
	if moved && h.onSwitch != nil {
		h.onSwitch(int(r.Index), on)
	}
	return err
}

// AddLine makes a line of a GPIO chip, with a relay whose input is low-active if low says so. onSwitch, if it is not
// nil, is told whether the power is on when the relay moves.
func (k *Kernel) AddLine(place string, low bool, onSwitch func(on bool)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lines[place] = &line{k: k, low: low, onSwitch: onSwitch}
	chip, _, _ := strings.Cut(place, "/")
	k.write(filepath.Join("dev", chip), "")
}

// Away says whether the relay at a line keeps the power away, and whether somebody has taken the line.
func (k *Kernel) Away(place string) (away, taken bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lines[place].active, k.lines[place].in
}

func (k *Kernel) take(file string, offset uint32, activeLow bool) (power.Line, error) {
	k.mu.Lock()
	l := k.lines[fmt.Sprintf("%s/%d", filepath.Base(file), offset)]
	if l == nil || l.in {
		k.mu.Unlock()
		return nil, errors.New("invalid argument")
	}
	l.in, l.my = true, activeLow
	k.mu.Unlock()
	return l, l.Set(true)
}

// Set moves the relay, if its input and the line's polarity are those of each other.
func (l *line) Set(active bool) error {
	l.k.mu.Lock()
	away := active == (l.my == l.low)
	moved := !l.k.Stuck && l.active != away
	if moved {
		l.active = away
	}
	l.k.mu.Unlock()
	if moved && l.onSwitch != nil {
		l.onSwitch(!away)
	}
	return nil
}

func (l *line) Get() (bool, error) {
	l.k.mu.Lock()
	defer l.k.mu.Unlock()
	return l.active == (l.my == l.low), nil
}

// Close gives the line back: the relay falls off.
func (l *line) Close() error {
	l.k.mu.Lock()
	defer l.k.mu.Unlock()
	l.in, l.active = false, false
	return nil
}
