// Package replay is the core behind all listeners: a [Recorder] forwards requests
// to their origins and writes them into an archive with the answers; a [Session]
// answers them from an archive and contacts nobody.
//
// A request makes one way through either: it is read, an [outcome] is made of it
// (for a Session by package match, which finds the recorded exchange; for a
// Recorder by the origin), and [output.deliver] writes that to the device and into
// the request's line of the log.
//
// Requests flow in as *http.Request with an absolute URL and the facts of the
// connection in the context ([hop.WithConn]); responses flow out to the device
// with their recorded timing, and one lab.Served per request to the log.
package replay
