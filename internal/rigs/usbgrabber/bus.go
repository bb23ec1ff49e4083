package usbgrabber

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Operations and commands of USB/IP (Documentation/usb/usbip_protocol.rst of Linux), protocol version 1.1.1.
const (
	version       = 0x0111
	reqDevices    = 0x8005
	repDevices    = 0x0005
	reqImport     = 0x8003
	repImport     = 0x0003
	cmdSubmit     = 1
	cmdUnlink     = 2
	retSubmit     = 3
	retUnlink     = 4
	headerSize    = 48 // of a command or its answer
	directionIn   = 1
	speedSuper    = 5
	busID         = "1-1"
	deviceID      = 1<<16 | 2    // bus number and device number
	stall         = ^uint32(31)  // −EPIPE
	unlinked      = ^uint32(103) // −ECONNRESET
	mostOut       = 4096         // bytes that a host may send in one transfer
	deviceInfo    = 312
	interfaceInfo = 4
)

var order = binary.BigEndian // of USB/IP; USB's own numbers are little endian

// setup is the first stage of a control transfer (USB 3.2, 9.3).
type setup struct {
	kind, request        byte
	value, index, length uint16
}

// transfer is one of the stream that the host has asked for and that has no answer yet.
type transfer struct{ seq, room uint32 }

// bus is the connection to one host. Each answer is written while mu is held: the answer to a transfer and the
// cancellation of the same transfer must not pass each other.
type bus struct {
	conn    net.Conn
	mu      sync.Mutex
	waiting []transfer
	arrived chan struct{}

	// Only serve uses these. Linux's vhci_hcd may take a transfer of the stream back before it has sent it, and unplugs a
	// device that answers it after all.
	newest    uint32          // of the transfers so far
	withdrawn map[uint32]bool // taken back, and not come yet
}

// maxWithdrawn bounds them: a host has a few dozen transfers under way.
const maxWithdrawn = 1024

// Serve answers hosts that list or import the device on one connection, until it is closed.
func (g *Grabber) Serve(ctx context.Context, conn net.Conn) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	var op [8]byte
	if _, err := io.ReadFull(conn, op[:]); err != nil {
		return fmt.Errorf("usbip: operation: %w", err)
	}
	if v := order.Uint16(op[:]); v != version {
		return fmt.Errorf("usbip: version %#x; this is %#x", v, version)
	}
	device, _ := descriptors()
	switch code := order.Uint16(op[2:]); code {
	case reqDevices:
		answer := order.AppendUint32(operation(repDevices, 0), 1)
		answer = append(answer, describe(device)...)
		for _, kind := range [][]byte{{classVideo, subControl, 0, 0}, {classVideo, subStreaming, 0, 0}} {
			answer = append(answer, kind...)
		}
		_, err := conn.Write(answer)
		return err
	case reqImport:
		var name [32]byte
		if _, err := io.ReadFull(conn, name[:]); err != nil {
			return fmt.Errorf("usbip: import: %w", err)
		}
		if got := unix.ByteSliceToString(name[:]); got != busID {
			_, err := conn.Write(operation(repImport, 1))
			return errors.Join(fmt.Errorf("usbip: there is no device %q", got), err)
		}
		if _, err := conn.Write(append(operation(repImport, 0), describe(device)...)); err != nil {
			return err
		}
		b := &bus{conn: conn, arrived: make(chan struct{}, 1), withdrawn: map[uint32]bool{}}
		defer g.stop()
		return b.serve(ctx, g)
	default:
		return fmt.Errorf("usbip: operation %#x", code)
	}
}

func operation(code uint16, status uint32) []byte {
	b := order.AppendUint16(nil, version)
	return order.AppendUint32(order.AppendUint16(b, code), status)
}

// describe is the device as lists of devices have it.
func describe(d []byte) []byte {
	b := make([]byte, deviceInfo)
	copy(b, "/sys/devices/"+busID)
	copy(b[256:], busID)
	order.PutUint32(b[288:], deviceID>>16)
	order.PutUint32(b[292:], deviceID&0xffff)
	order.PutUint32(b[296:], speedSuper)
	for i, at := range []int{8, 10, 12} { // vendor, product, release
		order.PutUint16(b[300+2*i:], binary.LittleEndian.Uint16(d[at:]))
	}
	copy(b[306:], d[4:7]) // class
	b[309], b[310], b[311] = 1, 1, 2
	return b
}

