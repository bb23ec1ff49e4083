package automation

import (
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	out, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		name, every, cron, zone string
		from                    string
		want                    []string
	}{
		{"every two hours from when it was made", "2h", "", "", "2026-03-01T09:10:30Z", []string{"2026-03-01T11:10:30Z", "2026-03-01T13:10:30Z"}},
		{"every day", "1d", "", "", "2026-03-01T09:10:30Z", []string{"2026-03-02T09:10:30Z"}},
		{"weekdays", "", "30 2 * * 1-5", "", "2026-03-06T02:30:00Z", []string{"2026-03-09T02:30:00Z", "2026-03-10T02:30:00Z"}},
		{"in a zone", "", "30 2 * * *", "Europe/Berlin", "2026-01-10T12:00:00Z", []string{"2026-01-11T01:30:00Z"}},
		{"a leap day", "", "0 0 29 2 *", "", "2026-01-10T12:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		// The clocks go from 02:00 to 03:00 on 29 March, and from 03:00 back to 02:00 on 25 October.
		{"skipped by the clocks: after the gap", "", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"}},
		{"skipped west of Greenwich, too", "", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z",
			[]string{"2026-03-08T07:30:00Z", "2026-03-09T06:30:00Z"}},
		{"shown twice: once", "", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"}},
		{"shown twice, west", "", "30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", []string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		{"every hour goes on evenly over the gap", "", "0 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"}},
		{"and over the hour that is shown twice", "", "0 */1 * * *", "Europe/Berlin", "2026-10-24T23:00:00Z",
			[]string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
		{"midnight that the clocks skip", "", "0 0 * * *", "America/Havana", "2026-03-07T12:00:00Z",
			[]string{"2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"}},
		{"a gap of half an hour", "", "15 2 * * *", "Australia/Lord_Howe", "2026-10-02T20:00:00Z",
			[]string{"2026-10-03T15:45:00Z", "2026-10-04T15:15:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := at(t, c.from)
			times, err := ParseTimes(c.every, c.cron, c.zone, from)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				next := times.Next(from)
				if !next.Equal(at(t, want)) {
					t.Fatalf("Next(%s) = %s; want %s", from.Format(time.RFC3339), next.Format(time.RFC3339), want)
				}
				from = next
			}
		})
	}
}

func TestLatest(t *testing.T) {
	first := at(t, "2026-03-01T02:30:00Z")
	for _, c := range []struct {
		every, cron, now, due string
		missed                int
	}{
		{"2h", "", "2026-03-01T02:30:00Z", "2026-03-01T02:30:00Z", 0},
		{"2h", "", "2026-03-02T03:00:00Z", "2026-03-02T02:30:00Z", 12},
		{"", "30 2 * * *", "2026-03-08T03:00:00Z", "2026-03-08T02:30:00Z", 7},
		{"", "* * * * *", "2036-03-08T03:00:00Z", "2026-03-04T13:50:00Z", mostMissed}, // counts no further
	} {
		times, err := ParseTimes(c.every, c.cron, "", first)
		if err != nil {
			t.Fatal(err)
		}
		due, missed := times.Latest(first, at(t, c.now))
		if !due.Equal(at(t, c.due)) || missed != c.missed {
			t.Errorf("Latest(%s) of %q = %s, %d; want %s, %d", c.now, c.every+c.cron, due.Format(time.RFC3339), missed, c.due, c.missed)
		}
	}
}

func TestTimesRefuse(t *testing.T) {
	for _, c := range []struct{ every, cron, zone, want string }{
		{"", "", "", "say when"}, {"2h", "* * * * *", "", "not both"}, {"2h", "", "UTC", "zone goes with cron"},
		{"30s", "", "", "1m to 31d"}, {"32d", "", "", "1m to 31d"}, {"2 hours", "", "", "1m to 31d"}, {"-2h", "", "", "1m to 31d"},
		{"90.5s", "", "", "whole seconds"}, {"99999999999d", "", "", "1m to 31d"}, {"-99999d", "", "", "1m to 31d"},
		{"", "* * * *", "", "cron: expected exactly 5 fields"}, {"", "61 * * * *", "", "cron: "}, {"", "@daily", "", "not five fields"},
		{"", "TZ=UTC", "", "not five fields"}, {"", "0 0 30 2 *", "", "never comes"}, {"", strings.Repeat("1,", 200) + "1 * * * *", "", "not five fields"},
		{"", "* * * * *", "Mars/Olympus", "zone: "}, {"", "* * * * *", "../../etc/passwd", "zone: "}, {"", "* * * * *", "Local", "zone: "},
	} {
		if _, err := ParseTimes(c.every, c.cron, c.zone, time.Unix(0, 0)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("ParseTimes(%q, %q, %q) = %v; want %q", c.every, c.cron, c.zone, err, c.want)
		}
	}
}

// FuzzTimes: whatever is accepted comes again and again, each time later.
func FuzzTimes(f *testing.F) {
	f.Add("2h", "", "", int64(1_800_000_000))
	f.Add("", "30 2 * * 1-5", "Europe/Berlin", int64(1_774_700_000))
	f.Add("", "*/7 1,2 * * *", "America/New_York", int64(1_772_900_000))
	f.Add("", "0 0 29 2 *", "America/Havana", int64(1_772_900_000))
	f.Add("", "59 23 31 12 0", "Pacific/Apia", int64(1_325_200_000))
	f.Add("", "15 2 * * *", "Australia/Lord_Howe", int64(1_790_900_000))
	f.Fuzz(func(t *testing.T, every, expression, zone string, seconds int64) {
		defer testlab.Input(t)()
		from := time.Unix(seconds%(1<<33), 0)
		times, err := ParseTimes(every, expression, zone, from)
		if err != nil {
			return
		}
		for range 5 {
			next := times.Next(from)
			if next.IsZero() {
				return
			}
			if !next.After(from) {
				t.Fatalf("%q %q in %q: Next(%s) = %s; want a later time", every, expression, zone, from, next)
			}
			from = next
		}
	})
}
