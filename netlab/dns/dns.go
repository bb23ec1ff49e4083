// Package dns is the device's name server. In go queries over UDP and TCP, and
// either an upstream resolver (recording) or a table (replaying); out come answers
// with synthetic addresses, one for each origin address, and a Query for the log.
// It follows RFC 1035, EDNS (RFC 6891) and HTTPS/SVCB (RFC 9460). It removes ECH
// from service records, because ECH would hide the name for which the proxy has to
// sign a certificate.
package dns

import (
	"net/netip"
	"time"

	"eidetic/internal/lab"
)

// Query is one query and its answer, for the log.
type Query struct {
	Time      lab.Time       `json:"time_ns"`
	Client    netip.AddrPort `json:"client"`
	Transport string         `json:"transport"` // "udp", "tcp"
	Name      string         `json:"name"`      // lower case, without the last dot
	Type      string         `json:"type"`
	RCode     string         `json:"rcode"`
	// Source says where the answer came from: "box", "table", "upstream", "policy"
	// (a rule of this server), "parent" (only names under it are known), "none".
	Source string `json:"source"`
	// Origins are the origins' addresses, Answers the synthetic ones in the answer.
	Origins []netip.Addr  `json:"origins,omitempty"`
	Answers []netip.Addr  `json:"answers,omitempty"`
	Elapsed time.Duration `json:"elapsed_ns"`
	Error   string        `json:"error,omitempty"`
}
