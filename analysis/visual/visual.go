// Package visual computes what a person saw from the frames of a screen
// recording. Frames and options flow in; measurements, curves and pictures
// flow out. Everything is a pure function: no files, no clock, no randomness,
// so the same reel gives the same numbers on every machine.
//
// It follows three sources and names which one in every measurement's method:
// the Eideticker specification and code (load histogram, heat map, unique
// frames, stable frame), sitespeed.io's browsertime (SpeedIndex on channel
// histograms, visual complete), and WPO's visualmetrics (a second flavour of
// the same index). docs/metrics.md holds the definitions.
package visual

import (
	"errors"
	"image"
	"image/color"
	"time"

	"eidetic/internal/lab"
)

// Frames is a recording that can be read by index; the reel's reader is one.
//
// Analysis reads the last frame once and then walks forward, and it asks for
// the pixels of a frame only where Info(i).Changed is not empty: sequential
// access should be cheap, random access need not be.
type Frames interface {
	// Format describes every frame.
	Format() lab.Format
	// Len is the number of frames.
	Len() int
	// Info returns what is known of frame i, 0 ≤ i < Len(), without decoding it.
	Info(i int) lab.FrameInfo
	// Pixels decodes frame i into Format().FrameSize() bytes, valid until the
	// next call.
	Pixels(i int) ([]byte, error)
}

// ErrNoSync is returned, wrapped with what was seen, when no frame shows the
// synchronisation colour.
var ErrNoSync = errors.New("no frame shows the synchronisation colour")

// SyncOptions says where FindContent looks. The zero value searches the whole
// recording.
type SyncOptions struct {
	From, To int // frames From … To−1 are searched; zero To: all
	// Colour of the page; the zero value is Eideticker's green. The WebPageTest family has SyncOrange.
	Colour color.RGBA
	// Checkers looks for the pattern of four corners instead: in each corner of the content area a square of
	// 4 × 4 cells of 8 × 8 pixels in black and white, black in the area's own corner.
	Checkers bool
}

// SyncOrange is the colour by which the tools of the WebPageTest family find the viewport.
func SyncOrange() color.RGBA { return color.RGBA{R: 222, G: 100, B: 13, A: 255} }

// FindContent returns the biggest box of the synchronisation colour (Eideticker's
// green) in the first run of frames that show it, and the first and the last
// frame in which that box has the colour. The frame after last is the first that
// shows something else. The box covers at least 1/16 of the frame. A mouse
// pointer inside the box does not split it.
func FindContent(frames Frames, o SyncOptions) (area image.Rectangle, first, last int, err error) {
	return findContent(frames, o)
}

// Baseline says what the screen showed before the load, for visual progress.
type Baseline int

const (
	// BaselineAuto is BaselineWhite if the start frame's content is the
	// synchronisation colour, and BaselineStart otherwise.
	BaselineAuto Baseline = iota
	// BaselineStart takes the start frame itself.
	BaselineStart
	// BaselineWhite takes a white page, which is what browsertime starts from:
	// with the green page as the baseline, merely blanking it would count as
	// about half of the progress.
	BaselineWhite
)

// Options says which frames are analysed and how. The zero value analyses the
// whole recording from its first frame.
type Options struct {
	// Start is the frame the load starts from (f0 of the specification): the
	// last one that shows the synchronisation page.
	Start int
	// End is one past the last frame, which is the final one; zero: all.
	End int
	// EndPage is the colour of a page that ends the load without being part of it
	// (lab.SyncRed). Where the frames before End show nothing but that page, they
	// are left out, and Result.End is the first of them: the last frame before it
	// is the final one. The zero value looks for no such page.
	EndPage color.RGBA
	// Origin is the event from which times count, with its uncertainty. With
	// a zero Origin they count from the time of frame Start. Value times are
	// from the middle of the interval; Low and High allow for all of it.
	Origin lab.Event
	// Content is the content area; empty: the whole frame.
	Content image.Rectangle
	// Ignore holds areas, in frame coordinates, that are not content: a
	// blinking caret, a carousel, a clock.
	Ignore []image.Rectangle
	// Drawn is what was drawn onto the page by us, in frame coordinates: it does not count, not even
	// in the final frame's hash.
	Drawn image.Rectangle
	// Baseline of SpeedIndex and visual progress.
	Baseline Baseline
	// Sync is the colour of the synchronisation page; the zero value is Eideticker's green. Where the load starts from
	// it, what remains of it on an otherwise flat screen is no content: browsers may take it away in steps.
	Sync color.RGBA

	// Also asks for indices that cost more than the rest.
	Also Indices

	// UniquePixels: a frame is unique with at least this many changed pixels;
	// zero: 1 pixel that differs at all. Eideticker used 2048 pixels of
	// lumaStep for HDMI and 4096 for cameras; if set, lumaStep applies.
	UniquePixels int

	// Tolerance is how far a pixel may move without counting as changed, or as different from
	// the final frame: a source's noise. A pixel is compared with the value that it last
	// changed to.
	Tolerance Tolerance
}

