// Package dns is the device's name server. In go questions over UDP and TCP,
// and either an upstream resolver (recording) or a table (replaying); out come
// answers whose addresses are synthetic, one for each of the origins', and a
// Query for the log. It follows RFC 1035, EDNS (RFC 6891) and HTTPS/SVCB
// (RFC 9460), of which ECH is stripped, because it would hide the name that a
// leaf is for.
package dns

import (
	"net/netip"
	"time"

	"eidetic/internal/lab"
)

// Query is one question and what was said to it.
type Query struct {
	Time      lab.Time       `json:"time_ns"`
	Client    netip.AddrPort `json:"client"`
	Transport string         `json:"transport"` // "udp", "tcp"
	Name      string         `json:"name"`      // lower case, without the last dot
	Type      string         `json:"type"`
	RCode     string         `json:"rcode"`
	// Source says who knew: "box", "table", "upstream", "policy" (refused
	// by rule), "none".
	Source string `json:"source"`
	// Origins are the true addresses, Answers the synthetic ones given out.
	Origins []netip.Addr  `json:"origins,omitempty"`
	Answers []netip.Addr  `json:"answers,omitempty"`
	Elapsed time.Duration `json:"elapsed_ns"`
	Error   string        `json:"error,omitempty"`
}
