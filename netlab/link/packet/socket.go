package packet

import (
	"encoding/binary"
	"fmt"
	"net"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/netlab/link/schedule"
)

// batch is how many frames one system call receives or sends.
const batch = 32

// Mark is the packet mark (SO_MARK) of every frame that a Link sends. A filter
// that keeps the kernel from sending on an interface accepts these frames.
const Mark = 0xe1de6

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
	_   [4]byte
}

// socket is an AF_PACKET socket on one interface, with buffers for batches.
type socket struct {
	fd      int
	name    string
	in, out [batch]mmsghdr
	inVec   [batch]unix.Iovec
	outVec  [batch]unix.Iovec
	control [batch][64]byte
	buffers [batch][]byte
}

// openSocket opens a packet socket on an interface that carries frames for
// others; it is promiscuous, so that it receives frames to every address.
func openSocket(name string) (s *socket, err error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("link: interface %s: %w", name, err)
	}
	const all = uint16(unix.ETH_P_ALL)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("link: open a packet socket on %s (needs CAP_NET_RAW): %w", name, err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
			err = fmt.Errorf("link: set up the packet socket on %s: %w", name, err)
		}
	}()
	for _, o := range []struct{ level, opt, value int }{
		{unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1},
		{unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1},
		{unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1},
		{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1},
		{unix.SOL_SOCKET, unix.SO_MARK, Mark},
	} {
		if err = unix.SetsockoptInt(fd, o.level, o.opt, o.value); err != nil {
			return nil, err
		}
	}
	if err = takeUntagged(fd); err != nil {
		return nil, err
	}
	const room = 16 << 20
	for _, opt := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		// The forced form needs CAP_NET_ADMIN in the first user namespace; the kernel
		// cuts the other one to its limit.
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, opt[0], room) != nil {
			if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, opt[1], room); err != nil {
				return nil, err
			}
		}
	}
	mreq := unix.PacketMreq{Ifindex: int32(ifi.Index), Type: unix.PACKET_MR_PROMISC}
	if err = unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &mreq); err != nil {
		return nil, err
	}
	if err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all<<8 | all>>8, Ifindex: ifi.Index}); err != nil {
		return nil, err
	}
	s = &socket{fd: fd, name: name}
	for i := range batch {
		s.buffers[i] = make([]byte, largest)
		s.inVec[i].Base = &s.buffers[i][0]
		s.inVec[i].SetLen(largest)
		s.in[i].hdr.Iov = &s.inVec[i]
		s.in[i].hdr.SetIovlen(1)
		s.in[i].hdr.Control = &s.control[i][0]
		s.out[i].hdr.Iov = &s.outVec[i]
		s.out[i].hdr.SetIovlen(1)
	}
	return s, nil
}

// takeUntagged drops frames with a VLAN tag: the kernel removes the tag before a packet socket reads the frame, which
// would then be forwarded as an untagged one. Priority-tagged frames (IEEE 802.1Q, VLAN 0) are received.
func takeUntagged(fd int) error {
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtVLANTagPresent},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 3},
		bpf.LoadExtension{Num: bpf.ExtVLANTag},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xfff},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1},
		bpf.RetConstant{Val: 2 * largest},
		bpf.RetConstant{Val: 0},
	})
	if err != nil {
		return err
	}
	var program []unix.SockFilter
	for _, in := range raw {
		program = append(program, unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K})
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}

func (s *socket) close() { _ = unix.Close(s.fd) } // the socket holds no unsent data

// receive implements side: it reads up to a batch of frames.
func (s *socket) receive(clock lab.Clock, got func(data []byte, at lab.Time)) int {
	for i := range s.in {
		s.in[i].hdr.SetControllen(len(s.control[i]))
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.in)), batch, unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 || n == 0 {
		return 0 // EAGAIN, or the interface is down; poll returns when it is up
	}
	now, wall := bothClocks(clock)
	for i := range int(n) {
		at := now
		if c := s.control[i][:s.in[i].hdr.Controllen]; len(c) >= unix.CmsgLen(16) {
			ts := c[unix.CmsgLen(0):] // one message: a timespec
			taken := int64(binary.NativeEndian.Uint64(ts))*int64(time.Second) + int64(binary.NativeEndian.Uint64(ts[8:]))
			// A step of the wall clock must not move an arrival far back.
			at = now.Add(-min(max(0, time.Duration(wall-taken)), 50*time.Millisecond))
		}
		got(s.buffers[i][:s.in[i].n], at)
	}
	return int(n)
}

// bothClocks reads the wall clock and the monotonic clock at one instant. If the
// thread is preempted between the two in every attempt, the monotonic clock is
// the later one: a packet may then leave late, which is counted, but never early.
func bothClocks(clock lab.Clock) (now lab.Time, wall int64) {
	for range 4 {
		before := clock()
		wall = time.Now().UnixNano()
		now = clock()
		if now.Sub(before) < 5*time.Microsecond {
			break
		}
	}
	return now, wall
}

// send implements side: it writes up to a batch of frames.
func (s *socket) send(list []*frame) int {
	for i, f := range list {
		s.outVec[i].Base = &f.data[0]
		s.outVec[i].SetLen(len(f.data))
	}
	sent := 0
	for sent < len(list) {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.out[sent])),
			uintptr(len(list)-sent), unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || n == 0 {
			break
		}
		sent += int(n)
	}
	return sent
}

// overruns implements side.
func (s *socket) overruns() int64 {
	st, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0
	}
	return int64(st.Drops)
}

// maxMargin bounds how early wait wakes up, and so how long it spins.
const maxMargin = 200 * time.Microsecond

// wait returns when a socket can be read or the time has come. The kernel wakes a
// sleeping thread late, on an idle virtual machine by a tenth of a millisecond
// and more. For an exact time wait therefore wakes up by a margin early and spins
// for the rest. The margin approaches the 90th percentile of the lateness that
// wait measures; it returns the new margin.
func wait(clock lab.Clock, until lab.Time, exact bool, margin time.Duration, fds []unix.PollFd) time.Duration {
	timeout := time.Hour
	if until != schedule.Never {
		timeout = until.Sub(clock())
	}
	if exact {
		timeout -= margin
	}
	if timeout > 0 {
		target := clock().Add(timeout)
		ts := unix.NsecToTimespec(int64(timeout))
		if n, err := unix.Ppoll(fds, &ts, nil); n > 0 || err != nil || !exact { // after EINTR the caller tries again
			return margin
		}
		if late := clock().Sub(target); late > margin {
			margin = min(margin+9*time.Microsecond, maxMargin)
		} else {
			margin = max(margin-time.Microsecond, 0)
		}
	}
	for exact && clock() < until {
	}
	return margin
}
