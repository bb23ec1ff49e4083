// Package adb drives Android devices, without root, through Debian's adb server: keyboard,
// mouse and touch screen are devices of the phone's own kernel, made by Android's command
// hid (UHID) and held open; packages are cleared, started and stopped by shell commands.
//
// Reports flow in (package hid); flow out to the phone. That the phone has a report is
// read from its kernel's own event log (getevent), which is held open too: an event's
// interval runs from before the report is written to the arrival of its line, and is
// narrowed by the kernel's stamp once repeated round trips have bounded the difference of
// the two clocks.
//
// Standards: AOSP frameworks/base/cmds/hid/README.md; toolbox getevent; see also package internal/base/adbserver.
package adb
