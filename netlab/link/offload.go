package link

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// offloads are what makes an interface pass several segments as one, or leave
// a checksum to hardware; ioctl numbers of linux/ethtool.h.
func offloads() []struct {
	name     string
	get, set uint32
} {
	return []struct {
		name     string
		get, set uint32
	}{
		{"tcp-segmentation-offload", unix.ETHTOOL_GTSO, unix.ETHTOOL_STSO},
		{"generic-segmentation-offload", unix.ETHTOOL_GGSO, unix.ETHTOOL_SGSO},
		{"generic-receive-offload", unix.ETHTOOL_GGRO, unix.ETHTOOL_SGRO},
		{"tx-checksumming", unix.ETHTOOL_GTXCSUM, unix.ETHTOOL_STXCSUM},
	}
}

// Offloads returns which offloads of an interface of this network namespace
// are on.
func Offloads(name string) ([]string, error) {
	var on []string
	err := eachOffload(name, func(what string, get, _ uint32, call func(uint32, *uint32) error) error {
		var v uint32
		if err := call(get, &v); err != nil {
			return err
		}
		if v != 0 {
			on = append(on, what)
		}
		return nil
	})
	return on, err
}

// DisableOffloads switches the offloads of an interface off and looks whether
// they are. Call it for both ends of a cable in their own namespaces: segments
// that are merged by the sender cannot be told apart in the middle.
func DisableOffloads(name string) error {
	err := eachOffload(name, func(_ string, _, set uint32, call func(uint32, *uint32) error) error {
		var off uint32
		return call(set, &off)
	})
	if err != nil {
		return err
	}
	on, err := Offloads(name)
	if err == nil && len(on) > 0 {
		err = fmt.Errorf("switch offloads of %s off: %v stay on", name, on)
	}
	return err
}

// keepOffloads returns what sets an interface's offloads back to what they are.
func keepOffloads(name string) (restore func() error, err error) {
	old := map[string]uint32{}
	err = eachOffload(name, func(what string, get, _ uint32, call func(uint32, *uint32) error) error {
		var v uint32
		err := call(get, &v)
		if err == nil {
			old[what] = v
		}
		return err
	})
	return func() error {
		return eachOffload(name, func(what string, _, set uint32, call func(uint32, *uint32) error) error {
			v, known := old[what]
			if !known {
				return nil
			}
			return call(set, &v)
		})
	}, err
}

func eachOffload(name string, f func(what string, get, set uint32, call func(cmd uint32, value *uint32) error) error) error {
	if len(name) >= unix.IFNAMSIZ {
		return fmt.Errorf("offloads: %q is not the name of an interface", name)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("offloads of %s: %w", name, err)
	}
	defer unix.Close(fd)
	call := func(cmd uint32, value *uint32) error {
		ev := &[2]uint32{cmd, *value} // struct ethtool_value
		var req struct {              // struct ifreq
			name [unix.IFNAMSIZ]byte
			data unsafe.Pointer
			_    [16]byte
		}
		copy(req.name[:], name)
		req.data = unsafe.Pointer(ev)
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req)))
		runtime.KeepAlive(ev)
		*value = ev[1]
		if errno != 0 {
			return errno
		}
		return nil
	}
	for _, o := range offloads() {
		// A driver that does not know an offload does not do it.
		if err := f(o.name, o.get, o.set, call); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
			return fmt.Errorf("%s of %s: %w", o.name, name, err)
		}
	}
	return nil
}
