package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"eidetic/internal/lab"

	"github.com/klauspost/compress/gzip"
)

// record is one WARC record, read or about to be written.
type record struct {
	header []lab.HeaderField
	block  []byte

	headerCost int64 // taken from the budget; the header is not kept

	resized int64 // how many bytes more the block has than its record states
	skipped int64 // damaged bytes before it
	odd     int   // lines of its header that are no fields
}

func (r *record) get(name string) string {
	m := lab.Message{Header: r.header}
	return m.Get(name)
}

// id returns the WARC-Record-ID without angle brackets.
func (r *record) id() string { return unbracket(r.get("WARC-Record-ID")) }

// kind is the record's type in lower case; one without a type is told by its block.
func (r *record) kind() string {
	switch kind := strings.ToLower(r.get("WARC-Type")); {
	case kind != "":
		return kind
	case bytes.HasPrefix(r.block, []byte("HTTP/")):
		return "response"
	case strings.Contains(r.get("Content-Type"), "msgtype=request"):
		return "request"
	}
	return ""
}

func unbracket(s string) string { return strings.TrimSuffix(strings.TrimPrefix(s, "<"), ">") }

// members are records that are written together, each as a gzip member: into memory, or large ones to the file behind
// its complete records.
type members struct {
	buffer bytes.Buffer
	file   *os.File // nil for memory
	at     int64    // where in the file
	n      int64    // bytes written
	limits Limits
	blocks int64 // bytes of their blocks, which a reader counts
	// packers are the compressors that were used before, by their level: making one takes longer than a small record.
	packers *sync.Map
}

// packer returns a compressor, and what keeps it for the next record.
func (m *members) packer(level int) (z *gzip.Writer, done func(), err error) {
	made, _ := m.packers.LoadOrStore(level, &sync.Pool{})
	pool := made.(*sync.Pool)
	if z, ok := pool.Get().(*gzip.Writer); ok {
		z.Reset(m)
		return z, func() { z.Reset(io.Discard); pool.Put(z) }, nil
	}
	z, err = gzip.NewWriterLevel(m, level)
	return z, func() { z.Reset(io.Discard); pool.Put(z) }, err
}

// Write implements io.Writer.
func (m *members) Write(p []byte) (n int, err error) {
	if m.file != nil {
		n, err = m.file.WriteAt(p, m.at+m.n)
	} else {
		n, err = m.buffer.Write(p)
	}
	m.n += int64(n)
	return n, err
}

// cut drops what was written after the first n bytes.
func (m *members) cut(n int64) error {
	m.n = n
	if m.file != nil {
		return m.file.Truncate(m.at + n)
	}
	m.buffer.Truncate(int(n))
	return nil
}

// add appends a record, unless it is so large that every reader would refuse the file.
func (m *members) add(level int, header []lab.HeaderField, block ...[]byte) error {
	size, fields := int64(0), 0
	for _, b := range block {
		size += int64(len(b))
	}
	for _, f := range header {
		fields += len(f.Name) + len(f.Value) + len(": \r\n")
	}
	const others = 64 // version, Content-Length, and the end
	if size > m.limits.block() || fields+others > m.limits.Header {
		return fmt.Errorf("a record of %d bytes with a header of %d is more than a reader takes (%d, %d)",
			size, fields, m.limits.block(), m.limits.Header)
	}
	m.blocks += size
	from := m.n
	if err := m.member(level, header, block...); err != nil {
		return err
	}
	if packed := m.n - from; size > mayShrink && size > packed*storedRatio && level != gzip.NoCompression {
		if err := m.cut(from); err != nil {
			return err
		}
		return m.member(gzip.NoCompression, header, block...)
	}
	return nil
}

// A record that compresses to less than 1 of storedRatio is stored as it is, unless it is small: what is
// written here must be within the ratio that a reader takes.
const (
	storedRatio = defaultRatio / 2
	mayShrink   = 16 << 10
)

// member appends the record as one gzip member (WARC 1.1, annex D). level is the
// compressor's: bodies that are compressed already are only stored.
func (m *members) member(level int, header []lab.HeaderField, block ...[]byte) error {
	z, done, err := m.packer(level)
	if err != nil {
		return err
	}
	defer done()
	size := 0
	for _, b := range block {
		size += len(b)
	}
	var h bytes.Buffer
	h.WriteString("WARC/1.1\r\n")
	for _, f := range header {
		// A line break inside a value would forge fields.
		h.WriteString(f.Name + ": " + oneLine(f.Value) + "\r\n")
	}
	fmt.Fprintf(&h, "Content-Length: %d\r\n\r\n", size)
	if _, err := z.Write(h.Bytes()); err != nil {
		return err
	}
	for _, b := range block {
		if _, err := z.Write(b); err != nil {
			return err
		}
	}
	if _, err := z.Write([]byte("\r\n\r\n")); err != nil {
		return err
	}
	return z.Close()
}

