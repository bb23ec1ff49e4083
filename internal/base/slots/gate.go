package slots

import (
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// socketGate is a filter on a listening socket (socket(7), SO_ATTACH_FILTER): Linux asks it about each packet before
// the packet makes a connection. Connections inherit the filter, and it keeps nothing from them: they get no SYN.
type socketGate struct{ socket syscall.RawConn } // nil for what is no socket: then connections are closed, and that is all

func newGate(l net.Listener) gate {
	t, ok := l.(*net.TCPListener)
	if !ok {
		return socketGate{}
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return socketGate{}
	}
	return socketGate{raw}
}

// set implements gate. A kernel without such filters refuses, and the listener closes the connections itself.
func (g socketGate) set(out, known []netip.Prefix, crowd bool) {
	if g.socket == nil {
		return
	}
	if len(out) == 0 && !crowd {
		_ = g.socket.Control(func(fd uintptr) { // there may be no filter
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
		})
		return
	}
	raw, err := bpf.Assemble(filter(out, known, crowd))
	if err != nil {
		return // its jumps are short and its numbers of instructions bounded
	}
	program := make([]unix.SockFilter, len(raw))
	for i, in := range raw {
		program[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	_ = g.socket.Control(func(fd uintptr) {
		_ = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog)
	})
}

const (
	// ofIP is where the filter finds the header of IP (SKF_NET_OFF of linux/filter.h); TCP's is at 0.
	ofIP = ^uint32(0x100000) + 1
	// chance is how many of 256 packets of strangers a crowded gate lets pass.
	chance   = 8
	syn, ack = 0x02, 0x10 // flags of TCP (RFC 9293, 3.1)
)

// filter is the program: it drops the first packet (SYN without ACK) of a connection of those who are out, and, in a
// crowd, of all but known ones, this machine, and some by chance.
func filter(out, known []netip.Prefix, crowd bool) []bpf.Instruction {
	pass, drop := bpf.RetConstant{Val: 1 << 30}, bpf.RetConstant{Val: 0}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 13, Size: 1}, // the flags
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: syn | ack},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: syn, SkipTrue: 1},
		pass,
	}
	judge := func(is4 bool) (part []bpf.Instruction) {
		for _, list := range []struct {
			sources []netip.Prefix
			end     bpf.Instruction
		}{{out, drop}, {known, pass}} {
			for _, p := range list.sources {
				if p.Addr().Is4() == is4 {
					part = append(part, compare(p.Addr(), list.end)...)
				}
			}
		}
		if crowd {
			part = append(part,
				bpf.LoadExtension{Num: bpf.ExtRand},
				bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 255},
				bpf.JumpIf{Cond: bpf.JumpLessThan, Val: chance, SkipTrue: 1},
				drop)
		}
		return append(part, pass)
	}
	four := append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: ofIP + 12, Size: 1}, // the source's first byte (RFC 791, 3.1)
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 127, SkipTrue: 1},
		pass,
	}, judge(true)...)
	six := append(compare(netip.IPv6Loopback(), pass), judge(false)...)
	program = append(program,
		bpf.LoadAbsolute{Off: ofIP, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 4, SkipTrue: 1},
		bpf.Jump{Skip: uint32(len(four))})
	return append(append(program, four...), six...)
}

// compare ends the program if a packet comes from an address, or of IPv6 from its /64 (RFC 8200, 3).
func compare(a netip.Addr, end bpf.Instruction) []bpf.Instruction {
	if a.Is4() {
		b := a.As4()
		return []bpf.Instruction{
			bpf.LoadAbsolute{Off: ofIP + 12, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(b[:]), SkipTrue: 1},
			end,
		}
	}
	b := a.As16()
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: ofIP + 8, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(b[:4]), SkipTrue: 3},
		bpf.LoadAbsolute{Off: ofIP + 12, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(b[4:8]), SkipTrue: 1},
		end,
	}
}