// Eideticker's values.
const (
	lumaStep     = 5    // the smallest difference of luma that counts as a changed pixel
	stablePixels = 4096 // a frame with more changed pixels than this is not stable
)

// Indices is a set of further page-load indices.
type Indices uint

const (
	// WPT is SpeedIndex in WebPageTest's flavour.
	WPT Indices = 1 << iota
	// Perceptual is browsertime's Perceptual Speed Index: similarity (SSIM)
	// to the final frame. About 15 ms for a frame that changed as a whole.
	Perceptual
	// Contentful is browsertime's Contentful Speed Index: edges relative to the
	// frame with the most of them. About 1 ms for a frame that changed as a whole.
	Contentful
	// Speedline is both indices of speedline, which Lighthouse uses.
	Speedline
	// Completeness is visual complete at 50, 75, 90 and 100 %, and visual readiness.
	Completeness
)

// Heat counts, for each pixel of an area, the frames in which it changed.
type Heat struct {
	Area   image.Rectangle // in frame coordinates
	Counts []uint16        // rows from the top, Area.Dx() each; saturates at 65535
}

// still returns how many pixels never changed.
func (h Heat) still() (n int) {
	for _, c := range h.Counts {
		if c == 0 {
			n++
		}
	}
	return n
}

// Most returns the count of the pixel that changed in the most frames.
func (h Heat) Most() (most uint16) {
	for _, n := range h.Counts {
		most = max(most, n)
	}
	return most
}

// Mean returns how often a pixel changed, on average over the area.
func (h Heat) Mean() float64 {
	sum := 0
	for _, n := range h.Counts {
		sum += int(n)
	}
	return float64(sum) / float64(max(len(h.Counts), 1))
}

// Result is the analysis of one load. The slices have one element for each
// frame from Start to End−1.
type Result struct {
	Format   lab.Format
	Content  image.Rectangle
	Start    int
	End      int
	Origin   lab.Event // the interval from which times count
	Baseline Baseline  // the one that was used, never BaselineAuto

	Times         []float64 // ms since the origin, of the frame's own stamp
	LoadHistogram []float64 // % of content pixels equal to the final frame's
	Progress      []float64 // visual progress of SpeedIndex (browsertime), %, whole numbers
	Changed       []int     // content pixels that differ from the frame before
	LumaChanged   []int     // those whose luma differs by lumaStep or more

	Heat Heat
	// fresh is how many pixels ever changed, and freshMS the sum of the times at which they did for the first time.
	fresh   int
	freshMS float64
	// FinalSHA256 is the hash of the final frame's content area as BGRX.
	FinalSHA256 string
	// Ground is the commonest colour of that frame as 0x00RRGGBB, and Odd how many pixels of it,
	// those that are ignored left out, have another one.
	Ground uint32
	Odd    int
	// Lost counts frames missing between Start and End by sequence numbers.
	Lost int

	// Frame indices in the recording, −1 where there is none.
	FirstChange  int // the first frame that differs from the start frame
	LastChange   int // the last frame that differs from the one before
	FirstContent int // the first frame whose content is not one flat colour, besides what remains of Options.Sync
	Stable       int // the frame that is stable by Eideticker's rule
	Unique       int // number of unique frames after Start

	SpeedIndex float64 // ms, browsertime's histogram flavour
	// These hold values where Options.Also asked for them, else 0.
	SpeedIndexWPT, PerceptualIndex, ContentfulIndex float64
	SpeedlineIndex, SpeedlinePerceptual             float64
	// ProgressWPT is the visual progress in WebPageTest's flavour, %.
	ProgressWPT []float64
	// Complete maps 85, 95 and 99 to the frame that reaches that visual
	// progress for good, −1 if none does.
	Complete map[int]int

	opts  Options
	infos []frameTime
}

// frameTime is when a frame was taken: in [time − uncertainty, time].
type frameTime struct {
	time        lab.Time
	uncertainty time.Duration
	look        bool // lab.FrameLook: the frames' times say how often somebody looked
}

// Analyze measures the load that starts at frame o.Start.
func Analyze(frames Frames, o Options) (*Result, error) { return analyze(frames, o) }

// Measurements returns the result as named numbers, each with its method, the
// frames it rests on, and the bounds of the true value: a change that frame k
// shows first happened after frame k−1 was taken.
func (r *Result) Measurements() []lab.Measurement { return r.measurements() }
