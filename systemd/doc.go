// Package systemd connects the binary with the service manager: its notifications
// (ready, status, stopping, still alive), the listening sockets that it is given by
// name, and its log (the journal, with fields).
//
// In flow the environment of sd_notify(3), sd_listen_fds(3) and
// sd_watchdog_enabled(3), which is read once and then removed, so that child
// processes do not inherit it. Out flow datagrams to the notification socket
// and to the journal, by coreos/go-systemd. Outside systemd everything here
// does nothing, and the program runs as usual.
//
// The unit files are in the package units beside it.
package systemd
