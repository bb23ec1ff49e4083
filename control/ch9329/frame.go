package ch9329

import (
	"bytes"
	"fmt"
)

// Commands of the chip (data sheet, section 4).
const (
	cmdInfo     = 0x01 // version, whether a device is connected, its lock lights
	cmdKeyboard = 0x02
	cmdAbsolute = 0x04
	cmdRelative = 0x05
	cmdGet      = 0x08 // configuration
	cmdSet      = 0x09
	cmdReset    = 0x0f
)

// Marks of an answer's command.
const (
	answerMark = 0x80
	errorMark  = 0xc0
)

// Status is the chip's verdict on a command; 0 is good.
type Status byte

// What the chip says about a command.
const (
	StatusTimeout  Status = 0xe1 // a byte was lost on the way to the chip
	StatusHeader   Status = 0xe2
	StatusCommand  Status = 0xe3
	StatusChecksum Status = 0xe4
	StatusData     Status = 0xe5
	StatusExecute  Status = 0xe6
)

// Error explains the status.
func (s Status) Error() string {
	text, ok := map[Status]string{
		StatusTimeout:  "a byte was lost on the way to it",
		StatusHeader:   "the beginning of a command was wrong",
		StatusCommand:  "it does not know the command",
		StatusChecksum: "a command arrived damaged",
		StatusData:     "it refuses the command's values",
		StatusExecute:  "it could not carry the command out: its USB end may not be plugged in",
	}[s]
	if !ok {
		text = "it gives a status that the data sheet does not have"
	}
	return fmt.Sprintf("the chip says %02X: %s", byte(s), text)
}

// damaged says that the command did not reach the chip as it was sent, and was not carried out.
func (s Status) damaged() bool {
	return s == StatusTimeout || s == StatusHeader || s == StatusChecksum
}

// maxData is the most data that a frame has (the data sheet's).
const maxData = 64

// overhead is the number of bytes of a frame without data.
const overhead = 6

// extras are the numbers of bytes that a CH9329F puts behind its configuration, between the 50 that it states and the sum:
// its answers have 72 or 88 bytes (One-KVM, pull request 300). maxExtra is the largest.
func extras() []int { return []int{16, maxExtra} }

const maxExtra = 32

// appendFrame appends a command with its data.
func appendFrame(b []byte, cmd byte, data []byte) []byte {
	at := len(b)
	b = append(b, 0x57, 0xab, 0x00, cmd, byte(len(data)))
	b = append(b, data...)
	return append(b, sum(b[at:]))
}

func sum(b []byte) (s byte) {
	for _, v := range b {
		s += v
	}
	return s
}

// frame is a command or an answer.
type frame struct {
	cmd  byte
	data []byte
}

// frameEnd returns where a frame with n bytes of data ends, 0 if it is damaged; whole is false if that is not known before
// more has come.
func frameEnd(b []byte, n int) (end int, whole bool) {
	more := []int{0}
	if b[3] == cmdGet|answerMark {
		more = append(more, extras()...)
	}
	for _, extra := range more {
		at := 5 + n + extra
		if at >= len(b) {
			return 0, false
		}
		if sum(b[:at]) == b[at] {
			return at + 1, true
		}
	}
	return 0, true
}

// nextFrame takes the first whole frame from the bytes of a line that may lose or add
// some: bytes before a header, and headers whose frame is damaged, are skipped. It returns
// what is left, whether there was a frame, and whether anything was skipped.
func nextFrame(b []byte) (f frame, rest []byte, ok, skipped bool) {
	head := []byte{0x57, 0xab}
	for {
		at := bytes.Index(b, head)
		if at < 0 {
			keep := 0
			if len(b) > 0 && b[len(b)-1] == head[0] { // the next byte may complete a header
				keep = 1
			}
			return f, b[len(b)-keep:], false, skipped || len(b) > keep
		}
		skipped, b = skipped || at > 0, b[at:]
		if len(b) < 5 {
			return f, b, false, skipped
		}
		n := int(b[4])
		if n <= maxData && len(b) < overhead+n {
			return f, b, false, skipped
		}
		if n > maxData {
			skipped, b = true, b[1:]
			continue
		}
		switch end, whole := frameEnd(b, n); {
		case end > 0:
			return frame{b[3], b[5 : 5+n]}, b[end:], true, skipped
		case !whole:
			return f, b, false, skipped
		}
		skipped, b = true, b[1:]
	}
}
