package lab

import "fmt"

// SourceEvent is something that happened to the source of a recording, apart
// from frames: it explains why frames are missing, late or come to an end.
type SourceEvent struct {
	Kind string `json:"kind"`    // one of the Source… constants, or a source's own word
	Time Time   `json:"time_ns"` // when it was noticed
	// Before is the index in the recording of the frame that follows the event.
	Before int    `json:"before"`
	Detail string `json:"detail,omitempty"` // for people
	// Format is what the source delivers from here on, with SourceResized, if it knows.
	Format *Format `json:"format,omitempty"`
	// From and Missed belong to SourceUnseen, which is the interval [From, Time].
	From   Time `json:"from_ns,omitempty"`
	Missed int  `json:"missed,omitempty"`
}

// What happens to sources.
const (
	SourceUnplugged  = "unplugged"           // the device has gone
	SourcePlugged    = "plugged in"          // it is there again
	SourceSignalLost = "signal lost"         // the device is there; nothing comes from the screen
	SourceSignalBack = "signal back"         // frames come again
	SourceResized    = "format changed"      // resolution, pixel format or rate
	SourceIrregular  = "irregular timestamp" // a frame's time does not fit its sequence number
	SourceUnseen     = "late look"           // the screen was drawn on while nobody looked, for longer than usual: see Unseen
	SourceUntold     = "events not recorded" // more of them came than a recording keeps; Detail says how many
)

func (e SourceEvent) String() string {
	s := fmt.Sprintf("before frame %d: %s", e.Before, e.Kind)
	if e.Format != nil {
		s += fmt.Sprintf(" to %d × %d %s at %g/s", e.Format.Width, e.Format.Height, e.Format.Pixels, e.Format.Rate)
	}
	if e.Detail != "" {
		s += ", " + e.Detail
	}
	return s
}
