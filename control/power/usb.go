package power

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Kernel is what a switch asks of this machine's kernel.
type Kernel struct {
	// Root is the root of the file system, in which sys/bus/usb, dev/bus/usb and dev/gpiochip* are.
	Root string
	// Control makes a control transfer to a USB device, by its file in dev/bus/usb. It fills data, or sends it.
	Control func(ctx context.Context, file string, r Request, data []byte) error
	// Line takes a line of a GPIO chip, by its file, as an output that is active from now on.
	Line func(file string, offset uint32, activeLow bool) (Line, error)
}

// Request is the setup packet of a control transfer (USB 2.0, 9.3).
type Request struct {
	Type, Request       uint8
	Value, Index, Limit uint16
}

// Line is an output of a GPIO chip, until Close gives it back.
type Line interface {
	Set(active bool) error
	Get() (active bool, err error)
	Close() error
}

// Requests to a hub and what they are about (USB 2.0, 11.24.2; USB 3.2, 10.16.2).
const (
	toPort, fromPort, fromHub = 0x23, 0xa3, 0xa0
	getStatus, clearFeature   = 0, 1
	setFeature, getDescriptor = 3, 6
	portPower                 = 8
	hubDescriptor, superHub   = 0x2900, 0x2a00
	powerBit, superPowerBit   = 1 << 8, 1 << 9
	individually              = 1 // of the hub's characteristics: each port has a switch of its own
	switching                 = 3
)

// usbPlace is where a device is plugged in, as the kernel calls it: bus, then a port of each hub on the way.
var usbPlace = regexp.MustCompile(`^[1-9][0-9]{0,2}-[1-9][0-9]{0,2}(\.[1-9][0-9]{0,2}){0,5}$`) // constant

// port is a port of a hub.
type port struct {
	hub    string // its folder in sys/bus/usb/devices
	number uint16
	super  bool // of USB 3
}

// portAt is the port of a place: "1-1.4" is port 4 of the hub 1-1, "1-4" that of the bus's own hub.
func portAt(place string) (port, error) {
	hub, last, below := strings.Cut(place, "-")
	hub = "usb" + hub
	if i := strings.LastIndexByte(place, '.'); below && i > 0 {
		hub, last = place[:i], place[i+1:]
	}
	number, err := strconv.ParseUint(last, 10, 8)
	return port{hub: hub, number: uint16(number)}, err
}

func (k Kernel) hub(name string, more ...string) string {
	return filepath.Join(append([]string{k.Root, "sys/bus/usb/devices", name}, more...)...)
}

// attribute reads a number of a hub's.
func (k Kernel) attribute(hub, name string, base int) (int, error) {
	text, err := os.ReadFile(k.hub(hub, name))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("there is no USB hub %s: appliance doctor lists those that switch their ports", hub)
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), base, 32)
	return int(n), err
}

// both returns a port and, of a hub of USB 3, which is two hubs in one, its other half.
func (k Kernel) both(p port) []port {
	iface := p.hub + ":1.0"
	if bus, found := strings.CutPrefix(p.hub, "usb"); found {
		iface = bus + "-0:1.0"
	}
	peer, err := os.Readlink(k.hub(p.hub, iface, fmt.Sprintf("%s-port%d", p.hub, p.number), "peer"))
	if err != nil { // it has none, as most
		return []port{p}
	}
	hub, number, found := strings.Cut(filepath.Base(peer), "-port")
	n, err := strconv.ParseUint(number, 10, 8)
	if !found || err != nil {
		return []port{p}
	}
	return []port{p, {hub: hub, number: uint16(n)}}
}

// usb switches the port at a place, and asks the hub whether it is so.
func (k Kernel) usb(ctx context.Context, place string, on bool) error {
	first, err := portAt(place)
	if err != nil {
		return err
	}
	for _, p := range k.both(first) {
		file, err := k.switches(ctx, &p)
		if err != nil {
			return err
		}
		request := Request{Type: toPort, Request: clearFeature, Value: portPower, Index: p.number}
		if on {
			request.Request = setFeature
		}
		if err := k.Control(ctx, file, request, nil); err != nil {
			return fmt.Errorf("switching port %d of the USB hub %s %s: %w", p.number, p.hub, onOff(on), err)
		}
		is, err := k.powered(ctx, file, p)
		if err != nil {
			return err
		}
		if is != on {
			return fmt.Errorf("the USB hub %s says that its port %d is %s after it was switched %s", p.hub, p.number, onOff(is), onOff(on))
		}
	}
	return nil
}

// switches returns the file of a port's hub if it can switch this port alone.
func (k Kernel) switches(ctx context.Context, p *port) (file string, err error) {
	var numbers [4]int
	for i, name := range []string{"busnum", "devnum", "maxchild", "bDeviceProtocol"} {
		base := 10
		if name == "bDeviceProtocol" {
			base = 16
		}
		if numbers[i], err = k.attribute(p.hub, name, base); err != nil {
			return "", err
		}
	}
	if int(p.number) > numbers[2] {
		return "", fmt.Errorf("the USB hub %s has %d ports, and no port %d", p.hub, numbers[2], p.number)
	}
	const superProtocol = 3
	p.super = numbers[3] == superProtocol
	kind := uint16(hubDescriptor)
	if p.super {
		kind = superHub
	}
	file = filepath.Join(k.Root, "dev/bus/usb", fmt.Sprintf("%03d", numbers[0]), fmt.Sprintf("%03d", numbers[1]))
	var d [9]byte // as far as the characteristics, and what both kinds of hub have at least
	if err := k.Control(ctx, file, Request{Type: fromHub, Request: getDescriptor, Value: kind}, d[:]); err != nil {
		return "", fmt.Errorf("asking the USB hub %s: %w", p.hub, err)
	}
	if binary.LittleEndian.Uint16(d[3:])&switching != individually && numbers[2] > 1 {
		return "", fmt.Errorf("the USB hub %s does not switch its ports one by one", p.hub)
	}
	return file, nil
}

// powered asks a hub about a port.
func (k Kernel) powered(ctx context.Context, file string, p port) (bool, error) {
	var status [4]byte
	if err := k.Control(ctx, file, Request{Type: fromPort, Request: getStatus, Index: p.number}, status[:]); err != nil {
		return false, fmt.Errorf("asking the USB hub %s about its port %d: %w", p.hub, p.number, err)
	}
	bit := uint16(powerBit)
	if p.super {
		bit = superPowerBit
	}
	return binary.LittleEndian.Uint16(status[:])&bit != 0, nil
}

// Hubs lists the hubs whose ports can be switched one by one, with the places of their ports: "1-1.[1-4]". The error is
// of hubs that could not be asked.
func (k Kernel) Hubs(ctx context.Context) (places []string, err error) {
	names, err := filepath.Glob(k.hub("*", "maxchild"))
	for _, name := range names {
		hub := filepath.Base(filepath.Dir(name))
		ports, numberErr := k.attribute(hub, "maxchild", 10)
		if numberErr != nil || ports == 0 {
			continue
		}
		if _, askErr := k.switches(ctx, &port{hub: hub, number: 1}); errors.Is(askErr, fs.ErrPermission) {
			err = askErr
			continue
		} else if askErr != nil {
			continue
		}
		at, separator := hub, "."
		if bus, found := strings.CutPrefix(hub, "usb"); found {
			at, separator = bus, "-"
		}
		places = append(places, fmt.Sprintf("%s%s[1-%d]", at, separator, ports))
	}
	return places, err
}

// transferLimit is how long a hub may take to answer.
const transferLimit = 5 * time.Second
