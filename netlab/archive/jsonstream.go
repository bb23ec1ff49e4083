package archive

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// count takes a piece of one JSON value and returns where the value ends in it, or -1: at its closing
// bracket, or, if it has none, before the character that follows it.
func (c *jsonCounter) count(piece []byte) int {
	for i := 0; i < len(piece); i++ {
		if c.inText {
			if c.escaped {
				c.escaped = false
				continue
			}
			n := bytes.IndexAny(piece[i:], "\"\\")
			if n < 0 {
				break
			}
			if i += n; piece[i] == '\\' {
				c.escaped = true
				continue
			}
			if c.inText = false; c.depth == 0 {
				c.bytes += int64(i + 1)
				return i + 1
			}
			continue
		}
		switch piece[i] {
		case '"':
			c.inText = true
		case ',':
			c.values++
			if c.depth == 0 {
				c.bytes += int64(i)
				return i
			}
		case '{', '[':
			c.values++
			c.depth++
		case '}', ']':
			if c.depth == 0 { // of what the value is in
				c.bytes += int64(i)
				return i
			}
			if c.depth--; c.depth == 0 {
				c.bytes += int64(i + 1)
				return i + 1
			}
		case ' ', '\t', '\r', '\n':
			if c.depth == 0 && c.bytes+int64(i) > 0 {
				c.bytes += int64(i)
				return i
			}
		}
	}
	c.bytes += int64(len(piece))
	return -1
}

// jsonStream reads a JSON text value by value, so that only one of them is in memory. It finds the
// ends of values and leaves it to encoding/json to check what is in them; what nobody asks for is
// passed over unchecked.
type jsonStream struct {
	r      *bufio.Reader
	from   *counter // of which r reads
	budget *budget
}

func newJSONStream(r io.Reader, b *budget) *jsonStream {
	from := &counter{r: r}
	return &jsonStream{r: bufio.NewReaderSize(from, 64<<10), from: from, budget: b}
}

var errJSON = errors.New("the JSON is damaged") // constant

// damaged is an error at the place where the stream is.
func (s *jsonStream) damaged(format string, args ...any) error {
	return fmt.Errorf("%w at byte %d: %s", errJSON, s.from.n-int64(s.r.Buffered()), fmt.Sprintf(format, args...))
}

// next returns the first character of what follows, and leaves it there.
func (s *jsonStream) next() (byte, error) {
	for {
		c, err := s.r.ReadByte()
		if err != nil {
			return 0, unexpected(err)
		}
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, s.r.UnreadByte()
		}
	}
}

// expect takes one character.
func (s *jsonStream) expect(want byte) error {
	c, err := s.next()
	if err == nil && c != want {
		err = s.damaged("%q where %q was expected", c, want)
	}
	if err == nil {
		_, err = s.r.Discard(1)
	}
	return err
}

// value returns the next value; with keep false it is only passed over. Its cost is taken from the
// budget, and given back by the caller.
func (s *jsonStream) value(keep bool) (raw []byte, cost int64, err error) {
	if _, err := s.next(); err != nil {
		return nil, 0, err
	}
	var c jsonCounter
	for {
		piece, err := s.r.Peek(1)
		if err == nil {
			piece, err = s.r.Peek(s.r.Buffered())
		}
		if err == io.EOF && c.depth == 0 && !c.inText && c.bytes > 0 { // a number at the end
			return raw, cost, nil
		}
		if err != nil {
			return nil, cost, unexpected(err)
		}
		n := c.count(piece)
		piece = piece[:cmpEnd(n, len(piece))]
		if keep {
			more := c.cost() - cost
			cost += more
			if err := s.budget.take(more); err != nil {
				return nil, cost, err
			}
			raw = append(raw, piece...)
		}
		if _, err := s.r.Discard(len(piece)); err != nil {
			return nil, cost, err
		}
		if n >= 0 {
			if c.bytes == 0 {
				return nil, cost, s.damaged("a value is missing")
			}
			return raw, cost, nil
		}
	}
}

// cmpEnd is n, or the whole length if n is negative.
func cmpEnd(n, length int) int {
	if n < 0 {
		return length
	}
	return n
}

// decode decodes the next value into v.
func (s *jsonStream) decode(v any) (cost int64, err error) {
	raw, cost, err := s.value(true)
	if err != nil {
		return cost, err
	}
	return s.unmarshal(raw, cost, v)
}

// unmarshal decodes a value into v, and adds what it takes to its cost.
func (s *jsonStream) unmarshal(raw []byte, cost int64, v any) (int64, error) {
	var bad *json.SyntaxError
	var err error
	if err = json.Unmarshal(raw, v); errors.As(err, &bad) {
		var more int64
		for _, c := range raw {
			if c < ' ' {
				more += 6 // of which a text may have to escape each
			}
		}
		cost += int64(len(raw)) + more
		if err := s.budget.take(int64(len(raw)) + more); err != nil {
			return cost, err
		}
		if err = json.Unmarshal(mendJSON(raw), v); errors.As(err, &bad) {
			err = fmt.Errorf("%w: %w", errDamaged, bad)
		}
	}
	return cost, err
}

// object calls field for each field of an object, which reads its value.
func (s *jsonStream) object(field func(name string) error) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		done, err := s.separator('}', first)
		if done || err != nil {
			return err
		}
		var name string
		cost, err := s.decode(&name)
		s.budget.give(cost)
		if errors.Is(err, errDamaged) {
			return s.damaged("the name of a field: %v", err)
		}
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		if err := field(name); err != nil {
			return err
		}
	}
}

// array calls element for each element of an array, which reads it.
func (s *jsonStream) array(element func() error) error {
	if err := s.expect('['); err != nil {
		return err
	}
	for first := true; ; first = false {
		done, err := s.separator(']', first)
		if done || err != nil {
			return err
		}
		if err := element(); err != nil {
			return err
		}
	}
}

// separator takes the end of a list, which it reports, or the comma before its next element. There may be too many
// commas, or none before an object.
func (s *jsonStream) separator(end byte, first bool) (done bool, err error) {
	for commas := 0; ; commas++ {
		c, err := s.next()
		switch {
		case err != nil:
			return false, err
		case c == end:
			_, err = s.r.Discard(1)
			return true, err
		case c != ',' && (first || commas > 0 || c == '{'):
			return false, nil
		}
		if err := s.expect(','); err != nil {
			return false, err
		}
	}
}
