package link

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// Carried is what a link carried at an instant.
type Carried struct {
	At    time.Duration
	Bytes int
}

// MaxCarried bounds a log of what a link carried: as many packets as a trace may
// have lines.
const MaxCarried = 6_000_000

// maxReport bounds the file of a report.
const maxReport = 64 << 20

// TraceOf makes a trace of what a link carried; name is for errors.
func TraceOf(name string, log []Carried) (*Trace, error) {
	return NewTrace(name, func(yield func(time.Duration, int) bool) {
		for _, c := range log {
			if !yield(c.At, c.Bytes) {
				return
			}
		}
	})
}

// TraceOfReport makes a trace of what an emulated link did in a trial, as its
// link.json says: of what the device got, or with up of what it sent. The bytes of
// each bin are spread evenly over its time.
func TraceOfReport(file string, up bool) (*Trace, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r Report
	if err := json.NewDecoder(io.LimitReader(f, maxReport)).Decode(&r); err != nil {
		return nil, fmt.Errorf("%s is not the link.json of a trial: %w", file, err)
	}
	log := []Carried{{}} // the link begins at once
	for i, bin := range r.Bins {
		bytes := bin.Down
		if up {
			bytes = bin.Up
		}
		packets := max(1, bytes/TracePacket)
		if packets > MaxCarried-len(log) {
			return nil, fmt.Errorf("%s: more than %d packets", file, MaxCarried)
		}
		for n := range packets {
			at := time.Duration(i)*BinWidth + time.Duration(n+1)*BinWidth/time.Duration(packets)
			log = append(log, Carried{at, bytes*(n+1)/packets - bytes*n/packets})
		}
	}
	return TraceOf(file, log)
}
