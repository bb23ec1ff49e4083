package hidtest

import (
	"encoding/binary"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Kinds of events of linux/uhid.h.
const (
	uhidGetReport      = 9
	uhidGetReportReply = 10
	uhidCreate2        = 11
	uhidInput2         = 12
	uhidSetReport      = 13
	uhidSetReportReply = 14
)

// UHID is an input device of this machine's kernel that a program makes, as Android's
// command hid does.
type UHID struct {
	t    testing.TB
	file *os.File
}

// NewUHID makes one; it is taken away when the test ends.
func NewUHID(t testing.TB, name string, descriptor []byte) *UHID {
	t.Helper()
	fd, err := unix.Open("/dev/uhid", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("/dev/uhid: %v; load it with: modprobe uhid", err)
	}
	u := &UHID{t: t, file: os.NewFile(uintptr(fd), "/dev/uhid")}
	order := binary.NativeEndian
	b := order.AppendUint32(nil, uhidCreate2)
	names := make([]byte, 128+64+64)
	copy(names, name)
	b = append(b, names...)
	b = order.AppendUint16(b, uint16(len(descriptor)))
	b = order.AppendUint16(b, 3) // BUS_USB
	for _, v := range []uint32{0x1d6b, 0x0104, 0, 0} {
		b = order.AppendUint32(b, v)
	}
	u.write(append(b, descriptor...))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		u.answer()
	}()
	t.Cleanup(func() {
		u.file.Close()
		<-ended
	})
	return u
}

func (u *UHID) write(b []byte) {
	if _, err := u.file.Write(b); err != nil {
		u.t.Errorf("/dev/uhid: %v", err)
	}
}

// Send hands a report to the kernel.
func (u *UHID) Send(report []byte) {
	order := binary.NativeEndian
	b := order.AppendUint32(nil, uhidInput2)
	b = order.AppendUint16(b, uint16(len(report)))
	u.write(append(b, report...))
}

// answer refuses what the kernel asks for, so that it does not wait.
func (u *UHID) answer() {
	const ioError = 5
	order := binary.NativeEndian
	b := make([]byte, 8<<10)
	for {
		n, err := u.file.Read(b)
		if err != nil || n < 8 {
			return
		}
		reply := uint32(0)
		switch order.Uint32(b) {
		case uhidGetReport:
			reply = uhidGetReportReply
		case uhidSetReport:
			reply = uhidSetReportReply
		default:
			continue
		}
		out := order.AppendUint32(order.AppendUint32(nil, reply), order.Uint32(b[4:]))
		out = order.AppendUint16(order.AppendUint16(out, ioError), 0)
		if _, err := u.file.Write(out); err != nil {
			return
		}
	}
}
