package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// mostSent bounds the messages of one key that are looked through for one that came: the newest that were sent before.
// One that has come is among them, as it may come into another row, too.
const mostSent = 1000

// place is an event of a track.
type place struct{ track, event int }

// messages joins each message that came with when it was sent: the oldest of that key that was sent before, in another
// row, and did not come into this row yet.
func (tl *Timeline) messages() {
	type sent struct {
		place
		into map[int]bool // rows
	}
	at := func(p place) *Event { return &tl.Tracks[p.track].Events[p.event] }
	before := map[string][]*sent{}
	for _, p := range tl.messageEnds() {
		e := at(p)
		list := before[e.message]
		if e.sends {
			if len(list) == mostSent {
				list = list[1:]
			}
			before[e.message] = append(list, &sent{p, map[int]bool{}})
			continue
		}
		i := slices.IndexFunc(list, func(s *sent) bool { return s.track != p.track && !s.into[p.track] })
		if i < 0 || len(tl.Flows) >= mostEvents {
			continue
		}
		s := list[i]
		s.into[p.track] = true
		tl.Flows = append(tl.Flows, Flow{s.track, s.event, p.track, p.event})
		took := max(e.Start-at(s.place).Start, 0)
		e.Facts = append(e.Facts, Fact{"came from", tl.Tracks[s.track].Name}, Fact{"on the way", fmt.Sprintf("%.3f ms", float64(took)/1e6)})
	}
	if said := tl.told(); said != "" {
		tl.Notes = append(tl.Notes, said)
	}
}

// messageEnds lists the ends of messages as they may have followed each other: what was sent as early as it can have
// been, what came as late.
func (tl *Timeline) messageEnds() (all []place) {
	for t, track := range tl.Tracks {
		for i, e := range track.Events {
			if e.message != "" {
				all = append(all, place{t, i})
			}
		}
	}
	order := func(e *Event) lab.Time {
		if e.sends {
			return e.Earliest
		}
		return e.Latest
	}
	slices.SortStableFunc(all, func(a, b place) int {
		x, y := &tl.Tracks[a.track].Events[a.event], &tl.Tracks[b.track].Events[b.event]
		return cmp.Or(cmp.Compare(order(x), order(y)), cmp.Compare(truth(y.sends), truth(x.sends)))
	})
	return all
}

// told says how many messages there were of each kind, and how large.
func (tl *Timeline) told() string {
	count, bytes := map[string]int{}, map[string]int64{}
	for _, track := range tl.Tracks {
		if track.Kind != Annotation || track.Name != lab.MessageGroup && !strings.HasPrefix(track.Name, lab.MessageGroup+", ") {
			continue
		}
		for _, e := range track.Events {
			what := e.Name
			if e.message != "" {
				what += map[bool]string{true: " sent", false: " received"}[e.sends]
			}
			if len(count) < 1000 || count[what] > 0 {
				count[what], bytes[what] = count[what]+1, bytes[what]+e.bytes
			}
		}
	}
	said := make([]string, 0, len(count))
	for what, n := range count {
		said = append(said, fmt.Sprintf("%s: %d, %s", what, n, weight(bytes[what])))
	}
	if slices.Sort(said); len(said) > 12 {
		said = append(said[:12], fmt.Sprintf("%d other kinds", len(said)-12))
	}
	if len(said) == 0 {
		return ""
	}
	return "messages: " + strings.Join(said, "; ")
}

func weight(bytes int64) string {
	switch {
	case bytes >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	case bytes >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%d bytes", bytes)
}
