// Package conformance holds the named cases that record and replay must pass with real browsers:
// each is an origin and a page that reports what it saw. A case is loaded once while it is
// recorded and once or twice from the recording, with the origin gone; the page must see the same
// each time, without a miss. TestWire does so byte for byte, TestHTTP3 over QUIC, TestNames with
// DNS, TestRealApplications with applications from Debian. coverage_test.go says which case shows
// what.
//
// The package has tests only: a browser flows in, pass or fail comes out.
package conformance
