package main

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eidetic/internal/base/slots"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/rigs/storytest"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/slowclients"
	"eidetic/netlab/nstest"
)

// A run is filmed while strangers hold connections of every slow kind, and come back whenever they are dropped: they
// are kept out, and no trial is disturbed without a word.
func TestFilmBesideStrangers(t *testing.T) {
	testlab.Long(t, "a flood of connections beside a film")
	needLab(t)
	if !nstest.Inside(t) {
		return
	}
	v := newVillage(t)
	const first, addresses, each = 100, 8, 8
	strangers := make([]netip.Addr, addresses)
	for i := range strangers {
		strangers[i] = netip.AddrFrom4([4]byte{203, 0, 113, byte(first + i)})
		v.site.Address(t, "eth0", strangers[i].String()+"/24")
	}
	id := v.panel.Start(t, map[string]any{"page": samplesite.Home, "device": "virtual", "trials": 3})
	v.panel.Follow(t, id, 3*testlab.Hang, func(p storytest.Progress) bool { return p.Trial == 1 })
	var attack sync.WaitGroup
	var count slowclients.Count
	var over atomic.Bool
	began := time.Now()
	for _, from := range strangers {
		for range each {
			attack.Go(func() {
				err := v.site.Do(func() error {
					slowclients.Return(t.Context(), from, netip.MustParseAddrPort(boxAddress+":8080"), &count, over.Load)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	v.panel.Follow(t, id, 3*testlab.Hang, nil)
	over.Store(true)
	attack.Wait()
	run := v.panel.Run(t, id)
	if len(run.Trials) == 0 {
		t.Fatalf("the run beside the attack is %s with no trial: %s", run.State, run.Error)
	}
	for _, trial := range run.Trials {
		if trial.Machine == nil {
			t.Errorf("trial %d does not say what the machine did besides", trial.Number)
			continue
		}
		t.Logf("trial %d: %d frames, %d lost, first change %v ms, the service took %v cores, %v connections a second came, valid %v %q",
			trial.Number, trial.Frames, trial.FramesLost, metric.FirstChange.In(trial), trial.Machine.Service,
			trial.Machine.Connections, trial.Valid, trial.Invalid)
		if trial.Ended != lab.EndStable && !slowed(trial) || trial.Misses != 0 {
			t.Errorf("trial %d ended by %s with %d misses", trial.Number, trial.Ended, trial.Misses)
		}
	}
	// So many may come at once, and some more in the time that the attack took; and each time that they may come again,
	// the kernel queues some before the service looks at them.
	const queue, times = 4096, 3
	limits := slots.DefaultLimits()
	most := float64(2*limits.Strangers) + time.Since(began).Seconds()*float64(limits.PerSecond) + queue*times
	if made := count.Made.Load(); float64(made) > most {
		t.Errorf("strangers made %d connections; want them kept out after %.0f", made, most)
	}
	t.Logf("%d connections of strangers, and %d that got no answer", count.Made.Load(), count.Silent.Load())
}
