package capture

import (
	"context"
	"errors"
	"fmt"
	"io"

	"eidetic/internal/lab"
)

// Copy moves every frame of a source that waits for its reader (a file) into
// sink, however long that takes; nothing can be lost on the way. Sources with a clock
// of their own are recorded with [Start]. It closes src.
func Copy(ctx context.Context, src Source, sink Sink) (Stats, error) {
	m := meter{period: 1 / src.Format().Rate, scheduling: "normal"}
	var seq uint64
	interruptions := 0
	st := func() Stats {
		s := m.stats()
		s.Frames, s.Interruptions = m.n, interruptions
		return s
	}
	defer src.Close()
	for {
		f, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			return st(), nil
		}
		var other *Interruption
		if errors.As(err, &other) {
			interruptions++
			if werr := sink.WriteEvent(other.Event); werr != nil {
				return st(), fmt.Errorf("copy: sink: %w", werr)
			}
			if other.Ends == nil {
				continue
			}
		}
		if err != nil {
			return st(), fmt.Errorf("copy: source: %w", err)
		}
		if m.n > 0 && f.Seq > seq+1 {
			gap := lab.Gap{Seq: seq + 1, Count: int(f.Seq - seq - 1), Reason: lab.GapSource, From: m.last.Time, To: f.Time}
			if err := sink.WriteGap(gap); err != nil {
				return st(), fmt.Errorf("copy: sink: %w", err)
			}
		}
		seq = f.Seq
		if err := sink.WriteFrame(f); err != nil {
			return st(), fmt.Errorf("copy: sink: %w", err)
		}
		m.add(f.FrameInfo)
	}
}
