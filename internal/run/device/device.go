// Package device makes devices from the instruments, above all the virtual one: a real
// browser in a network namespace of its own, on a virtual X screen, with a fresh profile in
// RAM for each trial. Its input is addresses, a screen size and a browser; its output is
// processes whose packets can only reach the box, and a screen that capture can film and
// control can drive.
//
// It must run inside the namespaces of package isolate, so that interfaces, sockets in /tmp
// and processes are gone when the box process ends.
package device
