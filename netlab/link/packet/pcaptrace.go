package packet

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"eidetic/netlab/link"
)

// maxDisorder is by how much packets of several queues or interfaces may be out of order in a file.
const maxDisorder = time.Second

// TraceOfPcap makes a trace of the packets to an address in a file that tcpdump -w
// wrote where they came out of a link. isCut: the file ends within a packet, which is left out.
func TraceOfPcap(file string, to netip.Addr) (t *link.Trace, isCut bool, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	var log []link.Carried
	var last, back time.Duration
	isCut, err = ReadPcap(file, f, to, func(at time.Duration, bytes int) {
		if len(log) <= link.MaxCarried {
			log = append(log, link.Carried{At: at, Bytes: bytes})
			last, back = max(last, at), max(back, last-at)
		}
	})
	switch {
	case err != nil:
		return nil, false, err
	case len(log) == 0:
		return nil, false, fmt.Errorf("%s: no packet in it went to %v", file, to)
	case len(log) > link.MaxCarried:
		return nil, false, fmt.Errorf("%s: more than %d packets; cut it with tcpdump -c", file, link.MaxCarried)
	}
	if back < maxDisorder {
		slices.SortStableFunc(log, func(a, b link.Carried) int { return cmp.Compare(a.At, b.At) })
	} // else the clock was set, which is an error of the trace
	t, err = link.TraceOf(file, log)
	return t, isCut, err
}
