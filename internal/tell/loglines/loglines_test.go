package loglines

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// at is 27 November 2026, 09:22:11.25 UTC.
var at = time.Date(2026, 11, 27, 9, 22, 11, 250e6, time.UTC) // constant

// lines are of each format, as the programs write them.
var lines = []struct { // constant
	format, line string
	want         time.Time
	grain        time.Duration
	text         string
}{
	{"rfc3339", "2026-11-27T09:22:11.250Z INFO cart loaded", at, time.Millisecond, "INFO cart loaded"},
	{"rfc3339", "2026-11-27T10:22:11.250000+01:00 cart loaded", at, time.Microsecond, "cart loaded"},
	{"rfc3339", "[2026-11-27 10:22:11,250] cart loaded", at, time.Millisecond, "cart loaded"}, // the zone of the options
	{"epoch", "1795771331.250 cart loaded", at, time.Millisecond, "cart loaded"},
	{"epoch", "1795771331250 cart loaded", at, time.Millisecond, "cart loaded"},
	{"epoch", "[1795771331] cart loaded", at.Truncate(time.Second), time.Second, "cart loaded"},
	{"syslog", "<34>Nov 27 10:22:11 shop app[12]: cart loaded", at.Truncate(time.Second), time.Second, "app[12]: cart loaded"},
	{"logcat", "11-27 10:22:11.250  1203  1217 I Cart    : loaded", at, time.Millisecond, "Cart    : loaded"},
	{"nginx", `192.0.2.7 - - [27/Nov/2026:09:22:11 +0000] "GET /cart HTTP/1.1" 200 12`, at.Truncate(time.Second), time.Second, `"GET /cart HTTP/1.1" 200 12`},
	{"nginx-error", "2026/11/27 10:22:11 [error] 7#7: *1 open() failed", at.Truncate(time.Second), time.Second, "[error] 7#7: *1 open() failed"},
	{"console", `[4711:4711:1127/102211.250000:INFO:CONSOLE(3)] "loaded", source: https://shop.example/ (3)`, at, time.Microsecond,
		`"loaded", source: https://shop.example/ (3)`},
	{"journald", `{"__REALTIME_TIMESTAMP":"1795771331250000","__MONOTONIC_TIMESTAMP":"77","MESSAGE":"cart loaded","SYSLOG_IDENTIFIER":"app"}`, at, time.Microsecond,
		"app: cart loaded"},
	{"journald", `{"__REALTIME_TIMESTAMP":"1795771339999999","_SOURCE_REALTIME_TIMESTAMP":"1795771331250000","MESSAGE":[99,97,255]}`, at, time.Microsecond, "ca\xff"},
	{"rfc3339", "\x1b[2m2026-11-27T09:22:11.250Z\x1b[0m \x1b[32m INFO\x1b[0m cart", at, time.Millisecond, "INFO cart"}, // Rust's tracing
	{"rfc3339", "2026-11-27 09:22:11.250 UTC [7] LOG:  cart", at, time.Millisecond, "[7] LOG:  cart"},                  // PostgreSQL
	{"rfc3339", "2026-11-27\t09:22:11.250Z\tcart", at, time.Millisecond, "cart"},
	{"rfc3339", "Fri 2026-11-27 10:22:11 CET shop app: cart", at.Truncate(time.Second), time.Second, "shop app: cart"},
	{"rfc3339", "2026-11-27 01:22:11.250 PST [7] LOG:  cart", at, time.Millisecond, "[7] LOG:  cart"},
	{"rfc3339", "2026-11-27 10:22:11.250 WARN cart", at, time.Millisecond, "WARN cart"},
	{"epoch", "       1795771331.250  1203  1217 I Cart: loaded", at, time.Millisecond, "1203  1217 I Cart: loaded"}, // logcat -v epoch
	{"epoch", "1795771331250000000 cart", at, time.Nanosecond, "cart"},
	{"epoch", "1795771331250000 cart", at, time.Microsecond, "cart"},
	{"syslog", "<34>1 2026-11-27T09:22:11.250Z shop app 12 ID7 - \ufeffcart", at, time.Millisecond, "app[12]: cart"},
	{"syslog", `<34>1 2026-11-27T10:22:11.250+01:00 shop app - - [a b="c"] cart`, at, time.Millisecond, `app: [a b="c"] cart`},
	{"logcat", "11-27 10:22:11.250 D/Cart( 123): loaded", at, time.Millisecond, "Cart( 123): loaded"},
	{"logcat", "11-27 09:22:11.250 +0000  1203  1217 I Cart: loaded", at, time.Millisecond, "Cart: loaded"},
	{"nginx", `192.0.2.7 - - [2026-11-27T10:22:11+01:00] "GET /cart"`, at.Truncate(time.Second), time.Second, `"GET /cart"`},
	{"nginx", `192.0.2.7:50 http [27/Nov/2026:10:22:11.250] front back`, at, time.Millisecond, "front back"},   // HAProxy
	{"nginx-error", "2026/11/27 10:22:11.250000 cart.go:3: loaded", at, time.Microsecond, "cart.go:3: loaded"}, // Go
	{"console", "[1127/102211.250:ERROR:cart.cc(3)] loaded", at, time.Millisecond, "loaded"},
	{"ctime", "[Fri Nov 27 10:22:11.250000 2026] [core:error] [pid 7] cart", at, time.Microsecond, "[core:error] [pid 7] cart"}, // Apache
	{"ctime", "Fri Nov 27 09:22:11 UTC 2026: cart", at.Truncate(time.Second), time.Second, "cart"},                              // date
	{"ctime", "Fri Nov 27 18:22:11 JST 2026: cart", at.Truncate(time.Second), time.Second, "cart"},
	{"glog", "I1127 10:22:11.250000       7 cart.go:3] loaded", at, time.Microsecond, "cart.go:3] loaded"},
	{"json", `{"level":30,"time":1795771331250,"pid":7,"msg":"cart"}`, at, time.Millisecond, "cart"},                   // pino
	{"json", `{"level":"info","ts":1795771331.25,"msg":"cart"}`, at, 10 * time.Millisecond, "cart"},                    // zap
	{"json", `{"log":"cart\n","stream":"stdout","time":"2026-11-27T09:22:11.25Z"}`, at, 10 * time.Millisecond, "cart"}, // Docker
	{"json", `{"@timestamp":"2026-11-27T10:22:11.250+0100","message":"cart","event":{"x":1}}`, at, time.Millisecond, "cart"},
	{"json", `{"timestamp":1.79577133125e9,"short_message":"cart"}`, at, 10 * time.Millisecond, "cart"},
	{"logfmt", `time=2026-11-27T09:22:11.250Z level=info msg="cart \"a\" loaded"`, at, time.Millisecond, `cart "a" loaded`},
	{"logfmt", `level=info ts=1795771331.250 msg=cart`, at, time.Millisecond, "cart"},
	{"dated", "[27-Nov-2026 09:22:11 UTC] PHP Notice:  cart", at.Truncate(time.Second), time.Second, "PHP Notice:  cart"},
	{"dated", "[27-Nov-2026 04:22:11 America/New_York] cart", at.Truncate(time.Second), time.Second, "cart"},
	{"dated", "27 Nov 2026 10:22:11.250 * cart", at, time.Millisecond, "* cart"},
	{"dated", "27.11.2026 10:22:11,250 cart", at, time.Millisecond, "cart"},
	{"dated", "Fri, 27 Nov 2026 04:22:11 -0500 cart", at.Truncate(time.Second), time.Second, "cart"},
	{"dated", "Nov 27, 2026 10:22:11 AM shop.Cart load", at.Truncate(time.Second), time.Second, "shop.Cart load"}, // java.util.logging
	{"dated", "20261127T092211.250Z cart", at, time.Millisecond, "cart"},
	{"prefixed", "web-1  | 2026-11-27T09:22:11.250Z cart", at, time.Millisecond, "web-1 cart"},                                // Docker Compose
	{"prefixed", "W, [2026-11-27T10:22:11.250 #7]  WARN: cart", at, time.Millisecond, "W #7]  WARN: cart"},                    // Ruby
	{"prefixed", "12:S 27 Nov 2026 10:22:11.250 # cart", at, time.Millisecond, "12:S # cart"},                                 // Redis
	{"prefixed", "[warn] [2026/11/27 10:22:11] cart", at.Truncate(time.Second), time.Second, "[warn] cart"},                   // Fluent Bit
	{"rfc3339", "2026-11-27 09:22:11.250 UTC,\"shop\",cart", at, time.Millisecond, "\"shop\",cart"},                           // PostgreSQL's CSV
	{"rfc3339", "\"2026-11-27T10:22:11.250+01\",cart", at, time.Millisecond, "cart"},                                          // an hour's zone
	{"rfc3339", "2026-11-27_09:22:11.250Z cart", at, time.Millisecond, "cart"},                                                // svlogd
	{"json", `{"t":{"$date":"2026-11-27T10:22:11.250+01:00"},"s":"I","msg":"cart"}`, at, time.Millisecond, "cart"},            // MongoDB
	{"json", `{"LogLevel":"Debug","Message":"cart","Timestamp":"2026-11-27T09:22:11.250Z"}`, at, time.Millisecond, "cart"},    // .NET
	{"json", `{"instant":{"epochSecond":1795771331,"nanoOfSecond":250000000},"message":"cart"}`, at, time.Nanosecond, "cart"}, // log4j
	{"json", `{"timestamp":{"seconds":1795771331,"nanos":250000000},"message":"cart"}`, at, time.Nanosecond, "cart"},
	{"json", `{"timestamp":"2026-11-27 10:22:11.250000+0100","eventMessage":"cart"}`, at, time.Microsecond, "cart"},                   // macOS and iOS
	{"json", `{"time_local":"27/Nov/2026:04:22:11 -0500","request":"GET /cart"}`, at.Truncate(time.Second), time.Second, "GET /cart"}, // nginx
	{"clock", "10:22:11.250 [main] cart", at, time.Millisecond, "[main] cart"},
	{"monotonic", "<6>[12345.678901] usb 1-1: new device", time.Time{}, time.Microsecond, "usb 1-1: new device"}, // dmesg -r
	{"monotonic", "[12345.678901] usb 1-1: new device", time.Time{}, time.Microsecond, "usb 1-1: new device"},
}

