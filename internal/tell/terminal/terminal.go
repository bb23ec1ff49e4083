// Package terminal tells a person at a terminal, or a script, what a run found: the answer in words, short tables, the
// line for scripts, and how a run goes while it goes on. Text of others, such as an address in a recording, is printed
// so that the terminal obeys nothing in it.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Console is where a person, or a program, reads what a command prints. Colours and bars are for terminals alone.
type Console struct {
	out      io.Writer
	Terminal bool // and no file or pipe
	width    int  // of a terminal, in characters; 0: lines have any length
	colours  bool
}

// usualWidth is that of a terminal that does not say its own.
const usualWidth = 80

// Is tells whether out is a terminal, at which a person reads.
func Is(out io.Writer) bool {
	f, ok := out.(described)
	return ok && term.IsTerminal(int(f.Fd()))
}

// described is a file, or what writes into one.
type described interface{ Fd() uintptr }

// New returns the console of a command's output.
func New(out io.Writer) Console {
	if !Is(out) {
		return Console{out: out}
	}
	c := Console{out: out, Terminal: true, width: usualWidth}
	if width, _, err := term.GetSize(int(out.(described).Fd())); err == nil && width > 0 {
		c.width = width
	}
	c.colours = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" // https://no-color.org
	return c
}

// The colours, by their numbers in the orders of ECMA-48 that set them.
const (
	bold  = "1"
	faint = "2"
	Red   = "31"
	Green = "32"
)

// paint is a text in a colour, where there are colours.
func (c *Console) paint(colour, text string) string {
	if !c.colours || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Line prints a text that others may have written, broken between words where the terminal is narrower.
func (c *Console) Line(text string) { c.coloured("", text) }

// coloured is Line in a colour.
func (c *Console) coloured(colour, text string) {
	for _, line := range c.wrapped(Visible(text)) {
		fmt.Fprintln(c.out, c.paint(colour, line))
	}
}

// wrapped breaks a text into lines.
func (c *Console) wrapped(text string) (lines []string) {
	if c.width == 0 {
		return []string{text}
	}
	for _, paragraph := range strings.Split(text, "\n") {
		line, length := "", 0
		for i, word := range strings.Split(paragraph, " ") {
			n := utf8.RuneCountInString(word)
			if i > 0 && length+1+n > c.width {
				lines, line, length = append(lines, line), word, n
				continue
			}
			if i > 0 {
				line, length = line+" ", length+1
			}
			line, length = line+word, length+n
		}
		lines = append(lines, line)
	}
	return lines
}