func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
}

// errLimit marks a file that exceeds the limits; reading stops.
var errLimit = errors.New("the file is larger than the limit")

// recordBuffer is the buffer of a recordReader; bodies bypass it.
const recordBuffer = 16 << 10

// recordReader reads records from a decompressed stream.
type recordReader struct {
	r       *bufio.Reader
	limits  Limits
	decoded *atomic.Int64 // bytes that all readers of the file have taken
	count   int           // records read
	resized int           // records whose stated length was wrong
}

func newRecordReader(r io.Reader, l Limits, decoded *atomic.Int64) *recordReader {
	return &recordReader{r: bufio.NewReaderSize(r, recordBuffer), limits: l, decoded: decoded}
}

// next returns the next complete record, or io.EOF at a clean end. Any other error means that the
// rest cannot be read: io.ErrUnexpectedEOF for a cut-off end.
func (rr *recordReader) next() (*record, error) {
	version, err := rr.startLine()
	if err != nil {
		return nil, err
	}
	if rr.count == 0 && strings.HasPrefix(version, arcMagic) {
		return nil, errARC
	}
	if rr.count == 0 && isGzip([]byte(version)) {
		return nil, errors.New("it is compressed by gzip twice: decompress it once (gunzip), and import what comes of that")
	}
	rec := &record{}
	if !strings.HasPrefix(version, "WARC/") {
		var member *memberError
		if rec.skipped, err = rr.skip(); errors.As(err, &member) {
			return nil, err
		}
		if err != nil || rr.count == 0 {
			return nil, fmt.Errorf("record %d starts with %.20q instead of WARC/1.x", rr.count+1, version)
		}
		rec.skipped += int64(len(version))
	}
	budget := rr.limits.Header
	fields := fieldReader{budget: rr.limits.budget}
	for {
		line, err := rr.line(&budget)
		if err != nil {
			return nil, unexpected(err)
		}
		if line == "" {
			break
		}
		switch ok, err := fields.line(line); {
		case err != nil:
			return nil, fmt.Errorf("record %d: %w", rr.count+1, err)
		case !ok:
			rec.odd++
		}
	}
	rec.header, rec.headerCost = fields.done(), fields.cost
	var impossible error
	size, err := strconv.ParseInt(rec.get("Content-Length"), 10, 64)
	if err != nil || size < 0 {
		size, impossible = 0, fmt.Errorf("record %d has the Content-Length %.40q", rr.count+1, rec.get("Content-Length"))
	}
	if size > rr.limits.block() {
		impossible = fmt.Errorf("record %d has %d bytes, more than %d: %w", rr.count+1, size, rr.limits.block(), errLimit)
		size = 0
	}
	if rr.decoded.Add(size) > rr.limits.Decoded {
		return nil, fmt.Errorf("the records hold more than %d bytes: %w", rr.limits.Decoded, errLimit)
	}
	if err := rr.limits.budget.take(recordCost + size); err != nil {
		return nil, fmt.Errorf("record %d has %d bytes: %w", rr.count+1, size, err)
	}
	rec.block, err = readBlock(rr.r, size)
	if err = rr.settle(rec, err); err != nil {
		rr.limits.budget.give(size)
		return nil, cmp.Or(impossible, unexpected(err))
	}
	rr.count++
	return rec, nil
}

// skip passes over damaged lines up to the first line of a record, which it takes, and counts their bytes.
func (rr *recordReader) skip() (n int64, err error) {
	for {
		line, err := rr.r.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return n, err
		}
		if bytes.HasPrefix(line, nextRecord[1:]) {
			return n, nil
		}
		if n += int64(len(line)); rr.decoded.Add(int64(len(line))) > rr.limits.Decoded {
			return n, errLimit
		}
	}
}

// Bounds on the search for the next record after one whose stated length is wrong.
const (
	maxResized = 64        // records of a file
	maxBehind  = 256 << 10 // bytes that a block has beyond its stated length
)

var nextRecord = []byte("\nWARC/1.") // constant

