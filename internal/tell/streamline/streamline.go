// Package streamline takes annotations in the byte format of ARM's Streamline profiler, as programs write them to
// /dev/gator/annotate: text that a NUL ends, before it, if the annotation has a colour, the byte 0x1b and one
// byte each of red, green and blue; an empty text ends the annotation before. It reads them from a named pipe and from
// TCP connections. In flow bytes that anyone may have written, out flow annotations with the time at which they came.
package streamline

import (
	"fmt"

	"eidetic/internal/lab"
)

// Parser cuts a stream of bytes, which comes in pieces of any length, into annotations.
type Parser struct {
	text   []byte
	colour []byte // what came of red, green and blue
	state  state
	at     lab.Time // when the first byte came
}

type state uint8

const (
	begin    state = iota // of an annotation: a colour may come
	inColour              // whose three bytes may be any, even NUL
	inText
)

const escape = 0x1b

// Feed takes bytes that came at an instant, and calls emit with each annotation that they end. Line breaks before a
// text are left out: echo writes one after its NUL.
func (p *Parser) Feed(b []byte, at lab.Time, emit func(lab.Annotation)) {
	for _, c := range b {
		switch p.state {
		case begin:
			switch c {
			case '\n', '\r':
				continue
			case escape:
				p.state, p.at = inColour, at
			case 0:
				emit(lab.Annotation{Op: lab.AnnotateSet, Earliest: at, Latest: at})
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
				continue
			}
			emit(p.annotation(at))
			*p = Parser{text: p.text[:0]}
		}
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
