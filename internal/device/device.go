// Package device assembles devices from the instruments: first the virtual
// one, a real browser in a network namespace of its own on a virtual X screen,
// with its profile in RAM and born fresh for each trial. In go addresses, a
// screen size and a browser; out come processes whose every packet must pass
// through the box, and a screen that capture can film and control can drive.
//
// It must run inside the namespaces that package isolate makes: interfaces,
// sockets in /tmp and processes are then gone when the box process is.
package device
