package lab

import "fmt"

// SourceEvent is something that happened to the source of a recording and explains why
// frames are missing, late or at an end.
type SourceEvent struct {
	Kind string `json:"kind"`    // one of the Source… constants, or a source's own word
	Time Time   `json:"time_ns"` // when it was noticed
	// Before is the index in the recording of the frame that follows the event.
	Before int    `json:"before"`
	Detail string `json:"detail,omitempty"` // for people
	// Format is the new format, with SourceResized and if it is known.
	Format *Format `json:"format,omitempty"`
	// From belongs to SourceUnseen and SourceBlue, which are the interval [From, Time]; Missed to SourceUnseen.
	From   Time `json:"from_ns,omitempty"`
	Missed int  `json:"missed,omitempty"`
}

// The kinds of source events.
const (
	SourceUnplugged  = "unplugged"           // the device was removed
	SourcePlugged    = "plugged in"          // the device is back
	SourceSignalLost = "signal lost"         // the device is present, but the screen sends no signal
	SourceSignalBack = "signal back"         // frames arrive again
	SourceResized    = "format changed"      // resolution, pixel format or rate
	SourceIrregular  = "irregular timestamp" // a frame's time does not fit its sequence number
	SourceUnseen     = "late look"           // the screen changed in an unusually long interval between two looks, see Unseen
	SourceBlue       = "blue picture"        // all of the picture was one blue, as grabbers show while they have no signal
	SourceDamaged    = "damaged video"       // of a compressed film: pictures may not be what was filmed
	SourceUntold     = "events not recorded" // more events than a recording keeps; Detail says how many
)

// Blue is a stretch in which a grabber showed nothing but one blue.
type Blue struct {
	From   Time `json:"from_ns"`
	To     Time `json:"to_ns"` // of the first frame that showed something else, or of the last one
	Frames int  `json:"frames"`
}

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
