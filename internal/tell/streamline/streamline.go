// Package streamline takes annotations from programs. Its first form is the byte format of ARM's Streamline profiler,
// as programs write it to /dev/gator/annotate: text that a NUL ends, before it, if the annotation has a colour, the
// byte 0x1b and one byte each of red, green and blue; an empty text ends the annotation before. Its second form is a
// note with a head, which one write of at most PIPE_BUF bytes puts into a pipe that several programs share:
//
//	0x01 note 0x1f OP 0x1f ROW 0x1f NS 0x1f COLOUR 0x1f LOST 0x1f TEXT 0x00
//
// with an operation of lab.Annotation, the writer's row, its CLOCK_MONOTONIC in ns, #rrggbb, and how many notes the
// writer could not write since its last; each field may be empty. The kernel never mixes such writes, so a note with a
// head is whole even between the pieces of another program's plain text. annotate.h and annotate.sh write it. In flow
// bytes of named pipes, Unix sockets and TCP connections, which anyone may have written; out flow annotations with the
// time at which they were made or came.
package streamline

import (
	"bytes"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// Header is the C header by which native programs annotate, and Shell the same for sh.
var (
	//go:embed annotate.h
	Header string
	//go:embed annotate.sh
	Shell string
)

// Note is an annotation with what its head said besides.
type Note struct {
	lab.Annotation
	Stamp lab.Time // the writer's own clock; 0 for none
	Lost  int      // notes that the writer could not write since its last
	Err   error    // why the head is not one; the annotation is empty then
}

// Parser cuts a stream of bytes, which comes in pieces of any length, into annotations.
type Parser struct {
	text   []byte
	colour []byte // what came of red, green and blue
	state  state
	at     lab.Time // when the first byte came

	matched int // bytes of headMark that came
	inHead  bool
	head    []byte
	headAt  lab.Time
}

type state uint8

const (
	begin    state = iota // of an annotation: a colour may come
	inColour              // whose three bytes may be any, even NUL
	inText
)

const (
	escape   = 0x1b
	headMark = "\x01note\x1f" // its first byte occurs nowhere else in it
	// mostHead is twice what a writer may put into a pipe at once.
	mostHead = 2 * 4096
)

// Feed takes bytes that came at an instant, and calls emit with each annotation that they end.
func (p *Parser) Feed(b []byte, at lab.Time, emit func(Note)) {
	for _, c := range b {
		switch {
		case p.inHead:
			p.feedHead(c, at, emit)
		case c == headMark[p.matched]:
			if p.matched == 0 {
				p.headAt = at
			}
			if p.matched++; p.matched == len(headMark) {
				p.inHead, p.matched, p.head = true, 0, p.head[:0]
			}
		default:
			held := headMark[:p.matched] // no head after all
			p.matched = 0
			for i := range len(held) {
				p.plain(held[i], p.headAt, emit)
			}
			if c == headMark[0] {
				p.matched, p.headAt = 1, at
			} else {
				p.plain(c, at, emit)
			}
		}
	}
}

// feedHead takes a byte of a note with a head.
func (p *Parser) feedHead(c byte, at lab.Time, emit func(Note)) {
	if c == 0 {
		emit(p.headed(at))
		p.inHead = false
		return
	}
	if len(p.head) < mostHead+len(headMark) {
		p.head = append(p.head, c)
	}
	if c == headMark[len(headMark)-1] && bytes.HasSuffix(p.head, []byte(headMark)) { // its writer ended before its NUL
		emit(Note{Err: fmt.Errorf("a note with a head ends without a NUL: %.40q", p.head)})
		p.head, p.headAt = p.head[:0], at
	}
}

// headed reads the note whose NUL has come.
func (p *Parser) headed(at lab.Time) Note {
	if len(p.head) > mostHead {
		return Note{Err: fmt.Errorf("a note with a head has more than %d bytes: %.40q", mostHead, p.head)}
	}
	fields := strings.SplitN(string(p.head), "\x1f", 6)
	if len(fields) < 6 {
		return Note{Err: fmt.Errorf("a note has %d of 6 fields: %.40q", len(fields), p.head)}
	}
	n := Note{Annotation: lab.Annotation{
		Op: fields[0], Group: fields[1], Colour: fields[3], Text: fields[5], Earliest: p.headAt, Latest: max(at, p.headAt),
	}}
	n.Annotation = n.Clean()
	if err := n.Check(); err != nil {
		return Note{Err: err}
	}
	if fields[2] != "" {
		ns, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil || ns < 0 {
			return Note{Err: fmt.Errorf("time %.40q: nanoseconds of CLOCK_MONOTONIC", fields[2])}
		}
		n.Stamp = lab.Time(ns)
	}
	if fields[4] != "" {
		lost, err := strconv.ParseUint(fields[4], 10, 31)
		if err != nil {
			return Note{Err: fmt.Errorf("lost %.40q: a number of notes", fields[4])}
		}
		n.Lost = int(lost)
	}
	return n
}

// plain takes a byte in Streamline's own form. Line breaks before a text are left out: echo writes one after its NUL.
func (p *Parser) plain(c byte, at lab.Time, emit func(Note)) {
	switch p.state {
	case begin:
		switch c {
		case '\n', '\r':
		case escape:
			p.state, p.at = inColour, at
		case 0:
			emit(Note{Annotation: lab.Annotation{Op: lab.AnnotateSet, Earliest: at, Latest: at}})
		default:
			p.state, p.at, p.text = inText, at, append(p.text, c)
		}
	case inColour:
		if p.colour = append(p.colour, c); len(p.colour) == 3 {
			p.state = inText
		}
	case inText:
		if c != 0 {
			if len(p.text) < 4*lab.MaxAnnotationText { // the rest up to its NUL is not kept
				p.text = append(p.text, c)
			}
			return
		}
		emit(Note{Annotation: p.annotation(at)})
		p.text, p.colour, p.state = p.text[:0], p.colour[:0], begin
	}
}

// annotation is the one that has ended: it was made when its first byte came.
func (p *Parser) annotation(at lab.Time) lab.Annotation {
	a := lab.Annotation{Op: lab.AnnotateSet, Text: string(p.text), Earliest: p.at, Latest: p.at}
	if len(p.colour) == 3 {
		a.Colour = fmt.Sprintf("#%02x%02x%02x", p.colour[0], p.colour[1], p.colour[2])
	}
	a.Latest = max(at, p.at)
	return a.Clean()
}
