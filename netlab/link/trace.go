package link

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// TracePacket is how many bytes one line of a trace can carry: mahimahi's
// PACKET_SIZE, a full Ethernet payload and 4 bytes.
const TracePacket = 1504

// maxTraceLines bounds a trace file: ten minutes at 120 Mbit/s.
const maxTraceLines = 6_000_000

// Trace is a capacity over time in mahimahi's format (Netravali et al.,
// USENIX ATC 2015): each line is a whole millisecond at which one packet of
// TracePacket bytes may leave, equal lines are several packets, and the file
// repeats with its last line as the period.
type Trace struct {
	Name string `json:"name"`
	// At holds the times of the opportunities since the start of a period, in order.
	At []time.Duration `json:"-"`
	// Period is the time of the last line, at least 1 ms.
	Period time.Duration `json:"period_ns"`
}

// Rate returns the trace's mean capacity.
func (t *Trace) Rate() Rate {
	return Rate(float64(len(t.At)) * TracePacket * 8 / t.Period.Seconds())
}

// Equal reports whether both are the same trace, by content.
func (t *Trace) Equal(o *Trace) bool {
	return t == o || t != nil && o != nil && t.Name == o.Name && t.Period == o.Period && slices.Equal(t.At, o.At)
}

// ReadTrace parses a trace; name is used in errors and reports.
func ReadTrace(name string, r io.Reader) (*Trace, error) {
	t := &Trace{Name: name}
	sc := bufio.NewScanner(transform.NewReader(r, unicode.BOMOverride(transform.Nop))) // as Windows' editors and shells write it
	line := 1
	for ; sc.Scan(); line++ {
		text := strings.TrimSpace(sc.Text())
		if text == "" {
			continue
		}
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ms < 0 || ms > int64(24*time.Hour/time.Millisecond) {
			return nil, fmt.Errorf("trace %s:%d: %.40q is not a time in whole milliseconds within a day%s", name, line, text, whatInstead(text))
		}
		at := time.Duration(ms) * time.Millisecond
		if at < t.Period {
			return nil, fmt.Errorf("trace %s:%d: %d ms is less than the line above; times must not decrease", name, line, ms)
		}
		if len(t.At) == maxTraceLines {
			return nil, fmt.Errorf("trace %s:%d: more than %d lines", name, line, maxTraceLines)
		}
		t.Period = at
		t.At = append(t.At, at)
	}
	if err := sc.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("trace %s:%d: the line is too long for a time in whole milliseconds", name, line)
	} else if err != nil {
		return nil, fmt.Errorf("trace %s: %w", name, err)
	}
	if t.Period == 0 {
		return nil, fmt.Errorf("trace %s: no line is greater than 0 ms, so the trace has no period", name)
	}
	if r := t.Rate(); r < minRate || r > maxRate {
		return nil, fmt.Errorf("trace %s: %d lines in %v are a mean of %d bit/s, and a rate is from %d to %d: are the times in milliseconds?",
			name, len(t.At), t.Period, r, minRate, maxRate)
	}
	return t, nil
}

// whatInstead says what to do about a line that is no time.
func whatInstead(text string) string {
	const format = ": each line of a trace is when one packet of 1504 bytes may leave (mahimahi's format)"
	switch {
	case strings.HasPrefix(text, "\x1f\x8b"):
		return ": it is compressed by gzip; decompress it (gunzip -k)"
	case strings.ContainsFunc(text, func(r rune) bool { return r == utf8.RuneError || r < ' ' && r != '\t' && r != '\r' }):
		return ": it is no text; 'appliance link trace record' makes a trace of captured packets"
	case len(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",; \t", r) })) > 1:
		return format + "; write rates over time as changes of a link instead (down=3mbit; 1s: down=0.5mbit)"
	}
	return format
}

// Write writes the trace in mahimahi's format.
func (t *Trace) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, at := range t.At {
		b.WriteString(strconv.FormatInt(at.Milliseconds(), 10))
		b.WriteByte('\n')
	}
	return b.Flush() // returns the first error of the writes above
}

// NewTrace makes a trace from the packets of a link that always had something to
// carry, given with their times in order and their sizes in bytes. Each
// TracePacket bytes are an opportunity, at the millisecond in which the last of
// them came; time counts from the first packet.
func NewTrace(name string, packets iter.Seq2[time.Duration, int]) (*Trace, error) {
	t := &Trace{Name: name}
	begin, last, bytes, first := time.Duration(0), time.Duration(0), 0, true
	for at, n := range packets {
		if first {
			begin, last, first = at, at, false
			continue // the first packet marks the start and has no rate
		}
		if at < last {
			return nil, fmt.Errorf("trace %s: a packet at %v follows one at %v; times must not decrease", name, at, last)
		}
		last = at
		for bytes += max(0, n); bytes >= TracePacket; bytes -= TracePacket {
			if len(t.At) == maxTraceLines {
				return nil, fmt.Errorf("trace %s: more than %d packets of %d bytes", name, maxTraceLines, TracePacket)
			}
			// The time is rounded up, because at a line's instant the packet has come.
			t.At = append(t.At, (at - begin + time.Millisecond - 1).Truncate(time.Millisecond))
		}
	}
	if len(t.At) == 0 || t.At[len(t.At)-1] == 0 {
		return nil, fmt.Errorf("trace %s: the packets are too few, or all came in one millisecond", name)
	}
	t.Period = t.At[len(t.At)-1]
	return t, nil
}
