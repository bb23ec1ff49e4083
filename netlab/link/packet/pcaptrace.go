package packet

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	"eidetic/netlab/link"
)

// TraceOfPcap makes a trace of the packets to an address in a file that tcpdump -w
// wrote where they came out of a link.
func TraceOfPcap(file string, to netip.Addr) (*link.Trace, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var log []link.Carried
	err = ReadPcap(file, f, to, func(at time.Duration, bytes int) {
		if len(log) <= link.MaxCarried {
			log = append(log, link.Carried{At: at, Bytes: bytes})
		}
	})
	switch {
	case err != nil:
		return nil, err
	case len(log) == 0:
		return nil, fmt.Errorf("%s: no packet in it went to %v", file, to)
	case len(log) > link.MaxCarried:
		return nil, fmt.Errorf("%s: more than %d packets; cut it with tcpdump -c", file, link.MaxCarried)
	}
	return link.TraceOf(file, log)
}