func options(format string) Options {
	o := Options{Format: format, Near: at.AddDate(0, 1, 10), Zone: time.FixedZone("", 3600)} // in the next year
	if format == "clock" {
		o.Near = at.Add(11 * time.Hour) // on the same day or not
	}
	return o
}

// TestFormats: each stamp is read, also where the format is not said; a line without one is counted.
func TestFormats(t *testing.T) {
	for _, tt := range lines {
		for _, format := range []string{tt.format, ""} {
			if tt.format == "clock" && format == "" {
				continue // its date is that of the options
			}
			var got []Entry
			left, err := Read(strings.NewReader("no stamp\n"+tt.line+"\r\n\n"), options(format), func(e Entry) error { got = append(got, e); return nil })
			if err != nil || left != 1 || len(got) != 1 {
				t.Errorf("%s as %q: %d entries, %d left, %v; want 1, 1, nil", tt.line, format, len(got), left, err)
				continue
			}
			if !got[0].At.Equal(tt.want) || got[0].Grain != tt.grain || got[0].Text != tt.text {
				t.Errorf("%s as %q = %v + %v, %q; want %v + %v, %q", tt.line, format, got[0].At, got[0].Grain, got[0].Text, tt.want, tt.grain, tt.text)
			}
		}
	}
	if _, err := Read(strings.NewReader("x"), options("csv"), nil); err == nil || !strings.Contains(err.Error(), "choose from journald") {
		t.Errorf("an unknown format: %v", err)
	}
	long := "1795771331.250 " + strings.Repeat("x", 3*maxLine) + "\n1795771331.250 next\n"
	n := 0
	if left, err := Read(strings.NewReader(long), options(""), func(e Entry) error { n += len(e.Text); return nil }); err != nil || left != 0 || n > maxLine || n < maxLine-100 {
		t.Errorf("a long line and the next have %d bytes, %d left, %v", n, left, err)
	}
}

