// Package units holds the unit files of the service and of the box, for the
// image's builder and for the tests; the binary does not carry them.
//
// In flow nothing; out flow files in the syntax of systemd.unit(5),
// sysusers.d(5) and tmpfiles.d(5).
package units

import "embed"

// Files are the unit files, by name, and appliance.sysusers and
// appliance.tmpfiles.
//
//go:embed *.service *.socket *.slice *.mount *.path *.target appliance.sysusers appliance.tmpfiles
var Files embed.FS

// VirtualDevice is a drop-in of appliance.service where that measures a virtual device.
//
//go:embed virtual-device.conf
var VirtualDevice []byte
