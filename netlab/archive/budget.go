package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"eidetic/internal/lab"
)

// What a reading takes besides the bytes themselves, measured with margins.
const (
	fieldCost    = 64   // of a header field: two strings in a slice that grows
	recordCost   = 512  // of a record: its maps and what parsing leaves for the garbage collector
	exchangeCost = 2048 // of an exchange that is kept: its structure, and the maps that lead to it
	addressCost  = 12   // for each byte of a URL: it is escaped, sorted, indexed, compared by its parts, and in each of their maps
	elementCost  = 64   // of a value in JSON: the largest element of a list, which grows
	textCost     = 4    // for each byte of JSON: the text, its strings, and what they are made into
)

// The ratio bound of every format: a file may take freeMemory and so many times its size. Text
// compresses to a tenth; a few bytes that unpack to gigabytes are no recording.
const (
	freeMemory   = 64 << 20
	defaultRatio = 32
)

// maxFields bounds the lines of one header; real ones have fewer than a hundred.
const maxFields = 10_000

// budget is the memory that one reading of a file may take, in estimated bytes: of headers, fields,
// entries and structures as well as of bodies. Many goroutines may use it. A nil one is unlimited.
type budget struct {
	total  int64
	left   atomic.Int64
	why    string  // where total comes from, and what helps
	parent *budget // whose total this one's use counts towards

	passing int64 // how many bytes may be passed over
	passed  atomic.Int64
}

// newBudget is the budget for a file of size bytes.
func newBudget(l Limits, size int64) *budget {
	b := &budget{total: l.Memory, passing: l.passing(size), why: fmt.Sprintf("which is the share of this machine's memory that a recording may take: " +
		"close what else runs here, trim the recording, or use a machine with more memory")}
	if most := freeMemory + int64(l.Ratio)*size; most < b.total {
		b.total = most
		b.why = fmt.Sprintf("which is %d times its size and %d MB: no real recording unpacks to so much; if you know where it comes from, "+
			"make a new one of it with appliance archive import --ratio %d", l.Ratio, freeMemory>>20, 100*l.Ratio)
	}
	b.left.Store(b.total)
	return b
}

// passing is how many bytes of a file of size bytes may be decompressed and passed over: they take no memory, but time.
func (l Limits) passing(size int64) int64 { return min(l.Decoded, freeMemory+int64(l.Ratio)*size) }

// pass counts n bytes that are passed over.
func (b *budget) pass(n int64) error {
	switch {
	case b == nil:
		return nil
	case b.parent != nil:
		b.passed.Add(n)
		return b.parent.pass(n)
	case b.passed.Add(n) > b.passing:
		return fmt.Errorf("more than %d bytes of it are blanks between records: %w", b.passing, errLimit)
	}
	return nil
}

// child is a part of b whose use can be given back at once.
func (b *budget) child() *budget {
	if b == nil {
		return nil
	}
	return &budget{parent: b}
}

// take counts n bytes, before they are allocated.
func (b *budget) take(n int64) error {
	if b == nil {
		return nil
	}
	if b.parent != nil {
		b.left.Add(-n)
		return b.parent.take(n)
	}
	if b.left.Add(-n) < 0 {
		return &memoryError{fmt.Sprintf("reading it takes more than %d MB of memory, %s", b.total>>20, b.why)}
	}
	return nil
}

// give gives n bytes back.
func (b *budget) give(n int64) {
	if b != nil {
		_ = b.take(-n) // the total cannot be exceeded by giving
	}
}

// drop gives back all that a child took.
func (b *budget) drop() {
	if b != nil {
		b.parent.give(-b.left.Swap(0))
		b.parent.passed.Add(-b.passed.Swap(0))
	}
}

// memoryError says that a file takes more memory than it may.
type memoryError struct{ text string }

func (e *memoryError) Error() string { return e.text }

// Is makes it one of the errors that end the reading.
func (e *memoryError) Is(target error) bool { return target == errLimit }

// costOf is what an exchange in memory takes.
func costOf(e *lab.Exchange) int64 {
	n := int64(exchangeCost + len(e.ID) + len(e.URL) + len(e.Response.Body) + len(e.Request.Body) + 16*len(e.Chunks) + 24*len(e.Sent))
	for _, list := range [][]lab.HeaderField{e.Request.Header, e.Response.Header, e.Request.Trailer, e.Response.Trailer} {
		for _, f := range list {
			n += int64(fieldCost + len(f.Name) + len(f.Value))
		}
	}
	for _, p := range e.Socket {
		n += int64(elementCost + len(p.Data))
	}
	for _, i := range e.Interim {
		n += int64(elementCost + fieldCost*len(i.Header))
	}
	return n
}

// costOfJSON is what a JSON text takes until it is decoded into a structure.
func costOfJSON(text []byte) int64 {
	var c jsonCounter
	c.count(bytes.TrimLeft(text, " \t\r\n"))
	return c.cost()
}

// unmarshal decodes a JSON text whose structure the budget allows. What is decoded stays counted.
func (b *budget) unmarshal(text []byte, v any) error {
	if err := b.take(costOfJSON(text)); err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// jsonCounter counts the values of a JSON text without decoding it.
type jsonCounter struct {
	bytes, values   int64
	depth           int
	inText, escaped bool
}

func (c *jsonCounter) cost() int64 { return textCost*c.bytes + elementCost*c.values }

// MemoryFor is what the reading of a file of size bytes may take, if memory is what any may take.
func MemoryFor(size, memory int64) int64 {
	return newBudget(Limits{Memory: memory, Ratio: defaultRatio}, size).total
}
