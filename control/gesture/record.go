package gesture

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"eidetic/control"
	"eidetic/internal/lab"
)

// Recording is a gesture of one pointer as a person made it, on a screen of some size.
type Recording struct {
	Width, Height int
	Samples       []Sample
}

// Sample is where the pointer was. The pointer is down from the first sample to the last.
type Sample struct {
	After time.Duration
	X, Y  float64 // pixels of the recording's screen
}

// Bounds of a recording.
const (
	maxSamples   = 60_000
	maxRecording = 8 << 20
	maxGesture   = time.Minute
)

// header is the first line of a recording's own format.
type header struct {
	Gesture int `json:"gesture"` // version: 1
	Width   int `json:"width"`
	Height  int `json:"height"`
}

// line of a recording's own format.
type sampleLine struct {
	T float64 `json:"t_ms"`
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// ParseRecording reads a recorded gesture: JSON lines, as Recording.Write writes them, or the
// text of Android's getevent -lt, whose first line must give the size of the touch screen's
// coordinates: "# screen 1080x2400" (getevent -lp lists it as the max of ABS_MT_POSITION_X and
// _Y, plus one).
func ParseRecording(r io.Reader) (*Recording, error) {
	plain := transform.NewReader(r, unicode.BOMOverride(transform.Nop)) // as Windows' shells write it
	text, err := io.ReadAll(io.LimitReader(plain, maxRecording+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxRecording {
		return nil, fmt.Errorf("gesture: more than %d MiB", maxRecording>>20)
	}
	g := &Recording{}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		err = g.parseLines(text)
	} else {
		err = g.parseGetevent(text)
	}
	if err == nil {
		err = g.check()
	}
	if err != nil {
		return nil, fmt.Errorf("gesture: %w", err)
	}
	return g, nil
}

func (g *Recording) check() error {
	if g.Width < 1 || g.Height < 1 || g.Width > lab.MaxSide || g.Height > lab.MaxSide {
		return fmt.Errorf("a screen of %d×%d is outside 1×1 … %d×%d", g.Width, g.Height, lab.MaxSide, lab.MaxSide)
	}
	if len(g.Samples) < 2 || len(g.Samples) > maxSamples {
		return fmt.Errorf("%d samples; at least 2 and at most %d", len(g.Samples), maxSamples)
	}
	last := time.Duration(0)
	for i, s := range g.Samples {
		if s.After < last || s.After > maxGesture {
			return fmt.Errorf("sample %d is at %v, after one at %v: times grow, up to %v", i+1, s.After, last, maxGesture)
		}
		if !(s.X >= 0 && s.X < float64(g.Width) && s.Y >= 0 && s.Y < float64(g.Height)) {
			return fmt.Errorf("sample %d is at %v,%v, outside the screen of %d×%d", i+1, s.X, s.Y, g.Width, g.Height)
		}
		last = s.After
	}
	return nil
}

func (g *Recording) parseLines(text []byte) error {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if g.Width == 0 {
			var h header
			if err := json.Unmarshal(lines.Bytes(), &h); err != nil || h.Gesture != 1 {
				return fmt.Errorf(`line %d: the first line is {"gesture":1,"width":W,"height":H}`, n)
			}
			if g.Width, g.Height = h.Width, h.Height; g.Width < 1 {
				return fmt.Errorf("line %d: width %d", n, h.Width)
			}
			continue
		}
		var s sampleLine
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if !(s.T >= 0 && s.T <= maxGesture.Seconds()*1e3) {
			return fmt.Errorf("line %d: t_ms %v is outside 0 … %v", n, s.T, maxGesture.Seconds()*1e3)
		}
		g.Samples = append(g.Samples, Sample{time.Duration(s.T * float64(time.Millisecond)), s.X, s.Y})
	}
	return lines.Err()
}

// Write writes the recording as JSON lines.
func (g *Recording) Write(w io.Writer) error {
	encoder := json.NewEncoder(w)
	if err := encoder.Encode(header{1, g.Width, g.Height}); err != nil {
		return err
	}
	for _, s := range g.Samples {
		if err := encoder.Encode(sampleLine{s.After.Seconds() * 1e3, s.X, s.Y}); err != nil {
			return err
		}
	}
	return nil
}

// The lines of getevent -lt:
//
//	[   57867.123456] /dev/input/event2: EV_ABS       ABS_MT_POSITION_X    000001f4
var (
	geteventLine = regexp.MustCompile(`^\[\s*(\d+)\.(\d{6})\]\s+(?:(\S+):\s+)?(EV_\w+|[0-9a-f]{4})\s+(\w+)\s+(\w+)\s*$`)
	geteventSize = regexp.MustCompile(`^#\s*screen\s+(\d{1,5})x(\d{1,5})\s*$`)
)

// geteventNames are the numbers of getevent's labels: of types, codes and values.
var geteventNames = map[string]uint32{ // constant
	"EV_SYN": evSyn, "EV_KEY": evKey, "EV_ABS": evAbs, "SYN_REPORT": synReport, "SYN_MT_REPORT": synMTReport,
	"ABS_X": absX, "ABS_Y": absY, "ABS_MT_SLOT": absSlot, "ABS_MT_POSITION_X": absMTX, "ABS_MT_POSITION_Y": absMTY,
	"ABS_MT_TRACKING_ID": absTrackingID, "BTN_TOUCH": btnTouch, "DOWN": 1, "UP": 0,
}

// event is a line of getevent.
type event struct {
	at         time.Duration
	device     string
	kind, code uint16
	value      int32
}

func (e event) isPlace(x uint16) bool { return e.kind == evAbs && e.code == x }

// parseGetevent reads the way of the first finger, up to where it leaves the glass. Positions count when a report is
// complete. Of several devices the first that tells a place is the touch screen.
func (g *Recording) parseGetevent(text []byte) error {
	lines := bufio.NewScanner(bytes.NewReader(text))
	var events []event
	for n := 1; lines.Scan(); n++ {
		if m := geteventSize.FindStringSubmatch(lines.Text()); m != nil {
			g.Width, _ = strconv.Atoi(m[1])
			g.Height, _ = strconv.Atoi(m[2])
			continue
		}
		m := geteventLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue // what getevent says of devices that were added
		}
		seconds, err := strconv.ParseInt(m[1], 10, 32)
		if err != nil {
			return fmt.Errorf("line %d: the time %s.%s is out of range", n, m[1], m[2])
		}
		micros, _ := strconv.ParseInt(m[2], 10, 64)
		var said [3]uint32
		for i, word := range m[4:] {
			number, isName := geteventNames[word]
			if !isName {
				wide, err := strconv.ParseUint(word, 16, 32)
				number = uint32(wide)
				if err != nil {
					number = math.MaxUint32 // a label that says nothing of fingers
				}
			}
			said[i] = number
		}
		events = append(events, event{time.Duration(seconds)*time.Second + time.Duration(micros)*time.Microsecond, m[3],
			uint16(said[0]), uint16(said[1]), int32(said[2])})
	}
	switch {
	case lines.Err() != nil:
		return lines.Err()
	case len(events) == 0:
		return fmt.Errorf("no line is one of getevent with its time: record with adb shell getevent -lt")
	case g.Width == 0:
		return fmt.Errorf("the text of getevent needs a first line with the size of the touch screen: # screen 1080x2400")
	}
	first := slices.IndexFunc(events, func(e event) bool { return e.isPlace(absMTX) })
	isMulti := first >= 0
	if !isMulti {
		first = max(0, slices.IndexFunc(events, func(e event) bool { return e.isPlace(absX) }))
	}
	d := &evdev{Axes: Axes{Slots: isMulti}, g: g, down: isMulti}
	for _, e := range events {
		if e.device == events[first].device && !d.over {
			d.take(e.at, e.kind, e.code, e.value)
		}
	}
	return nil
}

