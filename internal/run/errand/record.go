package errand

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/netlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
	"eidetic/netlab/link"
	"eidetic/netlab/replay"
)

// seed is that of a recording whose pages nobody gave one.
const seed = 1

// record records what the device asks for. People see its screen and drive it meanwhile.
func (k *Keeper) record(ctx context.Context, e *errand, d Device) error {
	network, release, err := d.Hold()
	if err != nil {
		return err
	}
	defer release()
	dir, err := k.Recordings.Begin()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	name := cmp.Or(strings.TrimSuffix(e.request.Name, ".wacz"), d.Name)
	name = store.NewID(time.Now(), name) + ".wacz"
	file := filepath.Join(dir, name)
	if err := k.listen(ctx, e, network, file); err != nil {
		return err
	}
	e.tell(func(s *Status) { s.State, s.Doing, s.Ends = Keeping, "reading what was recorded", nil })
	if err := k.Recordings.Keep(ctx, file, name); err != nil {
		return err
	}
	e.tell(func(s *Status) { s.Recording = name })
	return nil
}

// listen has the network record into a file until somebody says stop.
func (k *Keeper) listen(ctx context.Context, e *errand, network *netlab.Network, file string) error {
	// The network of a port outlives its runs, and keeps the link of the last one.
	if err := network.SetLink(link.Profile{Name: lab.NativeLink}); err != nil {
		return err
	}
	wall := time.Now()
	w, err := archive.Create(file, archive.CreateOptions{
		Software: k.Software, Wall: wall, Seed: seed, PageDate: wall, Title: filepath.Base(file),
	})
	if err != nil {
		return err
	}
	var answered atomic.Int64
	recorder, err := network.Record(ctx, w, replay.RecordOptions{
		Clock: lab.Monotonic, Wall: time.Now, Inject: inject.Options{Seed: seed, Date: wall}, Pages: true,
		Log: func(s lab.Served) {
			if s.Error == "" {
				answered.Add(1)
			}
		},
	})
	if err != nil {
		return errors.Join(err, w.Discard())
	}
	e.begins(Working, "recording", e.request.Length)
	note := watch(ctx, e, file, func() { e.tell(func(s *Status) { s.Requests = recorder.Stats().Requests }) })
	network.Disarm()
	err = recorder.Wait()
	switch {
	case ctx.Err() != nil:
		return errors.Join(ctx.Err(), w.Discard())
	case err != nil:
		return errors.Join(err, w.Discard())
	case answered.Load() == 0:
		return errors.Join(errors.New("the device asked for nothing that an origin answered: nothing is kept"), w.Discard())
	}
	e.tell(func(s *Status) { s.Requests, s.Note = recorder.Stats().Requests, note })
	return w.Close()
}

// watch returns when the recording is to end, with what is to be known of that.
func watch(ctx context.Context, e *errand, file string, look func()) (note string) {
	end := time.NewTimer(e.request.Length)
	defer end.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-e.finish:
			return ""
		case <-end.C:
			return "nobody said stop within " + e.request.Length.String()
		case <-tick.C:
		}
		look()
		if info, err := os.Stat(file + archive.WorkingSuffix); err == nil && info.Size() > mostBytes {
			return "the recording ended early: it has 4 GiB"
		}
	}
}