// TestEncodings: a log that Windows wrote is read; one that is no text says so; a time of the day is no stamp of a line
// where others have dates.
func TestEncodings(t *testing.T) {
	plain := "2026-11-27T09:22:11.250Z one\r\n  10:22:12 elapsed\ncart of 2026-11-27T09:22:12Z\n2026-11-27T09:22:11.250Z two\n"
	for name, e := range map[string]encoding.Encoding{
		"little endian": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "big endian": unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
		"without a mark": unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "UTF-8": unicode.UTF8BOM,
	} {
		text, err := e.NewEncoder().String(plain)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		left, err := Read(strings.NewReader(text), options(""), func(e Entry) error { got = append(got, e.Text); return nil })
		if diff := cmp.Diff([]string{"one", "two"}, got); err != nil || left != 2 || diff != "" {
			t.Errorf("%s: %d left, %v; want 2, nil (-want +got):\n%s", name, left, err, diff)
		}
	}
	for text, want := range map[string]string{"\x1f\x8b\x08\x00": "gunzip", "LPKSHHRH....": "journalctl", "\x28\xb5\x2f\xfd..": "zstd -d"} {
		if _, err := Read(strings.NewReader(text), options(""), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Read(%q) = %v; want an error that says %s", text, err, want)
		}
	}
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// TestEndless: a log that has no end is refused at the bound that docs/timeline.md has, with little memory.
func TestEndless(t *testing.T) {
	testlab.Bounded(t, 1<<20, func() {
		_, err := Read(endless{}, options(""), nil)
		if want := "it has more than 1 GiB"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Read() of an endless log = %v, want an error that says %q", err, want)
		}
	})
	left, err := Read(io.LimitReader(endless{}, maxBytes), options(""), nil)
	if err != nil || left != 1 {
		t.Errorf("Read() of a log of 1 GiB = %d left, %v; want 1, nil", left, err)
	}
}

