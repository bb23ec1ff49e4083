package packet

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// offloads lists the settings by which an interface passes several segments as
// one frame or leaves a checksum to hardware, with their commands of
// linux/ethtool.h.
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

// Offloads returns which offloads are on for an interface of this network
// namespace.
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

// DisableOffloads switches the offloads of an interface off and checks that they
// are off. Call it for both ends of a cable, in their own namespaces: the link
// cannot separate segments that a sender has merged.
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
		err = fmt.Errorf("switch the offloads of %s off: %v stay on", name, on)
	}
	return err
}

// EnableOffloads switches offloads of an interface on again, by the names that
// Offloads returned before they were switched off.
func EnableOffloads(name string, which []string) error {
	return eachOffload(name, func(what string, _, set uint32, call func(uint32, *uint32) error) error {
		on := uint32(1)
		if !slices.Contains(which, what) {
			return nil
		}
		if err := call(set, &on); err != nil {
			return fmt.Errorf("switch on again: %w", err)
		}
		return nil
	})
}

// eachOffload calls f for each offload of an interface, with a function that
// carries out an ethtool command on it.
func eachOffload(name string, f func(what string, get, set uint32, call func(cmd uint32, value *uint32) error) error) error {
	if len(name) >= unix.IFNAMSIZ {
		return fmt.Errorf("offloads: %q is too long for the name of an interface", name)
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
		// An offload that the driver does not support is off.
		if err := f(o.name, o.get, o.set, call); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
			return fmt.Errorf("%s of %s: %w", o.name, name, err)
		}
	}
	return nil
}
