package preroll_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"eidetic/capture/preroll"
	"eidetic/capture/synthetic"
	"eidetic/internal/lab"
)

// list is a sink that remembers.
type list struct {
	infos []lab.FrameInfo
	pix   [][]byte
	gaps  []lab.Gap

	events []lab.SourceEvent
}

func (l *list) WriteEvent(e lab.SourceEvent) error {
	l.events = append(l.events, e)
	return nil
}

func (l *list) WriteFrame(f lab.Frame) error {
	l.infos, l.pix = append(l.infos, f.FrameInfo), append(l.pix, bytes.Clone(f.Pix))
	return nil
}

func (l *list) WriteGap(g lab.Gap) error {
	l.gaps = append(l.gaps, g)
	return nil
}

func TestRecordingBeginsBeforeTheTrigger(t *testing.T) {
	f := lab.Format{Pixels: lab.BGRX, Width: 320, Height: 60, Rate: 60}
	src, err := synthetic.New(synthetic.Options{Format: f, Content: synthetic.Scroll})
	if err != nil {
		t.Fatal(err)
	}
	var sink list
	ring, err := preroll.New(&sink, preroll.Options{Format: f, Length: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	const trigger, frames = 300, 330
	for n := range frames {
		if n == trigger {
			if len(sink.infos) > 0 {
				t.Fatalf("%d frames went on before the trigger", len(sink.infos))
			}
			ring.Trigger()
		}
		if n == trigger-20 {
			if err := ring.WriteGap(lab.Gap{Seq: 1, Count: 2}); err != nil {
				t.Fatal(err)
			}
		}
		fr, err := src.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := ring.WriteFrame(fr); err != nil {
			t.Fatal(err)
		}
	}
	first := int(sink.infos[0].Seq)
	if before := trigger - first; before < 60 || before > 80 {
		t.Errorf("the recording begins %d frames before the trigger", before)
	}
	if len(sink.gaps) != 1 || ring.Dropped() != 0 {
		t.Errorf("gaps %v, %d frames dropped", sink.gaps, ring.Dropped())
	}
	for i, info := range sink.infos {
		if int(info.Seq) != first+i {
			t.Fatalf("frame %d has the number %d", i, info.Seq)
		}
		if n, ok := synthetic.ReadCounter(f, sink.pix[i]); !ok || n != uint32(info.Seq) {
			t.Fatalf("frame %d shows %d (%v)", info.Seq, n, ok)
		}
	}
}

func TestLimitDropsTheOldest(t *testing.T) {
	f := lab.Format{Pixels: lab.Grey, Width: 320, Height: 60, Rate: 60}
	src, err := synthetic.New(synthetic.Options{Format: f, Content: synthetic.Noise})
	if err != nil {
		t.Fatal(err)
	}
	var sink list
	ring, err := preroll.New(&sink, preroll.Options{Format: f, Length: 10 * time.Second, Limit: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for range 400 {
		fr, err := src.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := ring.WriteFrame(fr); err != nil {
			t.Fatal(err)
		}
	}
	ring.Trigger()
	fr, _ := src.Next(context.Background())
	if err := ring.WriteFrame(fr); err != nil {
		t.Fatal(err)
	}
	if kept := len(sink.infos) - 1; ring.Dropped()+kept != 400 || ring.Dropped() == 0 || sink.infos[kept].Seq != 400 {
		t.Errorf("%d kept and %d dropped of 400", kept, ring.Dropped())
	}
}