// TestClock: an entry is where the pairs around it say, no closer than grain and drift let it be known.
func TestClock(t *testing.T) {
	pair := func(s int, offset lab.Time) Pair { // the box is ahead by an offset, known within 2 ms
		log := at.Add(time.Duration(s) * time.Second)
		box := lab.Time(log.UnixNano()) + offset
		return Pair{Log: log, Grain: time.Millisecond, Earliest: box, Latest: box + 2e6}
	}
	entry := func(s int) Entry {
		return Entry{At: at.Add(time.Duration(s) * time.Second), Grain: time.Millisecond, Monotonic: -1}
	}
	for name, tt := range map[string]struct {
		pairs     []Pair
		at        int
		low, high lab.Time // of the offset
	}{
		"at a pair":           {[]Pair{pair(0, 5e9)}, 0, 5e9 - 1e6, 5e9 + 3e6},
		"ten seconds after":   {[]Pair{pair(0, 5e9)}, 10, 5e9 - 2e6, 5e9 + 4e6},
		"between, no drift":   {[]Pair{pair(100, 5e9), pair(0, 5e9)}, 50, 5e9 - 6e6, 5e9 + 8e6},
		"a second pair helps": {[]Pair{pair(0, 5e9), pair(1, 5e9+1e6)}, 1, 5e9, 5e9 + 3100e3},
		"it was set":          {[]Pair{pair(0, 5e9), pair(10, 9e9)}, 5, 5e9 - 1500e3, 9e9 + 3500e3},
	} {
		low, high, err := NewClock(tt.pairs, false).At(entry(tt.at))
		base := lab.Time(entry(tt.at).At.UnixNano())
		if err != nil || low-base != tt.low || high-base != tt.high {
			t.Errorf("%s: the offset is in %v … %v, %v; want %v … %v", name, low-base, high-base, err, tt.low, tt.high)
		}
	}
	if _, _, err := NewClock(nil, true).At(entry(0)); !errors.Is(err, ErrNoClock) {
		t.Errorf("without a pair: %v", err)
	}
	own := Entry{Monotonic: 7 * time.Second, Grain: time.Microsecond}
	if low, high, err := NewClock(nil, true).At(own); low != 7e9 || high != 7e9+1e3 || err != nil {
		t.Errorf("this machine's monotonic clock: %v … %v, %v", low, high, err)
	}
	if _, _, err := NewClock([]Pair{pair(0, 1)}, false).At(own); !errors.Is(err, ErrNoClock) {
		t.Errorf("another machine's monotonic clock: %v", err)
	}
}

