// Package replay is the core behind all listeners: a [Recorder] forwards
// requests to their origins and writes what it saw into an archive; a
// [Session] answers them from one and contacts nobody.
//
// Requests flow in as *http.Request with an absolute URL and the facts of the
// connection in the context ([WithConn]); responses flow out to the device
// with their recorded timing, and one lab.Served per request to the log.
package replay
