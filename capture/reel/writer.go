package reel

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/zeebo/xxh3"

	"eidetic/internal/lab"
)

// keyEvery is the longest way, in seconds, from one key frame to the next:
// what a damaged block can cost beyond itself.
const keyEvery = 10

// Writer writes a reel; it is a capture.Sink. It is for one goroutine.
type Writer struct {
	out    io.Writer
	file   *os.File // out, when Create made it
	sync   *syncer  // of file
	header Header
	enc    *encoder
	at     int64 // bytes written
	frames int
	index  []byte // entries of the index so far
	last   int64  // offset of the block that the index names last
	chain  float64
	keyAt  lab.Time
	buf    []byte // one block
	body   []byte
	rects  []image.Rectangle
	// foreign says that the frame before came from another reel, see Append.
	foreign bool
	err     error
	torn    bool // the file ends inside a block
	closed  bool
}

// Create makes the file at path, which must not exist yet, and writes the header.
func Create(path string, h Header) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create reel: %w", err)
	}
	w, err := NewWriter(f, h)
	if err != nil {
		f.Close()
		os.Remove(path)
		return nil, err
	}
	w.file, w.sync = f, &syncer{file: f}
	return w, nil
}

// NewWriter writes a reel to out, each block with one Write.
func NewWriter(out io.Writer, h Header) (*Writer, error) {
	h.Version = Version
	if err := checkHeader(h); err != nil {
		return nil, fmt.Errorf("create reel: %w", err)
	}
	w := &Writer{out: out, header: h}
	if h.Format.Pixels != lab.MJPEG {
		w.enc = newEncoder(h.Format)
	}
	head, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("create reel: header: %w", err)
	}
	if len(head) > maxHead {
		return nil, fmt.Errorf("create reel: the header's notes have %d bytes, more than %d", len(head), maxHead)
	}
	w.buf = append(w.buf, magic...)
	if err := w.block(blockHeader, head, nil); err != nil {
		return nil, err
	}
	return w, nil
}

// WriteFrame appends one frame. Its Changed must cover every pixel that
// differs from the frame before (it may cover more; the reel stores what
// really differs); Pix may be nil with lab.FrameRepeat. An error is final: no
// more can be written, but what was written stays readable.
func (w *Writer) WriteFrame(f lab.Frame) error {
	if w.err != nil {
		return w.err
	}
	if err := w.frame(f); err != nil {
		w.err = fmt.Errorf("write frame %d of the reel: %w", w.frames, err)
		return w.err
	}
	w.frames++
	w.foreign = false
	return nil
}

func (w *Writer) frame(f lab.Frame) error {
	h := frameHead{FrameInfo: f.FrameInfo, index: w.frames, key: w.first()}
	repeat := f.Flags&lab.FrameRepeat != 0 && !h.key
	if h.key {
		h.Flags &^= lab.FrameRepeat // it stands by itself
	}
	if h.key && f.Pix == nil {
		return errors.New("the first frame has no pixels")
	}
	var err error
	if w.enc == nil {
		h, err = w.compressed(h, f.Pix)
	} else {
		h, err = w.encode(h, f, repeat)
	}
	if err != nil {
		return err
	}
	if h.key {
		w.keyAt = f.Time
	}
	return w.block(blockFrame, h.append(nil), w.body)
}

// encode fills w.body and completes h.
func (w *Writer) encode(h frameHead, f lab.Frame, repeat bool) (frameHead, error) {
	size := w.header.Format.FrameSize()
	if !repeat && len(f.Pix) != size {
		return h, fmt.Errorf("the frame has %d bytes, the format %d", len(f.Pix), size)
	}
	if w.chain > maxChain || f.Time.Sub(w.keyAt).Seconds() > keyEvery {
		h.key = true
	}
	pix, within := f.Pix, f.Changed
	bounds := w.header.Format.Bounds()
	switch {
	case w.first():
		within = []image.Rectangle{bounds}
	case repeat:
		pix, within = w.enc.canvas, nil
	}
	w.body, w.rects = w.body[:0], w.rects[:0]
	if h.key || len(within) > 0 {
		w.body, w.rects, h.key = w.enc.encode(w.body, w.rects, pix, within, h.key)
		if h.key {
			w.chain = 0
		}
		w.chain += w.enc.cost
	}
	if w.first() { // what it is compared with is not the frame before
		w.rects = append(w.rects[:0], bounds)
	}
	if len(w.rects) > maxChanged {
		all := w.rects[0]
		for _, r := range w.rects {
			all = all.Union(r)
		}
		w.rects = append(w.rects[:0], all)
	}
	h.Changed = w.rects
	h.sum = w.enc.sums.sum()
	return h, nil
}

