package link

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/rigs/testlab"
)

func TestParse(t *testing.T) {
	lte := Profile{Name: "lte", RTT: 70 * time.Millisecond, Down: 12e6, Up: 12e6}
	slow := lte
	slow.RTT = 400 * time.Millisecond
	dead := slow
	dead.Down = Blocked
	withChanges := lte
	withChanges.Changes = []Change{{5 * time.Second, slow}, {8 * time.Second, dead}}
	for s, want := range map[string]Profile{
		"native": {Name: "native"},
		"lte":    lte,
		"LTE":    lte,
		"3gfast": {Name: "3gfast", RTT: 150 * time.Millisecond, Down: 1.6e6, Up: 768e3},
		"rtt=150ms,down=1.6mbit,up=768kbit": {
			Name: "custom", RTT: 150 * time.Millisecond, Down: 1.6e6, Up: 768e3,
		},
		"cable, loss=1%, burst=3, queue=100p, aqm=codel, seed=7": {
			Name: "cable", RTT: 28 * time.Millisecond, Down: 5e6, Up: 1e6,
			Loss: 0.01, Burst: 3, Queue: Queue{Packets: 100, Discipline: CoDel}, Seed: 7,
		},
		"rtt=20ms,rtt@API.example=+80ms,jitter=2ms,reorder=yes,mtu=1400,up=1mbit,queue=64kB": {
			Name: "custom", RTT: 20 * time.Millisecond, Extra: map[string]time.Duration{"api.example": 80 * time.Millisecond},
			Jitter: 2 * time.Millisecond, Reorder: true, MTU: 1400, Up: 1e6, Queue: Queue{Bytes: 64000},
		},
		"down=0,queue=200ms":              {Name: "custom", Down: Blocked, Queue: Queue{Time: 200 * time.Millisecond}},
		"lte,down=unlimited":              {Name: "lte", RTT: 70 * time.Millisecond, Up: 12e6},
		"lte; 5s: rtt=400ms; 8s: down=0;": withChanges,
		"loss=100%":                       {Name: "custom", Loss: 1},
		"loss=0,burst=4,reorder=no":       {Name: "custom", Burst: 4},
		"burst=4,queue=10p; 1s: loss=1%,down=1mbit": {Name: "custom", Burst: 4, Queue: Queue{Packets: 10}, Changes: []Change{
			{time.Second, Profile{Name: "custom", Burst: 4, Queue: Queue{Packets: 10}, Loss: 0.01, Down: 1e6}},
		}},
		"stall=1ms@1s,queue=10p": {Name: "custom", Stall: &Stall{time.Millisecond, time.Second, time.Second}, Queue: Queue{Packets: 10}},
		"seed=0xff":              {Name: "custom", Seed: 255},
		"seed=0":                 {Name: "custom"},
		"rtt@a_b.Test.=1ms,rtt@2001:DB8::0=2ms": {Name: "custom", Extra: map[string]time.Duration{
			"a_b.test": time.Millisecond, "2001:db8::": 2 * time.Millisecond,
		}},
		"up=2.5Mbps":                       {Name: "custom", Up: 2.5e6},
		"RTT=150 ms, Up = 2.5 Mbit/s":      {Name: "custom", RTT: 150 * time.Millisecond, Up: 2.5e6},
		"lte,rtt=70ms,down=12mbit,seed=0x": {},
	} {
		got, err := Parse(s)
		if want.Name == "" {
			if err == nil {
				t.Errorf("%s: no error", s)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", s, d)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for s, says := range map[string]string{
		"5g":                            "known are native, cable, dsl, fios, lte, 4g, 3gfast, 3g, 3gslow, 2g, edge, dial",
		"":                              "settings look like rtt=150ms",
		"lte,fast":                      "is not a setting",
		"rtt=150":                       "150ms",
		"rtt=-1ms":                      "duration",
		"rtt=2h":                        "1m0s",
		"down=5":                        "no unit",
		"down=5MB/s":                    "counts bytes",
		"down=1e300mbit":                "not a rate",
		"down=NaN":                      "not a rate",
		"loss=150%":                     "share",
		"loss=NaN":                      "share",
		"lte, loss = 1.0":               "1% or 100%",
		"colour=red":                    "known are rtt",
		"aqm=red":                       "droptail, codel",
		"mtu=20":                        "576",
		"queue=0p":                      "100p",
		"lte; rtt=1ms":                  "has no time",
		"lte; 5s: 6g":                   "known are",
		"lte; 5s: rtt=1ms; 2s: rtt=2ms": "follows one at 5s",
		"rtt@=5ms":                      "needs a host",
		"rtt@a.test:443=5ms":            "is no host",
		"rtt@https://a.test/=5ms":       "is no host",
		"rtt@*.a.test=5ms":              "is no host",
		"rtt@[2001:db8::1]=5ms":         "is no host",
		"rtt@bücher.example=5ms":        "xn--",
		"down=1.6MBps":                  "counts bytes",
		"up=200kBps":                    "counts bytes",
		"up=200kB/s":                    "counts bytes",
		"queue=1.5p":                    "100p",
		"seed=010":                      "the 0 before it",
		"rtt=150ms, RTT=20ms":           "rtt is set twice",
		"rtt=20ms,burst=4":              "loss=1%,burst=4",
		"lte; 5s: burst=4":              "burst alone",
		"lte,reorder=yes":               "jitter=5ms,reorder=yes",
		"rtt=20ms,queue=10p":            "queue alone",
		"native; 5s: aqm=codel":         "aqm alone",
	} {
		_, err := Parse(s)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want one that says %q", s, err, says)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"lte", "rtt=150ms,down=1.6mbit", "lte; 5s: rtt=400ms", "down=0x1p-2mbit", "queue=1e400B"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		defer testlab.Input(t)()
		p, err := Parse(s)
		if err != nil {
			return
		}
		if p.Name == "" || p.RTT < 0 || p.Down < Blocked || p.Up < Blocked || !(p.Loss >= 0 && p.Loss <= 1) {
			t.Errorf("%q gives %+v", s, p)
		}
	})
}

func TestNamedProfilesParse(t *testing.T) {
	if len(Names()) != 12 {
		t.Errorf("%d named profiles, want 12", len(Names()))
	}
	for _, name := range Names() {
		if p, err := Parse(name); err != nil || p.Name != name {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

func TestReadTrace(t *testing.T) {
	tr, err := ReadTrace("x", strings.NewReader("1\n1\n5\n\n10\n"))
	if err != nil {
		t.Fatal(err)
	}
	if tr.Period != 10*time.Millisecond || len(tr.At) != 4 {
		t.Errorf("trace %+v, want 4 opportunities in 10 ms", tr)
	}
	if got, want := tr.Rate(), Rate(4*TracePacket*8*100); got != want {
		t.Errorf("rate %d, want %d", got, want)
	}
	for text, says := range map[string]string{
		"":                    "greater than 0 ms",
		"0\n":                 "greater than 0 ms",
		"5\n3\n":              "x:2:",
		"5\nabc\n":            "x:2:",
		"-1\n":                "x:1:",
		"99999999999999999\n": "x:1:",
		"1000000\n2000000\n":  "are the times in milliseconds?",
		"1\r2\r3\r":           "mahimahi's format",
	} {
		if _, err := ReadTrace("x", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want one that says %q", text, err, says)
		}
	}
}
