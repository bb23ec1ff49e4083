package execute

import (
	"context"
	"log/slog"
	"os"

	"eidetic/analysis/visual"
	"eidetic/internal/device"
	"eidetic/internal/experiment"
	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/replay"
)

// NewRunner wires the rig for a program that carries out trials without an
// order, as benchmarks do. The trials are those of an order, but for their
// evidence: they are measured, and no picture of them is kept.
func (r Rig) NewRunner(log *slog.Logger) *experiment.Runner {
	var link experiment.Link = emulated{r.Network}
	if r.Link != nil {
		link = r.Link
	}
	return &experiment.Runner{
		Link: link, Device: r.Device, Screen: r.Screen, Control: r.Control,
		Analyst: measurer{}, Host: device.Host{}, Clock: clock, Log: log,
	}
}

// Replay is the network of an arm that replays an archive as it was recorded.
func (r Rig) Replay(a *archive.Archive) experiment.Network {
	return &replaying{network: r.Network, archive: a, timing: replay.Timing{Mode: replay.TimingRecorded}}
}

// SetFlags adds flags to the browsers of the trials to come, which get the files as their descriptors 3, 4 ….
func (v *Virtual) SetFlags(extra []string, files ...*os.File) {
	v.device.Extra, v.device.Files = extra, files
}

// measurer measures a trial's reel and makes no evidence of it.
type measurer struct{}

// Analyse fills in what pixels tell of t.
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
