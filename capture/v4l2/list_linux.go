package v4l2

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/blackjack/webcam"
	"golang.org/x/sys/unix"
)

// Grabber is what a video device says it can do.
type Grabber struct {
	Path string `json:"path"`
	Card string `json:"card,omitempty"` // its name for itself
	Bus  string `json:"bus,omitempty"`  // where it is plugged in: two of a kind differ here
	// Signal is what an HDMI receiver measures on its input, or why it has
	// none; empty for cameras and for USB grabbers, which do not tell.
	Signal string `json:"signal,omitempty"`
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

// describe asks one device. Where its formats lie in one piece of memory,
// blackjack/webcam enumerates them; it knows no other kind.
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
	var c capability
	if n.ioctl(reqQueryCap, pointer(&c)) == nil {
		g.Card, g.Bus = unix.ByteSliceToString(c[16:48]), unix.ByteSliceToString(c[48:80])
	}
	t, err := queryTimings(n)
	switch {
	case err == nil:
		g.Signal = t.get().String()
	case !errors.Is(err, errNoTimings):
		g.Signal = err.Error()
	}
	if t != nil || errors.Is(err, ErrSignal) {
		e, err := getEDID(n)
		g.NeedsEDID = err == nil && len(e) == 0
	}
	g.Controls, _ = controls(n) // one that lists none is still a grabber
	if s.kind == typePlanes {
		g.Modes = planarModes(n)
	} else {
		g.Modes = modesOf(path)
	}
	slices.SortFunc(g.Modes, func(a, b Mode) int {
		return cmp.Or(cmp.Compare(a.Format, b.Format), cmp.Compare(a.Size, b.Size))
	})
	return g
}

func modesOf(path string) (list []Mode) {
	cam, err := webcam.Open(path)
	if err != nil {
		return nil // it was there a moment ago, and is unplugged
	}
	defer cam.Close()
	for format, words := range cam.GetSupportedFormats() {
		_, supported := known(uint32(format))
		for _, size := range cam.GetSupportedFrameSizes(format) {
			m := Mode{Format: words, Size: size.GetString(), Supported: supported}
			for _, rate := range cam.GetSupportedFramerates(format, size.MaxWidth, size.MaxHeight) {
				m.Rates = append(m.Rates, rate.String())
			}
			list = append(list, m)
		}
	}
	return list
}

// planarModes lists the formats of a multi-planar device, whose size is that
// of the signal.
func planarModes(dev device) (list []Mode) {
	const most = 256
	var f format
	setU32(f[:], 0, typePlanes)
	size := "as the signal"
	if dev.ioctl(reqGetFormat, pointer(&f)) == nil {
		size = fmt.Sprintf("%dx%d", f.get().width, f.get().height)
	}
	for i := range uint32(most) {
		var d [64]byte // v4l2_fmtdesc: index 0, type 4, description 12, pixelformat 44
		setU32(d[:], 0, i)
		setU32(d[:], 4, typePlanes)
		if dev.ioctl(reqEnumFormat, pointer(&d)) != nil {
			break
		}
		_, supported := known(u32(d[:], 44))
		list = append(list, Mode{Format: unix.ByteSliceToString(d[12:44]), Size: size, Supported: supported})
	}
	return list
}
