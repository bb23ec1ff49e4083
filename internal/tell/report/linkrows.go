package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// linkRows describes an access network in the units that people use.
func linkRows(l lab.Link) (r rows) {
	if l.Name == "" && l.BackEnd == "" {
		return nil
	}
	r.add("Name", l.Name)
	r.add("Emulated", map[string]string{"packet": "packet by packet", "conn": "by delaying connections", "native": "not at all"}[l.BackEnd])
	r = append(r, profileRows(l)...)
	for _, c := range l.Changes {
		var now []string
		for _, p := range profileRows(c.Profile) {
			now = append(now, p.Name+" "+p.Value)
		}
		r.add("After "+lengthOf(c.At), strings.Join(now, ", "))
	}
	return r
}

func profileRows(l lab.Link) (r rows) {
	r.add("Round-trip time", lengthOf(l.RTT))
	r.add("Down", capacity(l.Down, l.DownTrace))
	r.add("Up", capacity(l.Up, l.UpTrace))
	r.add("Queue", queueOf(l.Queue))
	if l.Loss > 0 {
		loss := strconv.FormatFloat(100*l.Loss, 'f', -1, 64) + " %"
		if l.Burst > 1 {
			loss += fmt.Sprintf(", in runs of %g packets", l.Burst)
		}
		r.add("Loss", loss)
	}
	if l.Jitter > 0 {
		jitter := "± " + lengthOf(l.Jitter)
		if l.Reorder {
			jitter += ", packets may overtake each other"
		}
		r.add("Jitter", jitter)
	}
	if l.MTU > 0 {
		r.add("Largest packet", fmt.Sprintf("%d bytes", l.MTU))
	}
	for _, origin := range slices.Sorted(maps.Keys(l.Extra)) {
		r.add("More to "+origin, lengthOf(l.Extra[origin]))
	}
	if s := l.Stall; s != nil {
		r.add("Stall on purpose", fmt.Sprintf("%s, beginning %s to %s after the start", lengthOf(s.For), lengthOf(s.From), lengthOf(s.To)))
	}
	if l.Loss > 0 || l.Jitter > 0 {
		r.add("Seed of the link", strconv.FormatUint(l.Seed, 10))
	}
	return r
}

// capacity formats a rate, such as 5 Mbit/s, or names the trace.
func capacity(bits int64, trace *lab.LinkTrace) string {
	switch {
	case trace != nil:
		return fmt.Sprintf("trace %s, which repeats after %s", trace.Name, lengthOf(trace.Period))
	case bits == 0:
		return "unlimited"
	case bits < 0:
		return "blocked"
	}
	for _, unit := range []struct {
		name string
		bits float64
	}{{"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}} {
		if float64(bits) >= unit.bits {
			return strconv.FormatFloat(float64(bits)/unit.bits, 'g', 6, 64) + " " + unit.name
		}
	}
	return fmt.Sprintf("%d bit/s", bits)
}

// queueOf formats the bounds of a queue that the profile sets; "" for the default.
func queueOf(q lab.LinkQueue) string {
	var bounds []string
	if q.Packets > 0 {
		bounds = append(bounds, count(q.Packets)+" packets")
	}
	if q.Bytes > 0 {
		bounds = append(bounds, size(int64(q.Bytes)))
	}
	if q.Time > 0 {
		bounds = append(bounds, lengthOf(q.Time)+" at the rate of the link")
	}
	if name := map[string]string{"droptail": "drop-tail", "codel": "CoDel"}[q.Discipline]; name != "" {
		bounds = append(bounds, name)
	}
	return strings.Join(bounds, ", ")
}

// lengthOf formats a duration for people: 28 ms, 1.5 s.
func lengthOf(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatFloat(float64(d)/1e6, 'f', -1, 64) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}
