package capture_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/capture"
	"eidetic/capture/reel"
	"eidetic/internal/lab"
)

const ms = lab.Time(time.Millisecond)

// looker looks at a pretended screen, 100 times a second, on a machine that
// stalls: it oversleeps, or the screen's answer comes late. A look takes 1 ms.
type looker struct {
	looks     capture.Looks
	now       lab.Time
	oversleep map[lab.Time]lab.Time // by how much, when it is to wake at a time
	slow      map[lab.Time]lab.Time // what the look that begins at a time takes more
	drawn     []lab.Time            // when something new was drawn
	redrawn   []lab.Time            // when the same was drawn again
	until     lab.Time
	asked     lab.Time // by the look before
	begun     bool
	pix       []byte
}

func (l *looker) Format() lab.Format {
	f := small
	f.Rate = 100
	return f
}

func (l *looker) Close() error { return nil }

func (l *looker) Next(ctx context.Context) (lab.Frame, error) {
	if l.pix == nil {
		l.pix = make([]byte, small.FrameSize())
		l.looks.Pace = capture.Pace{Period: time.Duration(10 * ms), Clock: func() lab.Time { return l.now },
			Wait: func(t lab.Time) { l.now = t + l.oversleep[t] }}
	}
	info, proven, err := l.looks.Next(ctx)
	if err != nil || proven {
		return lab.Frame{FrameInfo: info, Pix: l.pix}, err
	}
	if l.now > l.until {
		return lab.Frame{}, io.EOF
	}
	asked := l.now
	news := func(list []lab.Time) bool {
		for _, at := range list {
			if at > l.asked && at <= asked {
				return true
			}
		}
		return false
	}
	l.now += ms + l.slow[asked]
	switch {
	case news(l.drawn):
		l.pix = bytes.Repeat([]byte{l.pix[0] + 1}, len(l.pix))
		fallthrough
	case !l.begun, news(l.redrawn):
		info.Time, info.Uncertainty = l.now, l.now.Sub(asked)
		info.Changed = append(info.Changed, small.Bounds())
	default:
		info.Time, info.Flags = asked, lab.FrameRepeat
	}
	l.asked, l.begun = asked, true
	return lab.Frame{FrameInfo: l.looks.Frame(info, asked), Pix: l.pix}, nil
}

// film records a source into a reel in memory.
func film(t *testing.T, src capture.Source) (capture.Stats, *reel.Reader) {
	t.Helper()
	var file bytes.Buffer
	w, err := reel.NewWriter(&file, reel.Header{Format: src.Format()})
	if err != nil {
		t.Fatal(err)
	}
	r, err := capture.Start(context.Background(), src, w, capture.Options{NoPriority: true, Ring: 64})
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	st, err := r.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := reel.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil || got.Recovered() != nil {
		t.Fatal(err, got.Recovered())
	}
	return st, got
}

// shot is what a test wants of a frame.
type shot struct {
	At      float64 // ms
	Within  float64
	Kind    string // drawn, repeat, proven
	Changed bool
}

func shots(r *reel.Reader) (list []shot) {
	for i := range r.Len() {
		f := r.Info(i)
		s := shot{At: float64(f.Time) / 1e6, Within: f.Uncertainty.Seconds() * 1e3, Kind: "drawn", Changed: len(f.Changed) > 0}
		switch {
		case f.Flags&lab.FrameProven != 0:
			s.Kind = "proven"
		case f.Flags&lab.FrameRepeat != 0:
			s.Kind = "repeat"
		}
		list = append(list, s)
	}
	return list
}

