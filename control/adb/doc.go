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
// Text that no key of the layout types is pasted: scrcpy's server, whose file is the user's, sets the phone's clipboard
// and presses Android's key PASTE.
//
// Standards: AOSP frameworks/base/cmds/hid/README.md; toolbox getevent; scrcpy, ControlMessageReader and
// DeviceMessageWriter of 2.1 to 4.1; see also packages internal/base/adbserver and internal/base/scrcpyserver.
package adb
