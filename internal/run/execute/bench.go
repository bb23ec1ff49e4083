package execute

import (
	"context"
	"log/slog"
	"os"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/run/device"
	"eidetic/internal/run/experiment"
	"eidetic/netlab/archive"
	"eidetic/netlab/replay"
)

// NewRunner makes a runner for benchmarks, which carry out trials without a plan. The trials
// are the same as those of a plan, but no evidence of them is made.
func (r Rig) NewRunner(log *slog.Logger) *experiment.Runner {
	var link experiment.Link = emulated{r.Network}
	if r.Link != nil {
		link = r.Link
	}
	return &experiment.Runner{
		Link: link, Device: r.Device, Screen: r.Screen, Control: r.Control,
		Usage: r.Usage, MainThreads: r.MainThreads, Memory: r.Memory, Meter: r.Meter,
		Analyst: measurer{}, Host: device.Host{}, Clock: clock, Log: log,
	}
}

// Replay is the network of an arm that replays an archive with recorded timing.
func (r Rig) Replay(a *archive.Archive) experiment.Network {
	return &replaying{network: r.Network, archive: a, timing: replay.Timing{Mode: replay.TimingRecorded}}
}

// ReplayObserved returns a network that replays an archive as Replay does, with the scripts of a measure's level in its
// pages.
func (r Rig) ReplayObserved(a *archive.Archive, level string) experiment.Network {
	return &replaying{
		network: r.Network, archive: a, timing: replay.Timing{Mode: replay.TimingRecorded}, local: true,
		inject: injected(lab.Plan{Measure: &lab.Measure{Level: level}}, ""),
	}
}

// SetFlags adds flags to the browsers of later trials, which get the files as their descriptors 3, 4, ….
func (v *Virtual) SetFlags(extra []string, files ...*os.File) {
	v.device.Extra, v.device.Files = extra, files
}

// measurer measures a trial's reel without making evidence.
type measurer struct{}

// Analyse fills in the fields of t that come from pixels.
func (measurer) Analyse(_ context.Context, dir string, t *lab.Trial, start lab.Event) (func(context.Context) error, error) {
	r, o, err := open(dir, start)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	result, err := visual.Analyze(r, o)
	if err != nil {
		return nil, err
	}
	describe(t, result)
	return func(context.Context) error { return nil }, nil
}