// serve reads the host's commands.
func (b *bus) serve(ctx context.Context, g *Grabber) error {
	for {
		var h [headerSize]byte
		if _, err := io.ReadFull(b.conn, h[:]); err != nil {
			return fmt.Errorf("usbip: command: %w", err)
		}
		command, seq, in, ep := order.Uint32(h[:]), order.Uint32(h[4:]), order.Uint32(h[12:]) == directionIn, order.Uint32(h[16:])
		length := order.Uint32(h[24:])
		var err error
		switch {
		case command == cmdUnlink:
			victim := order.Uint32(h[20:])
			if victim > b.newest && len(b.withdrawn) < maxWithdrawn {
				b.withdrawn[victim] = true
			}
			err = b.unlink(seq, victim)
		case command != cmdSubmit:
			return fmt.Errorf("usbip: command %d", command)
		case ep == streamEndpoint && in:
			b.newest = max(b.newest, seq)
			if !b.withdrawn[seq] {
				b.queue(transfer{seq, length})
			}
			delete(b.withdrawn, seq)
		case ep != 0 || !in && length > mostOut:
			return fmt.Errorf("usbip: a transfer of %d bytes at endpoint %d", length, ep)
		default:
			b.newest = max(b.newest, seq)
			var data []byte
			if !in {
				data = make([]byte, length)
				if _, err := io.ReadFull(b.conn, data); err != nil {
					return fmt.Errorf("usbip: data: %w", err)
				}
			}
			s := setup{h[40], h[41], binary.LittleEndian.Uint16(h[42:]), binary.LittleEndian.Uint16(h[44:]), binary.LittleEndian.Uint16(h[46:])}
			err = b.control(ctx, g, seq, s, data)
		}
		if err != nil {
			return err
		}
	}
}

func (b *bus) control(ctx context.Context, g *Grabber, seq uint32, s setup, data []byte) error {
	answer, ok := g.control(ctx, b, s, data)
	status, sent := uint32(0), uint32(len(data))
	switch {
	case !ok:
		status, sent, answer = stall, 0, nil
	case s.kind&0x80 != 0:
		answer = answer[:min(len(answer), int(s.length))]
		sent = uint32(len(answer))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reply(retSubmit, seq, status, sent, answer)
}

// reply writes an answer; mu is held.
func (b *bus) reply(command, seq, status, sent uint32, data []byte) error {
	h := make([]byte, headerSize, headerSize+len(data))
	order.PutUint32(h, command)
	order.PutUint32(h[4:], seq)
	order.PutUint32(h[20:], status)
	order.PutUint32(h[24:], sent)
	_, err := b.conn.Write(append(h, data...))
	return err
}

func (b *bus) queue(t transfer) {
	b.mu.Lock()
	b.waiting = append(b.waiting, t)
	b.mu.Unlock()
	select {
	case b.arrived <- struct{}{}:
	default:
	}
}

// unlink cancels a transfer, if it has no answer yet.
func (b *bus) unlink(seq, victim uint32) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, status := len(b.waiting), uint32(0)
	b.waiting = slices.DeleteFunc(b.waiting, func(t transfer) bool { return t.seq == victim })
	if len(b.waiting) < before {
		status = unlinked
	}
	return b.reply(retUnlink, seq, status, 0, nil)
}

// send answers the oldest waiting transfer of the stream; it waits for one.
func (b *bus) send(ctx context.Context, payload []byte) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.mu.Lock()
		if len(b.waiting) > 0 {
			t := b.waiting[0]
			b.waiting = b.waiting[1:]
			if int(t.room) < len(payload) {
				b.mu.Unlock()
				return fmt.Errorf("usbip: the host has room for %d of %d bytes", t.room, len(payload))
			}
			err := b.reply(retSubmit, t.seq, 0, uint32(len(payload)), payload)
			b.mu.Unlock()
			return err
		}
		b.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-b.arrived:
		}
	}
}
