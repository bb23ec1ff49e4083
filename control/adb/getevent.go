package adb

import (
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// heard is a line of getevent -t: an event that the phone's kernel stamped, or the name of
// an input device.
type heard struct {
	device           string // "/dev/input/event5"
	name             string // of the device, where the line says it
	stamp            time.Duration
	kind, code       uint16
	value            uint32
	isEvent, isAdded bool
	isRemoved        bool
	at               lab.Time // when the line came
}

// maxLine bounds a line; longer ones are dropped.
const maxLine = 4 << 10

// geteventReader makes lines of what getevent prints.
type geteventReader struct {
	rest   []byte
	device string // that the lines which follow describe
}

// add takes what was printed and returns what it says.
func (r *geteventReader) add(b []byte, at lab.Time) (list []heard) {
	r.rest = append(r.rest, b...)
	for {
		line, rest, ok := strings.Cut(string(r.rest), "\n")
		if !ok {
			break
		}
		r.rest = []byte(rest)
		if h, ok := r.line(strings.TrimSpace(line)); ok {
			h.at = at
			list = append(list, h)
		}
	}
	if len(r.rest) > maxLine {
		r.rest = r.rest[:0]
	}
	return list
}

// line reads one of
//
//	add device 3: /dev/input/event5
//	name:     "Eidetic keyboard"
//	remove device 3: /dev/input/event5
//	[    1234.567890] /dev/input/event5: 0001 001e 00000001
func (r *geteventReader) line(line string) (h heard, ok bool) {
	if _, device, found := strings.Cut(line, ": /dev/input/"); found && strings.HasPrefix(line, "add device ") {
		r.device = "/dev/input/" + device
		return heard{device: r.device, isAdded: true}, true
	}
	if name, found := strings.CutPrefix(line, "name:"); found && r.device != "" {
		return heard{device: r.device, name: strings.Trim(strings.TrimSpace(name), `"`), isAdded: true}, true
	}
	if _, device, found := strings.Cut(line, ": /dev/input/"); found && strings.HasPrefix(line, "remove device ") {
		return heard{device: "/dev/input/" + device, isRemoved: true}, true
	}
	rest, found := strings.CutPrefix(line, "[")
	if !found {
		return h, false
	}
	stamp, rest, found := strings.Cut(rest, "]")
	seconds, micros, dot := strings.Cut(strings.TrimSpace(stamp), ".")
	device, values, colon := strings.Cut(strings.TrimSpace(rest), ": ")
	words := strings.Fields(values)
	if !found || !dot || !colon || len(micros) != 6 || len(words) != 3 {
		return h, false
	}
	s, err1 := strconv.ParseUint(seconds, 10, 32)
	us, err2 := strconv.ParseUint(micros, 10, 32)
	kind, err3 := strconv.ParseUint(words[0], 16, 16)
	code, err4 := strconv.ParseUint(words[1], 16, 16)
	value, err5 := strconv.ParseUint(words[2], 16, 32)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || err5 != nil {
		return h, false
	}
	return heard{
		device: device, stamp: time.Duration(s)*time.Second + time.Duration(us)*time.Microsecond,
		kind: uint16(kind), code: uint16(code), value: uint32(value), isEvent: true,
	}, true
}

// clocks bounds the difference of this machine's clock and the phone's: what to add to a
// stamp of the phone.
type clocks struct {
	low, high time.Duration
	since     lab.Time // when the bounds were last made narrower or wider
	known     bool
	// grain is to what the phone cuts its stamps, if that is not next to nothing.
	grain time.Duration
}

// drift is by how much two quartz clocks may run apart: 100 parts in a million.
func drift(d time.Duration) time.Duration { return d / 10_000 }

// narrow takes a round trip: an event with this stamp happened between two times of ours.
func (c *clocks) narrow(stamp time.Duration, between [2]lab.Time) {
	low, high := time.Duration(between[0])-stamp-c.grain, time.Duration(between[1])-stamp
	if c.known {
		slack := drift(between[1].Sub(c.since))
		low, high = max(low, c.low-slack), min(high, c.high+slack)
		if low > high { // a clock was set: begin anew
			low, high = time.Duration(between[0])-stamp-c.grain, time.Duration(between[1])-stamp
		}
	}
	*c = clocks{low, high, between[1], true, c.grain}
}

// interval is when an event with this stamp happened, as far as is known.
func (c *clocks) interval(stamp time.Duration, between [2]lab.Time) (earliest, latest lab.Time) {
	if !c.known {
		return between[0], between[1]
	}
	// The kernel's stamp is cut to microseconds, or more.
	return max(between[0], lab.Time(stamp+c.low)), min(between[1], lab.Time(stamp+c.high)+lab.Time(max(c.grain, time.Microsecond)))
}
