package power

import (
	"net/netip"
	"unsafe"
)

// Sizes are those of the structures of ioctls, and the numbers of these.
func Sizes() map[string][2]uintptr {
	return map[string][2]uintptr{
		"usbdevfs_ctrltransfer": {unsafe.Sizeof(controlTransfer{}), usbdevfsControl},
		"gpio_v2_line_request":  {unsafe.Sizeof(lineRequest{}), gpioGetLine},
		"gpio_v2_line_values":   {unsafe.Sizeof(lineValues{}), gpioSetValues},
	}
}

// SendTo makes magic packets go to an address.
func (s *Switch) SendTo(to netip.AddrPort) { s.to = to }
