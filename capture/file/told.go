package file

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"eidetic/capture"
	"eidetic/internal/lab"
)

// told is what ffmpeg says while it decodes: the times of the frames, of its filter showinfo, a line each, before the
// frame's pixels; and why it fails.
type told struct {
	words complaint
	size  image.Point // of the first frame
	codec string      // the film's

	mu      sync.Mutex
	changed *sync.Cond
	line    []byte  // the beginning of one
	base    float64 // the unit of its stamps, in s
	times   []int64 // ns, noTime for a frame without one
	other   error   // the frame after those of times has another size
	damage  string  // what was said first of pictures that the decoder had to make up
	isTold  bool    // damage was taken
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
	hurtFrame  = regexp.MustCompile(`^(?:\[[^\]]* @ [^\]]*\] \[info\] (concealing .* errors in .*)|` +
		`\[warning\] .*: (corrupt (?:decoded frame|input packet)) in stream \d+)$`) // constant
	hurtCodec  = regexp.MustCompile(`^\[(\w+) @ [^\]]*\] \[error\] (.*)$`)                          // constant
	failedLine = regexp.MustCompile(`^(?:\[[^\]]* @ [^\]]*\] )?\[(?:error|fatal|panic)\] (.*\n?)$`) // constant
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
	if t.damage == "" {
		t.damage = t.damageIn(strings.TrimSpace(string(line)))
	}
}

// damageIn is what a line says of pictures that the decoder had to make up, or "". What it cannot decode before the
// first picture, as the film begins amid a group of pictures, is not shown.
func (t *told) damageIn(line string) string {
	if m := hurtFrame.FindStringSubmatch(line); m != nil {
		return m[1] + m[2]
	}
	m := hurtCodec.FindStringSubmatch(line)
	if m != nil && len(t.times) > 0 && t.codec != "" && strings.Contains(m[1], t.codec) {
		return m[2]
	}
	return ""
}

// damaged is the interruption of a film with damage, once, or nil. It is asked for at the end: a decoder of several
// threads is ahead of its pictures by a number that differs.
func (t *told) damaged() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.damage == "" || t.isTold {
		return nil
	}
	t.isTold = true
	detail := "somewhere in the film; ffmpeg: " + lab.Clip(t.damage, 200)
	return &capture.Interruption{Event: lab.SourceEvent{Kind: lab.SourceDamaged, Time: t.last, Detail: detail}}
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
