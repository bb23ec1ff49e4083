package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// TestLinkInWords: rates, times and queues are shown in the units that people use.
func TestLinkInWords(t *testing.T) {
	l := lab.Link{
		Name: "cable", BackEnd: "packet", RTT: 28 * time.Millisecond, Down: 5e6, Up: -1, Loss: 0.015, Burst: 3,
		Jitter: 2500 * time.Microsecond, Seed: 7,
		Queue: lab.LinkQueue{Packets: 1000, Discipline: "codel"},
		Extra: map[string]time.Duration{"b.test": time.Second, "a.test": 20 * time.Millisecond},
		Stall: &lab.LinkStall{For: 100 * time.Millisecond, To: 2 * time.Second},
		Changes: []lab.LinkChange{{At: 1500 * time.Millisecond,
			Profile: lab.Link{DownTrace: &lab.LinkTrace{Name: "lte.trace", Period: time.Minute}}}},
	}
	want := rows{
		{"Name", "cable"}, {"Emulated", "packet by packet"}, {"Round-trip time", "28 ms"}, {"Down", "5 Mbit/s"}, {"Up", "blocked"},
		{"Queue", "1\u202f000 packets, CoDel"}, {"Loss", "1.5 %, in runs of 3 packets"}, {"Jitter", "± 2.5 ms"},
		{"More to a.test", "20 ms"}, {"More to b.test", "1 s"}, {"Stall on purpose", "100 ms, beginning 0 ms to 2 s after the start"},
		{"Seed of the link", "7"}, {"After 1.5 s", "Round-trip time 0 ms, Down trace lte.trace, which repeats after 60 s, Up unlimited"},
	}
	if d := cmp.Diff(want, linkRows(l)); d != "" {
		t.Errorf("linkRows() (-want +got):\n%s", d)
	}
	for bits, want := range map[int64]string{1: "1 bit/s", 400_000: "400 kbit/s", 1_638_400: "1.6384 Mbit/s", 2e9: "2 Gbit/s"} {
		if got := capacity(bits, nil); got != want {
			t.Errorf("capacity(%d) = %q, want %q", bits, got, want)
		}
	}
}

// TestTablesAreForPeople: no table shows a raw key or a Go map.
func TestTablesAreForPeople(t *testing.T) {
	run := reporttest.Compared(1, 6, 100)
	run.Plan.Treatment.Archive = "/data/archives/next.wacz"
	awake := true
	run.Environment.KeptAwake = &awake
	var all []string
	for _, g := range groupsOf(run) {
		for _, p := range g.Rows {
			all = append(all, p.Name+": "+p.Value)
			if strings.Contains(p.Value, "map[") || strings.ContainsRune(p.Name, '_') && !strings.HasPrefix(p.Name, "net.") {
				t.Errorf("%s: row %q has the value %q", g.Name, p.Name, p.Value)
			}
		}
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{
		"Down: 9 Mbit/s", "Link of the treatment: 3g", "Recording of the treatment: next.wacz", "Recording: made for this run",
		"A load has ended after: 1.5 s of stillness", "Processors kept awake: yes", "Congestion control: cubic", "Memory: 8.59 GB",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the tables lack %q:\n%s", want, text)
		}
	}
	if raw := rawOf(run); !strings.Contains(raw, `"down_bits_per_second": 9000000`) {
		t.Errorf("the raw record lacks the rate: %s", raw)
	}
}
