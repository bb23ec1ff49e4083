package main

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/rigs/storytest"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/slowclients"
	"eidetic/netlab/nstest"
)

// A run is filmed while strangers hold two thousand connections of every slow kind, and new ones
// take the place of those that the panel ends: no frame is lost for it.
func TestFilmBesideStrangers(t *testing.T) {
	testlab.Long(t, "a flood of two thousand connections")
	needLab(t)
	if !nstest.Inside(t) {
		return
	}
	v := newVillage(t)
	const first, addresses, each, most = 100, 8, 250, 3
	strangers := make([]netip.Addr, addresses)
	for i := range strangers {
		strangers[i] = netip.AddrFrom4([4]byte{203, 0, 113, byte(first + i)})
		v.site.Address(t, "eth0", strangers[i].String()+"/24")
	}
	id := v.panel.Start(t, map[string]any{"page": samplesite.Home, "device": "virtual", "trials": 1})
	v.panel.Follow(t, id, 3*testlab.Hang, func(p storytest.Progress) bool { return p.Trial == 1 })
	var open sync.Map
	defer slowclients.Close(&open)
	var attack sync.WaitGroup
	var opened atomic.Int64
	over := make(chan struct{})
	for _, from := range strangers {
		attack.Go(func() {
			for range most {
				err := v.site.Do(func() error {
					return slowclients.Open(t.Context(), from, netip.MustParseAddrPort(boxAddress+":8080"), each, &open)
				})
				if err != nil {
					t.Error(err)
					return
				}
				opened.Add(each)
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	v.panel.Follow(t, id, 3*testlab.Hang, nil)
	close(over)
	attack.Wait()
	run := v.panel.Run(t, id)
	if len(run.Trials) == 0 {
		t.Fatalf("the run beside the attack is %s with no trial: %s", run.State, run.Error)
	}
	for _, trial := range run.Trials {
		t.Logf("trial %d beside %d hostile connections: %d frames, %d lost, valid %v %q",
			trial.Number, opened.Load(), trial.Frames, trial.FramesLost, trial.Valid, trial.Invalid)
		if trial.Ended != lab.EndStable && !slowed(trial) || trial.Misses != 0 {
			t.Errorf("trial %d ended by %s with %d misses", trial.Number, trial.Ended, trial.Misses)
		}
	}
}
