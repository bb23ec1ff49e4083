// Package adbserver speaks with Debian's adb server, which knows the phones that are plugged in: a source films their
// screens through it, and a controller drives them. In go requests for services and files; out come lists of phones,
// what commands print, and connections to sockets of a phone.
//
// Standards: AOSP packages/modules/adb, OVERVIEW.TXT, SERVICES.TXT, SYNC.TXT, shell_protocol.h.
package adbserver