func TestLooks(t *testing.T) {
	for _, c := range []struct {
		name   string
		source looker
		want   []shot
		proven int // ticks missed
		drawn  int
		unseen []lab.Unseen
	}{
		{
			name: "ticks overslept while nothing is drawn are frames of their own time",
			// Wakes at 46 instead of 20, so that ticks 2 and 3 are missed.
			source: looker{until: 55 * ms, oversleep: map[lab.Time]lab.Time{20 * ms: 26 * ms}},
			want: []shot{{1, 1, "drawn", true}, {10, 0, "repeat", false},
				{20, 0, "proven", false}, {30, 0, "proven", false}, {46, 0, "repeat", false}, {50, 0, "repeat", false}},
			proven: 2,
		},
		{
			name:   "what is drawn while it oversleeps has a time between the looks",
			source: looker{until: 55 * ms, oversleep: map[lab.Time]lab.Time{20 * ms: 26 * ms}, drawn: []lab.Time{12 * ms}},
			want: []shot{{1, 1, "drawn", true}, {10, 0, "repeat", false},
				{47, 1, "drawn", true}, {50, 0, "repeat", false}},
			drawn:  2,
			unseen: []lab.Unseen{{From: 10 * ms, To: 47 * ms, Missed: 2}},
		},
		{
			name:   "the same picture drawn again may have had another one before it",
			source: looker{until: 55 * ms, oversleep: map[lab.Time]lab.Time{20 * ms: 26 * ms}, redrawn: []lab.Time{33 * ms}},
			want: []shot{{1, 1, "drawn", true}, {10, 0, "repeat", false},
				{47, 1, "drawn", false}, {50, 0, "repeat", false}},
			drawn:  2,
			unseen: []lab.Unseen{{From: 10 * ms, To: 47 * ms, Missed: 2}},
		},
		{
			name: "an answer that says nothing was drawn and comes late proves the ticks meanwhile with the next",
			// The look of tick 2 is answered at 51.
			source: looker{until: 65 * ms, slow: map[lab.Time]lab.Time{20 * ms: 30 * ms}},
			want: []shot{{1, 1, "drawn", true}, {10, 0, "repeat", false}, {20, 0, "repeat", false},
				{30, 0, "proven", false}, {40, 0, "proven", false}, {51, 0, "repeat", false}, {60, 0, "repeat", false}},
			proven: 2,
		},
		{
			name: "a picture that comes late is as uncertain as it took",
			// Drawn at 15; the picture of tick 2 comes at 51, that of tick 3, 4 is not known.
			source: looker{until: 65 * ms, slow: map[lab.Time]lab.Time{20 * ms: 30 * ms}, drawn: []lab.Time{15 * ms}},
			want: []shot{{1, 1, "drawn", true}, {10, 0, "repeat", false},
				{51, 31, "drawn", true}, {51, 0, "repeat", false}, {60, 0, "repeat", false}},
			proven: 2,
			unseen: []lab.Unseen{{From: 10 * ms, To: 51 * ms}},
		},
		{
			name:   "a change after a late picture reaches back to its question",
			source: looker{until: 65 * ms, slow: map[lab.Time]lab.Time{20 * ms: 30 * ms}, drawn: []lab.Time{15 * ms, 45 * ms}},
			want: []shot{{1, 1, "drawn", true}, {10, 0, "repeat", false},
				{51, 31, "drawn", true}, {52, 1, "drawn", true}, {60, 0, "repeat", false}},
			drawn:  2,
			unseen: []lab.Unseen{{From: 10 * ms, To: 51 * ms}, {From: 20 * ms, To: 52 * ms, Missed: 2}},
		},
		{
			name:   "a look that is late by less than a period is a look like any other",
			source: looker{until: 45 * ms, oversleep: map[lab.Time]lab.Time{20 * ms: 3 * ms}, drawn: []lab.Time{12 * ms, 22 * ms, 31 * ms}},
			want: []shot{{1, 1, "drawn", true}, {10, 0, "repeat", false},
				{24, 1, "drawn", true}, {30, 0, "repeat", false}, {41, 1, "drawn", true}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			st, r := film(t, &c.source)
			if d := cmp.Diff(c.want, shots(r)); d != "" {
				t.Error(d)
			}
			if st.Lost != 0 || r.Lost() != 0 || st.Irregular != 0 || st.MissedProven != c.proven || st.MissedDrawn != c.drawn {
				t.Errorf("lost %d, irregular %d, missed %d proven and %d drawn; want 0, 0, %d and %d",
					st.Lost, st.Irregular, st.MissedProven, st.MissedDrawn, c.proven, c.drawn)
			}
			if d := cmp.Diff(c.unseen, st.Unseen); d != "" {
				t.Error(d)
			}
			var told []lab.Unseen
			for _, e := range r.Events() {
				told = append(told, lab.Unseen{From: e.From, To: e.Time, Missed: e.Missed})
				if e.Kind != lab.SourceUnseen || r.Info(e.Before).Time != e.Time {
					t.Errorf("event %+v before a frame of %v", e, r.Info(e.Before).Time)
				}
			}
			if d := cmp.Diff(c.unseen, told); d != "" {
				t.Error(d)
			}
			for i := range r.Len() {
				if r.Info(i).Seq != uint64(i) {
					t.Errorf("frame %d has the number %d: a step in them is a loss", i, r.Info(i).Seq)
				}
			}
		})
	}
}

// A machine that was held up for a long time must not fill the recorder's queue.
func TestALongStallIsNotManyFrames(t *testing.T) {
	st, r := film(t, &looker{until: 100_005 * ms, oversleep: map[lab.Time]lab.Time{20 * ms: 99_980 * ms}})
	if st.Lost != 0 || st.MissedProven != 9998 || r.Len() != 603 {
		t.Errorf("%d frames, %d lost, %d ticks proven; want 603, 0, 9998", r.Len(), st.Lost, st.MissedProven)
	}
	if at := r.Info(2).Time; at != 94_000*ms || st.Rate < 99.9 || st.Rate > 100.1 {
		t.Errorf("the first proven frame is of %v ms, %.2f ticks a second; want 94000, 100", at/ms, st.Rate)
	}
}
