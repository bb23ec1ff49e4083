package reel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// magic starts every reel. Its first byte is not ASCII and it holds a CR LF,
// so that a transfer in text mode is noticed, as in PNG.
const magic = "\x8bREEL\r\n\x1a"

// marker starts every block, so that a reader finds its way after damage.
const marker = "\xabRb\xba"

// Blocks are of these types; a reader skips types that it does not know.
const (
	blockHeader = 1 // head: JSON of Header
	blockFrame  = 2 // head: frameHead, body: parts
	blockGap    = 3 // head: JSON of lab.Gap
	blockIndex  = 4 // body: every other block's offset, type and head
	blockEnd    = 5 // head: offset of the index; the last block of a whole file
	blockEvent  = 6 // head: JSON of lab.SourceEvent
)

const (
	blockSize = 24      // bytes before a block's head
	maxHead   = 1 << 16 // bytes of a head
	endSize   = blockSize + 12
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errNoBlock  = errors.New("no block starts here")
	errHeadSum  = errors.New("checksum of the block's head does not match")
	errBodySum  = errors.New("checksum of the block's body does not match")
	errCutShort = errors.New("the file ends inside a block")
)

// block is one block's place in the file. Its body starts at bodyAt.
type block struct {
	kind   byte
	at     int64 // of the first byte of the block
	head   []byte
	bodyAt int64
	body   int64  // bytes
	sum    uint32 // CRC32C of the body
}

func (b block) end() int64 { return b.bodyAt + b.body }

// appendBlock appends a block's first blockSize bytes and its head. The body follows.
func appendBlock(dst []byte, kind byte, head []byte, body int, bodySum uint32) []byte {
	start := len(dst)
	dst = append(dst, marker...)
	dst = append(dst, kind, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(head)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(body))
	dst = binary.LittleEndian.AppendUint32(dst, bodySum)
	sum := crc32.Update(0, castagnoli, dst[start:])
	sum = crc32.Update(sum, castagnoli, head)
	dst = binary.LittleEndian.AppendUint32(dst, sum)
	return append(dst, head...)
}

// readBlock reads the head of the block at offset at of a file of size bytes.
// The result's head is a fresh slice.
func readBlock(r io.ReaderAt, at, size int64) (block, error) {
	var fixed [blockSize]byte
	if at+blockSize > size {
		return block{}, errCutShort
	}
	if _, err := r.ReadAt(fixed[:], at); err != nil {
		return block{}, fmt.Errorf("read block: %w", err)
	}
	if string(fixed[:4]) != marker {
		return block{}, errNoBlock
	}
	headLen := int64(binary.LittleEndian.Uint32(fixed[8:]))
	if headLen > maxHead || fixed[5]|fixed[6]|fixed[7] != 0 {
		return block{}, errHeadSum
	}
	if at+blockSize+headLen > size {
		return block{}, errCutShort
	}
	b := block{
		kind:   fixed[4],
		at:     at,
		head:   make([]byte, headLen),
		bodyAt: at + blockSize + headLen,
		body:   int64(binary.LittleEndian.Uint32(fixed[12:])),
		sum:    binary.LittleEndian.Uint32(fixed[16:]),
	}
	if _, err := r.ReadAt(b.head, at+blockSize); err != nil {
		return block{}, fmt.Errorf("read block: %w", err)
	}
	sum := crc32.Update(0, castagnoli, fixed[:20])
	if crc32.Update(sum, castagnoli, b.head) != binary.LittleEndian.Uint32(fixed[20:]) {
		return block{}, errHeadSum
	}
	if b.end() > size {
		return b, errCutShort
	}
	return b, nil
}

// readBody reads and checks a block's body into buf, which grows as needed.
func (b block) readBody(r io.ReaderAt, buf []byte, limit int64) ([]byte, error) {
	if b.body > limit {
		return buf, fmt.Errorf("a body of %d bytes is longer than %d", b.body, limit)
	}
	if int64(cap(buf)) < b.body {
		buf = make([]byte, b.body+b.body/4)
	}
	buf = buf[:b.body]
	if n, err := r.ReadAt(buf, b.bodyAt); n < len(buf) { // at the file's end some return io.EOF with all of it
		return buf, fmt.Errorf("read body: %w", err)
	}
	if crc32.Checksum(buf, castagnoli) != b.sum {
		return buf, errBodySum
	}
	return buf, nil
}

// findBlock returns the offset of the next block with a good head at or after
// from, or size when there is none. Parts that the disk cannot read are skipped.
func findBlock(r io.ReaderAt, from, size int64) int64 {
	const window = 1 << 16
	buf := make([]byte, window+len(marker)-1)
	for at := from; at < size; {
		n, err := r.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		for i := 0; i+len(marker) <= n && i < window; i++ {
			if string(buf[i:i+len(marker)]) != marker {
				continue
			}
			if _, err := readBlock(r, at+int64(i), size); err == nil {
				return at + int64(i)
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			at = (at+int64(n))/sector*sector + sector
		} else {
			at += window
		}
	}
	return size
}

// sector is the unit in which a failing disk loses parts of a file.
const sector = 4096