// compressed stores a frame that the source compressed, as it is.
func (w *Writer) compressed(h frameHead, pix []byte) (frameHead, error) {
	if pix == nil {
		return h, errors.New("an MJPEG frame without its bytes")
	}
	w.body = append(w.body[:0], pix...)
	h.key = true
	h.sum = xxh3.Hash(pix)
	h.Changed = []image.Rectangle{w.header.Format.Bounds()}
	return h, nil
}

// WriteGap notes lost frames. Its Before is filled in.
func (w *Writer) WriteGap(g lab.Gap) error {
	if w.err != nil {
		return w.err
	}
	g.Before = w.frames
	head, err := json.Marshal(g)
	if err == nil && len(head) > maxHead {
		err = fmt.Errorf("a reason of %d bytes", len(g.Reason))
	}
	if err == nil {
		err = w.block(blockGap, head, nil)
	}
	if err != nil {
		w.err = fmt.Errorf("write gap before frame %d of the reel: %w", w.frames, err)
	}
	return w.err
}

// WriteEvent notes what happened to the source. Its Before is filled in.
func (w *Writer) WriteEvent(e lab.SourceEvent) error {
	if w.err != nil {
		return w.err
	}
	e.Before = w.frames
	head, err := json.Marshal(e)
	if err == nil && len(head) > maxHead {
		err = fmt.Errorf("words of %d bytes", len(head))
	}
	if err == nil {
		err = w.block(blockEvent, head, nil)
	}
	if err != nil {
		w.err = fmt.Errorf("write event before frame %d of the reel: %w", w.frames, err)
	}
	return w.err
}

// block appends a block to w.buf, which may hold the magic, and writes it.
func (w *Writer) block(kind byte, head, body []byte) error {
	at := w.at + int64(len(w.buf))
	w.buf = appendBlock(w.buf, kind, head, len(body), crc32.Checksum(body, castagnoli))
	w.buf = append(w.buf, body...)
	n, err := w.out.Write(w.buf)
	w.buf = w.buf[:0]
	if err != nil {
		w.torn = n > 0 && !w.takeBack()
		return err
	}
	w.at += int64(n)
	if w.sync != nil {
		w.sync.tick(time.Now())
	}
	if kind != blockIndex && kind != blockEnd {
		w.index = binary.AppendUvarint(w.index, uint64(at-w.last))
		w.index = append(w.index, kind)
		w.index = binary.AppendUvarint(w.index, uint64(len(head)))
		w.index = append(w.index, head...)
		w.last = at
	}
	return nil
}

// takeBack cuts off half a block, which would be reported as damage; without
// it the file is one that simply ends.
func (w *Writer) takeBack() bool {
	if w.file == nil || w.file.Truncate(w.at) != nil {
		return false
	}
	_, err := w.file.Seek(w.at, io.SeekStart)
	return err == nil
}

// Frames returns the number of frames written.
func (w *Writer) Frames() int { return w.frames }

// Size returns the number of bytes written.
func (w *Writer) Size() int64 { return w.at }

// Close writes the index, and flushes and closes the file that Create made. After an
// error, which it returns, the frames before it get their index if there is still
// room for that.
func (w *Writer) Close() error {
	err := w.err
	if !w.torn && w.at > 0 && !w.closed {
		if ferr := w.finish(); err == nil {
			err = ferr
		}
	}
	if w.file != nil {
		if serr := w.sync.wait(); err == nil && serr != nil {
			err = fmt.Errorf("flush the reel to the disk: %w", serr)
		}
		if serr := w.file.Sync(); err == nil && serr != nil {
			err = fmt.Errorf("flush the reel to the disk: %w", serr)
		}
		if cerr := w.file.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("close reel: %w", cerr)
		}
		w.file = nil
	}
	if w.err == nil {
		w.err = errors.New("the reel is closed")
	}
	w.closed = true
	return err
}

// finish writes the index and the end.
func (w *Writer) finish() error {
	at := w.at
	if err := w.block(blockIndex, nil, s2.Encode(nil, w.index)); err != nil {
		return fmt.Errorf("write the reel's index: %w", err)
	}
	end := binary.LittleEndian.AppendUint64(nil, uint64(at))
	end = binary.LittleEndian.AppendUint32(end, uint32(w.frames))
	if err := w.block(blockEnd, end, nil); err != nil {
		return fmt.Errorf("write the reel's end: %w", err)
	}
	return nil
}
