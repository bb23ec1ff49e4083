package v4l2

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// Grabber is what a video device says it can do.
type Grabber struct {
	Path string `json:"path"`
	Card string `json:"card,omitempty"` // its name for itself
	Bus  string `json:"bus,omitempty"`  // where it is plugged in: two of a kind differ here
	// Signal is what an HDMI receiver measures on its input, or why it has
	// none; empty for cameras and for USB grabbers, which do not say.
	Signal string `json:"signal,omitempty"`
	// NoSignal says that Signal is why there is none.
	NoSignal bool `json:"no_signal,omitempty"`
	// NeedsEDID says that the receiver has no EDID: a source will not send
	// until it is given one.
	NeedsEDID bool `json:"needs_edid,omitempty"`
	// Modes holds a line for each format and size.
	Modes    []Mode    `json:"modes,omitempty"`
	Controls []Control `json:"controls,omitempty"`
	// Problem says why the device cannot be used; the rest is then empty.
	Problem string `json:"problem,omitempty"`
}

// Mode is one format in one size.
type Mode struct {
	Format string `json:"format"` // the driver's words: "YUYV 4:2:2"
	Size   string `json:"size"`   // "1920x1080", or a range
	// Rates are what the driver claims; a recording measures.
	Rates []string `json:"rates,omitempty"`
	// Supported says whether Open takes the format.
	Supported bool `json:"supported"`
}

// List describes the video devices whose paths match the pattern, usually
// "/dev/video*". A device that cannot be asked is listed with its problem.
func List(pattern string) ([]Grabber, error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("list video devices %q: %w", pattern, err)
	}
	slices.Sort(paths)
	list := make([]Grabber, 0, len(paths))
	for _, path := range paths {
		list = append(list, describe(path))
	}
	return list, nil
}

// describe asks one device.
func describe(path string) Grabber {
	g := Grabber{Path: path}
	n, err := openNode(path)
	if err != nil {
		g.Problem = fmt.Sprintf("it may not be opened: %v", err)
		return g
	}
	defer n.close()
	s := Source{dev: n}
	if err := s.capabilities(); err != nil {
		g.Problem = fmt.Sprintf("it is no video capture device: %v", err)
		return g
	}
	g.Card, g.Bus = s.card, s.bus
	t, err := queryTimings(n)
	switch {
	case err == nil:
		g.Signal = t.get().String()
	case !errors.Is(err, errNoTimings):
		g.Signal, g.NoSignal = err.Error(), true
	}
	if t != nil || errors.Is(err, ErrSignal) {
		e, err := getEDID(n)
		g.NeedsEDID = err == nil && len(e) == 0
	}
	set, err := openSettings(path, n, s.kind)
	if err != nil { // it was there a moment ago, and is unplugged
		g.Problem = fmt.Sprintf("it cannot be asked: %v", err)
		return g
	}
	defer func() { _ = set.close() }() // nothing was written
	g.Controls, _ = controls(n, set)   // a device that lists none is still a grabber
	g.Modes = set.modes()
	slices.SortFunc(g.Modes, func(a, b Mode) int {
		return cmp.Or(cmp.Compare(a.Format, b.Format), cmp.Compare(a.Size, b.Size))
	})
	return g
}
