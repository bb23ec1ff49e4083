// Package gadget makes this machine a USB keyboard, mouse and touch screen of the device
// that its USB device port is plugged into. It needs nothing of the device. x86 machines
// have no such port; boards such as the Raspberry Pi have.
//
// Reports flow in (package hid); flow out to the kernel's HID function, which hands each to
// the device when that asks. The interval of an event runs from before the write to the
// moment at which the kernel says that the device has taken the report (poll).
//
// Standards: Linux kernel, Documentation/usb/gadget_configfs.rst and gadget_hid.rst.
package gadget
