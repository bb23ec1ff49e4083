package service

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/image/box"
	"eidetic/internal/fleet"
	"eidetic/internal/fleet/member"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/run/execute"
	"eidetic/internal/web/panel"
)

// FleetDir is the folder of the box's place in a fleet, below the data folder.
const FleetDir = "fleet"

// fleetConfig is for a box that belongs to a head.
type fleetConfig struct {
	// Labels are what plans of the fleet may ask for, such as room: north.
	Labels map[string]string `yaml:"labels"`
}

// member opens the box's place in a fleet.
func (s *Service) member(queue *runqueue.Queue, runs *store.Store, carrier *runner, uploads Uploads) (*member.Keeper, error) {
	labels := map[string]map[string]string{"virtual": s.Config.Virtual.Labels}
	for i, c := range s.Config.Devices {
		labels[c.withDefaults(i).Name] = c.Labels
	}
	o := &offerer{
		base: BareOffer(s.Software, s.Config), labels: labels, describe: carrier.devices.describe,
		busy: func(ctx context.Context) map[string]bool { return busyDevices(ctx, queue) },
	}
	var updater member.Updater
	if box.Is(root) {
		updater = fleetUpdater{boxSystem{root}}
	}
	return member.Open(member.Config{
		Updater: updater,
		Dir:     filepath.Join(s.Data, FleetDir), Queue: queue, Store: runs, Archives: fleetArchives{uploads}, Offer: o.offer, Log: s.Log,
		Same: func(run *lab.Run, p lab.Plan) bool {
			asked, err := carrier.resolve(p)
			return err == nil && execute.SamePlan(run, asked)
		},
		Resumable: func(run *lab.Run) error { return execute.Resumable(run, s.Software) },
	})
}

// BareOffer describes this machine without its devices, which a running service knows.
func BareOffer(software string, c Config) fleet.Offer {
	o := fleet.Offer{Software: software, Cores: runtime.NumCPU(), Labels: c.Fleet.Labels, Devices: []fleet.OfferedDevice{}}
	if len(o.Software) > maxSoftware {
		o.Software = o.Software[:maxSoftware]
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		o.Memory = int64(info.Totalram) * int64(info.Unit)
	}
	return o
}

const (
	// maxSoftware and maxProblem bound texts of an offer.
	maxSoftware, maxProblem = 200, 1000
	// offerKept is how long the list of devices is believed while a run is in progress: looking at them opens grabbers.
	offerKept = 30 * time.Second
)

// offerer describes the box to the head.
type offerer struct {
	base     fleet.Offer
	labels   map[string]map[string]string // of devices, by name
	describe func(context.Context) []panel.Device
	busy     func(context.Context) map[string]bool // with a run in progress

	mu   sync.Mutex
	last fleet.Offer
	at   time.Time
}

func (o *offerer) offer(ctx context.Context) fleet.Offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	busy := o.busy(ctx)
	if !o.at.IsZero() && time.Since(o.at) < offerKept && len(busy) > 0 {
		return withBusy(o.last, busy)
	}
	offer := o.base
	offer.Devices = []fleet.OfferedDevice{}
	for _, d := range o.describe(ctx) {
		if strings.Contains(d.Name, fleet.DeviceMark) { // the head could not name it
			continue
		}
		one := fleet.OfferedDevice{
			Name: d.Name, Kind: d.Kind, Ready: d.Ready, Problem: limited(d.Problem, maxProblem), Screen: limited(d.Screen, maxProblem),
			Labels: o.labels[d.Name], Browsers: d.Browsers,
		}
		for _, p := range d.Parts {
			if p.Part == "controls" {
				one.Controls = limited(p.Use, maxProblem)
			}
		}
		offer.Devices = append(offer.Devices, one)
	}
	o.last, o.at = offer, time.Now()
	return withBusy(offer, busy)
}

// withBusy marks the devices that a run uses.
func withBusy(o fleet.Offer, busy map[string]bool) fleet.Offer {
	o.Devices = slices.Clone(o.Devices)
	for i := range o.Devices {
		o.Devices[i].Busy = busy[o.Devices[i].Name]
	}
	return o
}

// busyDevices are those with a run in progress; none where the queue cannot be read.
func busyDevices(ctx context.Context, queue *runqueue.Queue) map[string]bool {
	jobs, err := queue.List(ctx)
	if err != nil {
		return nil
	}
	busy := map[string]bool{}
	for _, j := range jobs {
		if j.State == store.StateRunning {
			busy[j.Device] = true
		}
	}
	return busy
}

func limited(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// fleetArchives are the uploads, for the member.
type fleetArchives struct{ Uploads }

// Put implements member.Archives: the recording is judged as an upload is.
func (a fleetArchives) Put(ctx context.Context, name string, content io.Reader) error {
	path, err := a.path(name)
	if err != nil {
		return err
	}
	match := "*" // it has other content than its name says
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		match = ""
	}
	_, err = a.Uploads.Put(ctx, name, match, content, nil)
	return err
}

// Names implements member.Archives.
func (a fleetArchives) Names() ([]string, error) {
	all, err := a.List(context.Background())
	var names []string
	for _, one := range all {
		names = append(names, one.Name)
	}
	return names, err
}

// boxFleet shows the member on the panel.
type boxFleet struct{ *member.Keeper }

// Status implements panel.Fleet.
func (f boxFleet) Status() (panel.FleetStatus, error) {
	st, err := f.Keeper.Status()
	if err != nil {
		return panel.FleetStatus{Problem: err.Error(), Parts: []panel.FleetPart{}}, nil
	}
	out := panel.FleetStatus{Joined: st.Head != "", Head: st.Head, Name: st.Name, ID: st.ID, Problem: st.Problem, Parts: []panel.FleetPart{}}
	out.Since, out.Contact, out.Health, out.Reason = timeOf(st.Joined), timeOf(st.Contact), st.Health, st.Reason
	for _, p := range st.Parts {
		out.Parts = append(out.Parts, panel.FleetPart{
			Part: p.Part, Run: p.Run, Device: p.Device, Attempt: p.Attempt, State: p.State, Trial: p.Progress.Trial, Of: p.Progress.Of,
			Doing: p.Progress.Doing, Problem: p.Problem, Since: p.Since.UTC(),
		})
	}
	return out, nil
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Join implements panel.Fleet.
func (f boxFleet) Join(ctx context.Context, link, name string) error {
	if name == "" {
		name = member.DefaultName()
	}
	_, err := f.Keeper.Join(ctx, link, name)
	return fleetRefusal(err)
}

// Leave implements panel.Fleet.
func (f boxFleet) Leave(ctx context.Context, force bool) error {
	return fleetRefusal(f.Keeper.Leave(ctx, force))
}

// fleetRefusal is an error of joining or leaving, for the one who asked.
func fleetRefusal(err error) error {
	var holds *member.HoldsError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &holds), errors.Is(err, member.ErrJoined):
		return &panel.Refusal{Status: http.StatusConflict, Err: err}
	case errors.Is(err, member.ErrNotJoined):
		return &panel.Refusal{Status: http.StatusNotFound, Err: err}
	}
	return &panel.Refusal{Status: http.StatusUnprocessableEntity, Err: err}
}
