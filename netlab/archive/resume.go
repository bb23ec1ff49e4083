package archive

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A WARC is made of gzip members or zstd frames, one for each record, so that one that is damaged costs no other. This
// file finds the next one.

// memberError says which gzip member is damaged: the one at this byte of what was read.
type memberError struct {
	at    int64
	plain int64 // where it begins in what was decompressed
	err   error
}

func (e *memberError) Error() string { return e.err.Error() }
func (e *memberError) Unwrap() error { return e.err }

// memberReader reads gzip members one after the other.
type memberReader struct {
	from *counter
	file *bufio.Reader // of it
	z    *gzip.Reader
	at   int64 // where the member begins
	// plain is where it begins in what is decompressed, of which n bytes were read.
	plain, n int64
}

// counter counts what is read.
type counter struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func newMemberReader(r io.Reader) (*memberReader, error) {
	m := &memberReader{from: &counter{r: r}}
	m.file = bufio.NewReaderSize(m.from, 64<<10)
	var err error
	if m.z, err = gzip.NewReader(m.file); err != nil {
		return nil, &memberError{err: unexpected(err)}
	}
	m.z.Multistream(false)
	return m, nil
}

// Read implements io.Reader.
func (m *memberReader) Read(p []byte) (int, error) {
	for {
		n, err := m.z.Read(p)
		m.n += int64(n)
		if err != nil && err != io.EOF {
			return n, &memberError{m.at, m.plain, err}
		}
		if err == io.EOF {
			m.skipZeros()
			m.at, m.plain = m.from.n-int64(m.file.Buffered()), m.n
			if err = m.z.Reset(m.file); err != nil && err != io.EOF {
				err = &memberError{m.at, m.plain, err}
			}
			m.z.Multistream(false)
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// skipZeros skips what pads a file behind a member, as gzip does.
func (m *memberReader) skipZeros() {
	for {
		if b, err := m.file.Peek(1); err != nil || b[0] != 0 {
			return // whoever reads next finds the error
		}
		_, _ = m.file.Discard(1) // it is there
	}
}

// readFrom reads a WARC from a byte on. Of a gzip member or a zstd frame that is damaged the next is read; without one
// it returns the error.
func (ld *loader) readFrom(file *io.SectionReader, from int64) error {
	front, _ := skipBlanks(bufio.NewReader(io.NewSectionReader(file, 0, file.Size())), nil) // whoever reads next finds the error
	if front > 0 && front == file.Size() {
		return unknown(nil)
	}
	magic := make([]byte, 4)
	_, _ = file.ReadAt(magic, front)
	from = max(from, front)
	for passes := 0; ; passes++ {
		before, rest := ld.records, io.NewSectionReader(file, from, file.Size()-from)
		err := error(nil)
		if isGzip(magic) { // what begins with other bytes from here on is damaged
			err = ld.readGzip(rest)
		} else {
			err = ld.readPacked(rest)
		}
		if err == nil || errors.Is(err, errLimit) || errors.Is(err, errARC) || passes == maxResized {
			return err
		}
		bad, next := ld.nextMember(file, from, ld.records-before, err)
		if next < 0 {
			return err
		}
		ld.a.lose("%d bytes from byte %d on are damaged (%v), and left out with the record in them", next-bad, bad, err)
		from = next
	}
}

// readGzip reads the records of gzip members.
func (ld *loader) readGzip(r io.Reader) error {
	m, err := newMemberReader(r)
	if err != nil {
		return err
	}
	defer m.z.Close()
	return ld.read(m)
}

// nextMember returns where the damaged member or frame is that ended a reading from a byte on after so many
// records, and where the next one begins, or -1.
func (ld *loader) nextMember(file *io.SectionReader, from int64, records int, failed error) (bad, next int64) {
	var member *memberError
	if errors.As(failed, &member) {
		bad = from + member.at
		return bad, nextGzip(file, bad+1)
	}
	magic := make([]byte, 4)
	if _, err := file.ReadAt(magic, from); err != nil || string(magic) != zstdMagic && string(magic) != zstdDictionary {
		return 0, -1
	}
	bad = from
	for left := records; ; left-- { // the format has a frame for each record
		if _, err := file.ReadAt(magic, bad); err == nil && string(magic) == zstdDictionary {
			left++
		}
		end, ok := zstdFrameEnd(file, bad)
		if !ok {
			return bad, find(file, bad+1, []byte(zstdMagic), func(int64) bool { return true })
		}
		if left <= 0 {
			if _, err := file.ReadAt(magic, end); err != nil {
				return bad, -1
			}
			return bad, end
		}
		bad = end
	}
}

// nextGzip finds a gzip member with a WARC record.
func nextGzip(file *io.SectionReader, from int64) int64 {
	z, tries, head := &gzip.Reader{}, 0, make([]byte, len(nextRecord)-1)
	return find(file, from, []byte{0x1f, 0x8b, 8}, func(at int64) bool {
		const most = 10_000 // of a hostile file every third byte may look like one
		if tries++; tries > most {
			return false
		}
		if z.Reset(bufio.NewReaderSize(io.NewSectionReader(file, at, file.Size()-at), 512)) != nil {
			return false
		}
		n, _ := io.ReadFull(z, head)
		return bytes.Equal(head[:n], nextRecord[1:])
	})
}

// find returns the first place from a byte on that has the magic bytes and fits, or -1.
func find(file *io.SectionReader, from int64, magic []byte, fits func(at int64) bool) int64 {
	buffer := make([]byte, 64<<10)
	for from < file.Size() {
		n, err := file.ReadAt(buffer, from)
		if n < len(magic) {
			return -1
		}
		for i := 0; ; i++ {
			j := bytes.Index(buffer[i:n], magic)
			if j < 0 {
				break
			}
			if i += j; fits(from + int64(i)) {
				return from + int64(i)
			}
		}
		if err != nil {
			return -1
		}
		from += int64(n - len(magic) + 1)
	}
	return -1
}

// isSkippable tells a frame of zstd that decompresses to nothing, by its first four bytes.
func isSkippable(magic []byte) bool {
	const skippable = 0x184d2a50 // to 0x184d2a5f
	return binary.LittleEndian.Uint32(magic)&^0xf == skippable
}

// zstdFrameEnd returns where a frame ends (RFC 8878, section 3.1), without decompressing it.
func zstdFrameEnd(file io.ReaderAt, at int64) (end int64, ok bool) {
	const (
		blockRLE     = 1
		checksumSize = 4
	)
	head := make([]byte, zstd.HeaderMaxSize)
	n, _ := file.ReadAt(head, at)
	if n >= 8 && isSkippable(head) {
		return at + 8 + int64(binary.LittleEndian.Uint32(head[4:])), true
	}
	var h zstd.Header
	if h.Decode(head[:n]) != nil {
		return 0, false
	}
	block := make([]byte, 3)
	for at += int64(h.HeaderSize); ; {
		if _, err := file.ReadAt(block, at); err != nil {
			return 0, false
		}
		b := uint32(block[0]) | uint32(block[1])<<8 | uint32(block[2])<<16
		size := int64(b >> 3)
		if b>>1&3 == blockRLE {
			size = 1
		}
		if at += 3 + size; b&1 == 1 {
			break
		}
	}
	if h.HasCheckSum {
		at += checksumSize
	}
	return at, true
}

// The first bytes of a zstd stream, of the skippable frame in which a .warc.zst has the dictionary that its records
// need (iipc.github.io/warc-specifications, "Zstandard Compression for WARC"), and of a dictionary (RFC 8878, section
// 5).
const (
	zstdMagic      = "\x28\xb5\x2f\xfd"
	zstdDictionary = "\x5d\x2a\x4d\x18"
	dictionaryHead = "\x37\xa4\x30\xec"
)

// readDictionary reads the skippable frame with the dictionary, which may be compressed itself.
func (ld *loader) readDictionary(r io.Reader) error {
	const most = 8 << 20 // bytes; real ones have about 100 kB
	head := make([]byte, 8)
	if _, err := io.ReadFull(r, head); err != nil {
		return unexpected(err)
	}
	size := int64(binary.LittleEndian.Uint32(head[4:]))
	if size > most {
		return fmt.Errorf("%d bytes are more than %d: %w", size, most, errLimit)
	}
	if err := ld.limits.budget.take(2 * most); err != nil { // what it is decoded into, and its tables
		return err
	}
	text, err := readBlock(r, size)
	if err != nil {
		return unexpected(err)
	}
	if bytes.HasPrefix(text, []byte(zstdMagic)) {
		z, err := zstd.NewReader(bytes.NewReader(text), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(most))
		if err != nil {
			return err
		}
		defer z.Close()
		if text, err = readAllLimited(z, most); err != nil {
			return err
		}
	}
	if bytes.HasPrefix(text, []byte(dictionaryHead)) {
		ld.dictionary = zstd.WithDecoderDicts(text)
	} else {
		ld.dictionary = zstd.WithDecoderDictRaw(0, text)
	}
	return nil
}
