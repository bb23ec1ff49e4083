package file

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"math"
	"regexp"
	"strconv"
	"sync"
	"time"

	"eidetic/internal/lab"
)

// told is what ffmpeg says while it decodes: the times of the frames, of its filter showinfo, a line each, before the
// frame's pixels; and why it fails.
type told struct {
	words complaint
	size  image.Point // of the first frame

	mu      sync.Mutex
	changed *sync.Cond
	line    []byte  // the beginning of one
	base    float64 // the unit of its stamps, in s
	times   []int64 // ns, noTime for a frame without one
	other   error   // the frame after those of times has another size
	last    lab.Time
}

func newTold() *told {
	t := &told{}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// maxTold bounds a line that is looked at.
const maxTold = 4 << 10

// noTime is of frames of containers without times.
const noTime = math.MinInt64

var (
	shownBase  = regexp.MustCompile(`^\[Parsed_showinfo_\d+ @ [^\]]*\] (?:\[info\] )?config in time_base: *(\d+)/(\d+)`) // constant
	shownFrame = regexp.MustCompile(`^\[Parsed_showinfo_\d+ @ [^\]]*\] (?:\[info\] )?n: *\d+ pts: *(\S+) `)              // constant
	shownSize  = regexp.MustCompile(` s:(\d+)x(\d+) `)                                                                   // constant
	failedLine = regexp.MustCompile(`^(?:\[[^\]]* @ [^\]]*\] )?\[(?:error|fatal|panic)\] (.*\n?)$`)                      // constant
)

// Write implements io.Writer.
func (t *told) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := b; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n') + 1
		if end == 0 {
			end = len(rest)
		}
		t.line = append(t.line, rest[:min(end, max(maxTold-len(t.line), 0))]...)
		if rest[end-1] == '\n' {
			t.take(t.line)
			t.line = t.line[:0]
		}
		rest = rest[end:]
	}
	return len(b), nil
}

// take takes a line. pts_time of showinfo has six digits only, so times are made of the stamps and their unit.
func (t *told) take(line []byte) {
	if m := shownBase.FindSubmatch(line); m != nil {
		t.base, _ = ratio(string(m[1]) + "/" + string(m[2]))
	} else if m := shownFrame.FindSubmatch(line); m != nil && len(t.times) <= maxPictures && t.other == nil {
		if s := shownSize.FindSubmatch(line); s != nil && string(s[1])+"x"+string(s[2]) != fmt.Sprintf("%dx%d", t.size.X, t.size.Y) {
			t.other = fmt.Errorf("its size is %s×%s, that of the frames before %d×%d: the device was turned, or the window resized; "+
				"cut the film there", s[1], s[2], t.size.X, t.size.Y)
			t.changed.Broadcast()
			return
		}
		at := int64(noTime)
		if stamp, err := strconv.ParseInt(string(m[1]), 10, 64); err == nil && t.base > 0 && math.Abs(float64(stamp)*t.base) < 1e9 {
			at = int64(math.Round(float64(stamp) * t.base * 1e9))
		}
		t.times = append(t.times, at)
		t.changed.Broadcast()
	} else if m := failedLine.FindSubmatch(line); m != nil {
		_, _ = t.words.Write(m[1]) // never fails
	}
}

// toldWait bounds the wait for what was written before.
const toldWait = 10 * time.Second

// time is when frame n is, counted from the first one. rated is its time by the rate of the film, for one without times.
func (t *told) time(n int, rated lab.Time) (lab.Time, error) {
	timeout := false
	t.mu.Lock()
	defer t.mu.Unlock()
	late := time.AfterFunc(toldWait, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		timeout = true
		t.changed.Broadcast()
	})
	defer late.Stop()
	for len(t.times) <= n && !timeout && t.other == nil {
		t.changed.Wait()
	}
	if len(t.times) <= n && t.other != nil {
		return 0, t.other
	}
	if len(t.times) <= n {
		return 0, errors.New("ffmpeg does not say when it is: another version of ffmpeg may help")
	}
	first, at := t.times[0], t.times[n]
	if first == noTime || at == noTime {
		return rated, nil // the rate must do
	}
	of := lab.Time(at - first)
	if of < t.last {
		return 0, fmt.Errorf("its time goes back, from %.3f s to %.3f s: the film was joined from others without their times; "+
			"join them with ffmpeg's concat demuxer", t.last.Sub(0).Seconds(), of.Sub(0).Seconds())
	}
	t.last = of
	return of, nil
}

// otherSize is the error of the first frame whose size differs from those before, or nil.
func (t *told) otherSize() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.other
}
