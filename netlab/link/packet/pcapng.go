package packet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"time"
)

// The blocks of pcapng that are read (draft-ietf-opsawg-pcapng), and the options of an interface.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacket    = 6 // enhanced

	optionUnit   = 9  // if_tsresol
	optionOffset = 14 // if_tsoffset

	sectionOrder  = 0x1a2b3c4d
	maxInterfaces = 1000
)

// captured is an interface of a section.
type captured struct {
	ip     func([]byte) []byte // nil for one whose packets cannot be read
	wrong  error               // why
	perSec float64             // units of its stamps
	offset time.Duration
}

// readBlocks reads pcapng. Blocks that have no packet are passed over.
func readBlocks(in *bufio.Reader, take taker) error {
	var order binary.ByteOrder = binary.LittleEndian
	var list []captured
	var wrong error // of the interfaces
	taken := 0
	for n := 1; ; n++ {
		var head [8]byte
		switch _, err := io.ReadFull(in, head[:]); {
		case errors.Is(err, io.EOF) && taken == 0 && wrong != nil:
			return wrong
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return errPacketCut
		case err != nil:
			return err
		}
		if binary.BigEndian.Uint32(head[:]) == blockSection { // the same in both orders
			magic, err := in.Peek(4)
			if err != nil {
				return errPacketCut
			}
			if order = binary.LittleEndian; order.Uint32(magic) != sectionOrder {
				order = binary.BigEndian
			}
			if order.Uint32(magic) != sectionOrder {
				return fmt.Errorf("block %d is no beginning of a pcapng file", n)
			}
			list = nil
		}
		kind, size := order.Uint32(head[:]), order.Uint32(head[4:])
		if size < 12 || size%4 != 0 || size > 2*pcapRecord && (kind == blockPacket || kind == blockInterface) {
			return fmt.Errorf("block %d claims %d bytes", n, size)
		}
		if kind != blockPacket && kind != blockInterface {
			if _, err := io.CopyN(io.Discard, in, int64(size)-8); errors.Is(err, io.EOF) {
				return errPacketCut
			} else if err != nil {
				return err
			}
			continue
		}
		body := make([]byte, size-8)
		if _, err := io.ReadFull(in, body); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errPacketCut
		} else if err != nil {
			return err
		}
		body = body[:len(body)-4] // the size again
		switch {
		case kind == blockInterface && len(list) == maxInterfaces:
			return fmt.Errorf("block %d: more than %d interfaces", n, maxInterfaces)
		case kind == blockInterface && len(body) >= 8:
			one := interfaceOf(body, order)
			if list = append(list, one); one.wrong != nil {
				wrong = one.wrong
			}
		case kind == blockPacket && len(body) >= 20:
			id, got := order.Uint32(body), order.Uint32(body[12:])
			if int64(id) >= int64(len(list)) || int64(got) > int64(len(body)-20) {
				return fmt.Errorf("block %d: a packet of an interface that there is not, or with more bytes than its block", n)
			}
			from := list[id]
			if from.ip == nil {
				continue
			}
			taken++
			frame := body[20 : 20+got]
			packet := from.ip(frame)
			take(from.time(order.Uint32(body[4:]), order.Uint32(body[8:])), packet, int(order.Uint32(body[16:]))-(len(frame)-len(packet)))
		}
	}
}

// interfaceOf reads the description of an interface.
func interfaceOf(body []byte, order binary.ByteOrder) captured {
	one := captured{perSec: 1e6}
	one.ip, one.wrong = pcapIP(uint32(order.Uint16(body)))
	for rest := body[8:]; len(rest) >= 4; {
		code, size := order.Uint16(rest), int(order.Uint16(rest[2:]))
		padded := (size + 3) &^ 3
		if rest = rest[4:]; code == 0 || padded > len(rest) {
			break
		}
		switch {
		case code == optionUnit && size == 1 && rest[0]&0x80 != 0:
			one.perSec = math.Ldexp(1, int(rest[0]&0x3f))
		case code == optionUnit && size == 1:
			one.perSec = math.Pow10(int(min(rest[0], 18)))
		case code == optionOffset && size == 8:
			one.offset = time.Duration(min(max(int64(order.Uint64(rest)), 0), 1<<32)) * time.Second
		}
		rest = rest[padded:]
	}
	return one
}

// time is a stamp of the interface.
func (c captured) time(high, low uint32) time.Duration {
	stamp := uint64(high)<<32 | uint64(low)
	unit := uint64(c.perSec)
	seconds := min(stamp/unit, 1<<32)
	above, below := bits.Mul64(stamp%unit, uint64(time.Second))
	part, _ := bits.Div64(above, below, unit) // less than a second, as the remainder is less than unit
	return c.offset + time.Duration(seconds)*time.Second + time.Duration(part)
}
