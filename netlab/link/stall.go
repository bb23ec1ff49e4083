package link

import (
	"fmt"
	"strings"
	"time"
)

// Stall holds all packets for a time, once after each start, from a moment that
// is drawn anew for each start. Packets that come meanwhile are queued and leave
// late. Only the packet back end implements it, also for the connections that
// bypass the link.
type Stall struct {
	For  time.Duration `json:"for_ns"`
	From time.Duration `json:"from_ns"` // the moment is drawn between From and To
	To   time.Duration `json:"to_ns"`
}

// Stalled is a stall that the profile asked for: when it began, since the start,
// and how long it was.
type Stalled struct {
	At  time.Duration `json:"at_ns"`
	For time.Duration `json:"for_ns"`
}

// parseStall reads 100ms@200ms-1.5s, or 100ms@1s.
func parseStall(value string) (*Stall, error) {
	length, when, ok := strings.Cut(value, "@")
	if !ok {
		return nil, fmt.Errorf("%q is not a stall such as 100ms@200ms-1.5s (how long, and between which times it begins)", value)
	}
	from, to, ranged := strings.Cut(when, "-")
	if !ranged {
		to = from
	}
	s := &Stall{}
	for _, part := range []struct {
		text string
		into *time.Duration
	}{{length, &s.For}, {from, &s.From}, {to, &s.To}} {
		var err error
		if *part.into, err = duration(part.text, maxDelay); err != nil {
			return nil, err
		}
	}
	if s.To < s.From {
		return nil, fmt.Errorf("%q: the second time is before the first", value)
	}
	return s, nil
}