const rules = `
- match: 'healthz'
  as: skip
- match: 'GET (?P<path>\S+) took (\S+) ms'
  as: span
  text: GET ${path}
  ms: $2
  group: api
  colour: "#008000"
- match: '^begin (.*)'
  as: begin
  text: $1
`

// TestRules: the first rule that matches counts; without one a line is a mark.
func TestRules(t *testing.T) {
	r, err := NewRules([]byte(rules), "shop.log")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]lab.Annotation{
		"GET /healthz took 3 ms": {},
		"GET /cart took 250 ms":  {Op: "span", Text: "GET /cart", Group: "api", Colour: "#008000", Lasts: 250e6, Earliest: 750e6, Latest: 760e6},
		"GET /cart took long ms": {Op: "mark", Text: "GET /cart", Group: "api", Colour: "#008000", Earliest: 1e9, Latest: 1010e6},
		"begin the day":          {Op: "begin", Text: "the day", Group: "shop.log", Earliest: 1e9, Latest: 1010e6},
		"other\x1b[31m":          {Op: "mark", Text: "other [31m", Group: "shop.log", Earliest: 1e9, Latest: 1010e6},
	} {
		if want.Op != "" {
			want.Source = "log"
		}
		got, ok := r.Annotation(Entry{Text: text}, 1e9, 1010e6)
		if diff := cmp.Diff(want, got); ok != (want.Op != "") || ok && diff != "" {
			t.Errorf("%q, %v (-want +got):\n%s", text, ok, diff)
		}
	}
	for text, says := range map[string]string{
		"- as: mark": "rule 1: match", "- {match: '(', as: mark}": "missing closing", "- {match: x, as: draw}": "choose from", "- {match: x, as: span}": "ms:",
		"- {match: x, color: red}": "color", "- {match: x, colour: red}": "#rrggbb", "- match: " + strings.Repeat("x", 3000): "at most 2000", "{": "",
	} {
		if _, err := NewRules([]byte(text), ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("NewRules(%.40q) = %v, want an error that says %q", text, err, says)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, tt := range lines {
		f.Add(tt.line)
	}
	r, err := NewRules([]byte(rules), "log")
	if err != nil {
		f.Fatal(err)
	}
	clock := NewClock([]Pair{{Log: at, Grain: time.Second, Earliest: 5e9, Latest: 6e9}}, true)
	f.Fuzz(func(t *testing.T, text string) {
		defer testlab.Input(t)()
		_, err := Read(strings.NewReader(text), options(""), func(e Entry) error {
			low, high, err := clock.At(e)
			if err != nil {
				return err
			}
			if high < low {
				t.Errorf("%q is in %d … %d", text, low, high)
			}
			if a, ok := r.Annotation(e, low, high); ok {
				if err := a.Check(); err != nil {
					t.Errorf("%q makes %+v: %v", text, a, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// TestSeveralZones: an abbreviation that means one offset here and another one there is read only as the zone that the
// person names.
func TestSeveralZones(t *testing.T) {
	for zone, want := range map[string]int{"Europe/Berlin": 2, "Asia/Shanghai": 0, "America/Chicago": 0} {
		o := options("")
		var err error
		if o.Zone, err = time.LoadLocation(zone); err != nil {
			t.Fatal(err)
		}
		var got []time.Time
		left, err := Read(strings.NewReader("2026-11-27 09:22:11 CST cart\nFri Nov 27 09:22:11 CST 2026: cart\n"), o, func(e Entry) error {
			got = append(got, e.At)
			return nil
		})
		if err != nil || left != want || len(got) != 2-want {
			t.Errorf("in %s: %d lines are left, of %v (%v); want %d", zone, left, got, err, want)
		}
		for _, at := range got {
			if local := at.In(o.Zone); local.Hour() != 9 {
				t.Errorf("in %s: the stamp is %v, want 9:22 there", zone, local)
			}
		}
	}
}
