package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Annotation is a note that a page, a program or a person put onto a trial's timeline. It was made in
// [Earliest, Latest]; one that came over a wire without a time of its own has the time of its arrival,
// and was made before it.
type Annotation struct {
	Op     string    `json:"op"` // one of the Annotate… constants
	Text   string    `json:"text,omitempty"`
	Group  string    `json:"group,omitempty"`  // its row on the timeline
	Colour string    `json:"colour,omitempty"` // #rrggbb
	Source string    `json:"source"`           // "page", "panel", "command", "fifo", "socket", "tcp", "log", "otlp"
	Wall   time.Time `json:"wall,omitzero"`    // of an annotation that belongs to a run: which trial's it is

	Earliest Time `json:"earliest_ns"`
	Latest   Time `json:"latest_ns"`
	// Lasts is how long an AnnotateSpan lasts, in ns.
	Lasts int64 `json:"lasts_ns,omitempty"`
	// Key joins an AnnotateSend with the AnnotateReceive of the same message; without one the text does. Bytes is the
	// message's size.
	Key   string `json:"key,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	// PageMS is the page's performance.now(), of a page's annotations.
	PageMS float64 `json:"page_ms,omitempty"`
}

// What an annotation does.
const (
	// AnnotateSet begins an interval that the group's next one ends; one without text only ends (Streamline).
	AnnotateSet   = "set"
	AnnotateMark  = "mark"  // an instant
	AnnotateBegin = "begin" // begins an interval, inside those of the group that have not ended
	AnnotateEnd   = "end"   // ends the group's newest interval of that text, or without text the newest; without a group, any group's
	// AnnotatePause stops the clock of an interval, found as AnnotateEnd does, until AnnotateResume: what an
	// asynchronous task waits for is not its own time (Enso).
	AnnotatePause  = "pause"
	AnnotateResume = "resume"
	AnnotateSpan   = "span" // an interval that lasts for Annotation.Lasts
	// AnnotateSend and AnnotateReceive are the ends of a message: an arrow leads from one to the other (Enso's
	// beanpoles).
	AnnotateSend    = "send"
	AnnotateReceive = "receive"
)

// MessageGroup is the group of what pages say to others; those of frames and workers begin with it.
const MessageGroup = "messages"

// AnnotateOps are all of them.
func AnnotateOps() []string {
	return []string{AnnotateSet, AnnotateMark, AnnotateBegin, AnnotateEnd, AnnotatePause, AnnotateResume, AnnotateSpan, AnnotateSend,
		AnnotateReceive}
}

// Bounds of annotations.
const (
	MostAnnotations    = 10000  // of a trial's pages
	MostRunAnnotations = 100000 // of a run's file: four programs that write 1,000 a second for 25 s
	MaxAnnotationText  = 4096   // bytes
	MaxAnnotationGroup = 100    // bytes
	MaxAnnotationKey   = 60     // bytes
)

// Check returns an error for an annotation that nothing can show, which says what to change.
func (a Annotation) Check() error {
	switch {
	case !slices.Contains(AnnotateOps(), a.Op):
		return fmt.Errorf("op %.20q: set, mark, begin, end, pause, resume, span, send or receive", a.Op)
	case a.Text == "" && slices.Contains([]string{AnnotateMark, AnnotateBegin, AnnotateSpan, AnnotateSend, AnnotateReceive}, a.Op):
		return fmt.Errorf("text: a %s needs one", a.Op)
	case len(a.Text) > MaxAnnotationText:
		return fmt.Errorf("text: %d bytes; at most %d", len(a.Text), MaxAnnotationText)
	case len(a.Group) > MaxAnnotationGroup:
		return fmt.Errorf("group: %d bytes; at most %d", len(a.Group), MaxAnnotationGroup)
	case a.Colour != "" && !IsColour(a.Colour):
		return fmt.Errorf("colour %.20q: write it as #rrggbb", a.Colour)
	case (a.Op == AnnotateSpan) != (a.Lasts > 0) || a.Lasts < 0 || a.Lasts > 86400e9:
		return fmt.Errorf("lasts_ns: %d: a span lasts for up to a day, and nothing else does", a.Lasts)
	case len(a.Key) > MaxAnnotationKey:
		return fmt.Errorf("key: %d bytes; at most %d", len(a.Key), MaxAnnotationKey)
	case a.Bytes < 0 || a.Bytes > 1<<50:
		return fmt.Errorf("bytes: %d: from 0 to a petabyte", a.Bytes)
	case a.Latest < a.Earliest:
		return fmt.Errorf("latest_ns is before earliest_ns")
	}
	return nil
}

// Clean returns the annotation with its text and group fit to be shown on a line, cut to their bounds, and
// without a colour that is none.
func (a Annotation) Clean() Annotation {
	a.Text, a.Group, a.Key = OneLine(a.Text, MaxAnnotationText), OneLine(a.Group, MaxAnnotationGroup), OneLine(a.Key, MaxAnnotationKey)
	if !IsColour(a.Colour) {
		a.Colour = ""
	}
	return a
}

// OneLine makes text from outside printable and puts it on one line of at most so many bytes: control
// characters, and those that turn the direction of text, become spaces.
func OneLine(text string, most int) string {
	text = text[:min(len(text), 4*most+64)] // no work for what is cut anyway
	isGap := func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }
	clean := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\ufffd"), isGap), " ")
	if len(clean) <= most {
		return clean
	}
	cut := most - len("…")
	for cut > 0 && !utf8.RuneStart(clean[cut]) {
		cut--
	}
	return clean[:cut] + "…"
}

// IsColour says whether a text is a colour, #rrggbb.
func IsColour(text string) bool {
	return len(text) == 7 && text[0] == '#' && strings.Trim(text[1:], "0123456789abcdefABCDEF") == ""
}