// settle makes a block end where the next record begins, if its stated length is wrong. failed is the error of reading
// the block.
func (rr *recordReader) settle(rec *record, failed error) error {
	if failed == nil {
		ahead, err := rr.r.Peek(16)
		rest := bytes.TrimLeft(ahead, behindRecord)
		if len(rest) == 0 && (err != nil || len(ahead) > 0) || bytes.HasPrefix(rest, nextRecord[1:]) ||
			bytes.HasPrefix(rest, []byte("WARC/")) || bytes.HasPrefix(ahead, []byte("\r\n\r\n")) { // what follows is damaged
			rr.trim(rec, ahead)
			return nil
		}
	} else if failed != io.EOF && failed != io.ErrUnexpectedEOF {
		return failed
	}
	if rr.resized++; rr.resized > maxResized {
		return cmp.Or(failed, fmt.Errorf("more than %d records state a wrong length", maxResized))
	}
	size := len(rec.block)
	at := bytes.Index(rec.block, nextRecord)
	if tail := max(0, size-len(nextRecord)+1); at < 0 { // or it ends within that
		ahead, _ := rr.r.Peek(len(nextRecord))
		if i := bytes.Index(append(bytes.Clone(rec.block[tail:]), ahead...), nextRecord); i >= 0 && tail+i < size {
			at = tail + i
		}
	}
	if at >= 0 { // the length is too large
		rr.r = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(rec.block[at+1:]), rr.r), recordBuffer)
		rec.block = bytes.TrimSuffix(rec.block[:at+1:at+1], []byte("\r\n\r\n"))
		rec.resized = int64(len(rec.block) - size)
		return nil
	}
	if failed != nil {
		return failed
	}
	var behind []byte // the length is too small
	for {
		line, err := rr.r.ReadSlice('\n')
		behind = append(behind, line...)
		next, _ := rr.r.Peek(len(nextRecord) - 1)
		if err != nil && err != bufio.ErrBufferFull && err != io.EOF || len(behind) > maxBehind {
			return fmt.Errorf("record %d is longer than it states, and no other follows", rr.count+1)
		}
		if err == io.EOF || err == nil && bytes.Equal(next, nextRecord[1:]) {
			break
		}
	}
	behind = bytes.TrimSuffix(behind, []byte("\r\n\r\n"))
	if err := rr.limits.budget.take(int64(len(behind))); err != nil {
		return err
	}
	rec.block, rec.resized = append(rec.block, behind...), int64(len(behind))
	return nil
}

// trim takes the beginning of the empty lines after a record off its block, where the length is too large by that.
func (rr *recordReader) trim(rec *record, ahead []byte) {
	for more, rest := range map[string]string{"\r": "\n\r\nWARC/", "\r\n\r": "\nWARC/"} {
		if bytes.HasPrefix(ahead, []byte(rest)) && bytes.HasSuffix(rec.block, []byte(more)) {
			rec.block, rec.resized = rec.block[:len(rec.block)-len(more)], int64(-len(more))
			return
		}
	}
}

// startLine returns the first line of the next record.
func (rr *recordReader) startLine() (string, error) {
	if _, err := skipBlanks(rr.r, rr.limits.budget); err != nil {
		return "", err
	}
	if rr.count == 0 { // of what is compressed, only this tells what it is
		head, _ := rr.r.Peek(mostMagic)
		isLine := len(head) < mostMagic || bytes.IndexByte(head, '\n') >= 0
		if otherThan(head) != "" || !isLine && !isGzip(head) {
			return "", unknown(head)
		}
	}
	budget := 4096
	return rr.line(&budget)
}

// betweenRecords is what some tools put before, between and behind records, besides the two line ends: blanks, zeros,
// and the byte order marks of files that were joined as text. Right behind a record zeros may be the rest of its block,
// whose stated length is too small.
const (
	behindRecord   = "\r\n \t\ufeff"
	betweenRecords = behindRecord + "\x00"
)

// skipBlanks passes over what stands before a record, within a budget.
func skipBlanks(r *bufio.Reader, b *budget) (n int64, err error) {
	for {
		if _, err := r.Peek(len(byteOrderMark)); err != nil && r.Buffered() == 0 {
			return n, err
		}
		piece, _ := r.Peek(r.Buffered()) // it is there
		rest := bytes.TrimLeft(piece, betweenRecords)
		skipped := len(piece) - len(rest)
		n += int64(skipped)
		_, _ = r.Discard(skipped)
		if skipped == 0 {
			return n, nil
		}
		if err := b.pass(int64(skipped)); err != nil {
			return n, err
		}
	}
}

// line reads one line without its end, which may be LF alone.
func (rr *recordReader) line(budget *int) (string, error) {
	var line []byte
	for {
		part, err := rr.r.ReadSlice('\n')
		if *budget -= len(part); *budget < 0 {
			return "", fmt.Errorf("record %d has a header of more than %d bytes: %w", rr.count+1, rr.limits.Header, errLimit)
		}
		line = append(line, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if err == io.EOF && len(line) > 0 {
			return "", io.ErrUnexpectedEOF
		}
		if err != nil {
			return "", err
		}
		return strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"), nil
	}
}

// readBlock reads size bytes. Room that size asks for in vain is never touched, and so is no memory of
// the machine's.
func readBlock(r io.Reader, size int64) ([]byte, error) {
	b := make([]byte, size)
	n, err := io.ReadFull(r, b)
	return b[:n], err
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
