package reel

import "eidetic/internal/lab"

// Note is what stands between two frames: a gap, or something that happened
// to the source. One of both is nil.
type Note struct {
	Gap   *lab.Gap
	Event *lab.SourceEvent
}

// Before is the index of the frame that follows.
func (n Note) Before() int {
	if n.Gap != nil {
		return n.Gap.Before
	}
	return n.Event.Before
}

func (n Note) String() string {
	if n.Gap != nil {
		return n.Gap.String()
	}
	return n.Event.String()
}

// Notes are the notes of a reel in its order.
type Notes []Note

// NoteSink takes notes; a capture.Sink is one.
type NoteSink interface {
	WriteGap(lab.Gap) error
	WriteEvent(lab.SourceEvent) error
}

// Write writes the notes before frame number index to sink, and takes them off the list.
func (n *Notes) Write(sink NoteSink, index int) error {
	for ; len(*n) > 0 && (*n)[0].Before() <= index; *n = (*n)[1:] {
		note, err := (*n)[0], error(nil)
		if note.Gap != nil {
			err = sink.WriteGap(*note.Gap)
		} else {
			err = sink.WriteEvent(*note.Event)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
