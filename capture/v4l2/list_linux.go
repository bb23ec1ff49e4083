package v4l2

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/blackjack/webcam"
)

// Grabber is what a video device says it can do.
type Grabber struct {
	Path string `json:"path"`
	Card string `json:"card,omitempty"` // its name for itself
	Bus  string `json:"bus,omitempty"`  // where it is plugged in: two of a kind differ here
	// Modes holds a line for each format and size.
	Modes []Mode `json:"modes,omitempty"`
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

func describe(path string) Grabber {
	g := Grabber{Path: path}
	cam, err := webcam.Open(path)
	if err != nil {
		g.Problem = fmt.Sprintf("it is no video capture device, is in use, or may not be opened: %v", err)
		return g
	}
	defer cam.Close()
	// A driver without a name is still a grabber.
	g.Card, _ = cam.GetName()
	g.Bus, _ = cam.GetBusInfo()
	for format, words := range cam.GetSupportedFormats() {
		for _, size := range cam.GetSupportedFrameSizes(format) {
			m := Mode{Format: words, Size: size.GetString(), Supported: supported(uint32(format))}
			for _, rate := range cam.GetSupportedFramerates(format, size.MaxWidth, size.MaxHeight) {
				m.Rates = append(m.Rates, rate.String())
			}
			g.Modes = append(g.Modes, m)
		}
	}
	slices.SortFunc(g.Modes, func(a, b Mode) int {
		return cmp.Or(cmp.Compare(a.Format, b.Format), cmp.Compare(a.Size, b.Size))
	})
	return g
}

func supported(code uint32) bool {
	for _, known := range fourccs {
		if known == code {
			return true
		}
	}
	return false
}