// fit returns the samples as points of another screen.
func (g *Recording) fit(screen image.Rectangle) []point {
	points := make([]point, 0, len(g.Samples))
	for _, s := range g.Samples {
		x := screen.Min.X + int(s.X*float64(screen.Dx())/float64(g.Width))
		y := screen.Min.Y + int(s.Y*float64(screen.Dy())/float64(g.Height))
		points = append(points, point{s.After, image.Pt(x, y)})
	}
	return points
}

// replay repeats a recorded gesture on the device's screen, whatever its size.
func (d *Doer) replay(ctx context.Context, s lab.Step) (Log, error) {
	holder, ok := d.Controller.(control.Holder)
	if !ok {
		return Log{}, fmt.Errorf("%w: its controller cannot hold a button", errRefused)
	}
	if d.Recorded == nil {
		return Log{}, fmt.Errorf("%w: there are no recorded gestures", errRefused)
	}
	g, err := d.Recorded(s.Replay)
	if err != nil {
		return Log{}, err
	}
	if d.Screen.Empty() {
		return Log{}, fmt.Errorf("replay %s: the size of the screen is not known", s.Replay)
	}
	points := g.fit(d.Screen)
	log, err := d.hold(ctx, s, holder, points)
	log.At = points[0].At
	return log, err
}

// Describe says what the recording is: samples, time, and the size of its screen.
func (g *Recording) Describe() string {
	last := g.Samples[len(g.Samples)-1].After
	return strings.TrimSpace(fmt.Sprintf("%d samples in %v on a screen of %d×%d", len(g.Samples), last.Round(time.Millisecond), g.Width, g.Height))
}
