// Package hid is what every controller that imitates a USB keyboard, mouse or touch
// screen has in common: characters and key names flow in, HID reports flow out to a
// [Sink], which one package a transport implements (gadget, ch9329, adb).
//
// HID sends the positions of keys, not characters. [Layout] says which keys type a
// character on a device that is set to that keyboard layout.
//
// Standards: Device Class Definition for HID 1.11; HID Usage Tables 1.4 (pages 01
// generic desktop, 07 keyboard, 09 button, 0D digitizer); Microsoft's "Windows
// touchscreen" for what its digitizers must report.
package hid
