package reel

import (
	"encoding/binary"
	"image"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/s2"

	"eidetic/capture/diff"
)

// partBytes is how many bytes of literals a part has at most: enough for the
// compressors, small enough for a processor's own cache and to share the work.
const partBytes = 512 << 10

// spread is the number of literal bytes from which a frame is coded by several threads.
const spread = 256 << 10

// partCoder makes the parts of one frame, on several threads when they are many.
type partCoder struct {
	jobs    []job
	ops     []op // of all jobs
	workers []*partWorker
	cost    float64
	bytes   int // of literals
}

// job is one part to be made.
type job struct {
	plane    int
	code     byte
	p        diff.Plane
	from, to int // its operations, in partCoder.ops
	out      []byte
}

// partWorker is the scratch memory of one thread.
type partWorker struct {
	lits, packed []byte
	predict      predictCoder
}

func (c *partCoder) reset() {
	for i := range c.jobs {
		c.jobs[i].out = c.jobs[i].out[:0]
	}
	c.jobs, c.ops = c.jobs[:0], c.ops[:0]
	c.cost, c.bytes = 0, 0
}

// add plans parts for the operations of a plane, cutting large literals.
func (c *partCoder) add(plane int, code byte, p diff.Plane, ops []op) {
	if len(ops) == 0 {
		return
	}
	filled := 0
	start := len(c.ops)
	flush := func() {
		if len(c.ops) > start {
			c.open(job{plane: plane, code: code, p: p, from: start, to: len(c.ops)})
			start, filled = len(c.ops), 0
		}
	}
	for _, o := range ops {
		if o.kind != opLiteral {
			c.ops = append(c.ops, o)
			continue
		}
		for !o.r.Empty() {
			rows := min(o.r.Dy(), max(1, (partBytes-filled)/(o.r.Dx()*p.Unit)))
			cut := o
			cut.r = image.Rect(o.r.Min.X, o.r.Min.Y, o.r.Max.X, o.r.Min.Y+rows)
			o.r.Min.Y += rows
			c.ops = append(c.ops, cut)
			filled += cut.bytes(p)
			if filled > partBytes*3/4 {
				flush()
			}
		}
	}
	flush()
}

// open appends a job, in the memory of an earlier frame's.
func (c *partCoder) open(j job) {
	n := len(c.jobs)
	if n < cap(c.jobs) {
		j.out = c.jobs[:n+1][n].out[:0]
	}
	c.jobs = append(c.jobs, j)
	literals := 0
	for _, o := range c.ops[j.from:j.to] {
		if o.kind == opLiteral {
			literals += o.bytes(j.p)
		}
	}
	c.bytes += literals
	per := costLiteral
	if j.code == codePredicted {
		per = costPredicted
	}
	c.cost += per * float64(literals)
}

// run makes all parts and appends them to dst in order, and has e keep what changed.
func (c *partCoder) run(dst []byte, e *encoder, pix []byte, changed []image.Rectangle) []byte {
	bands := (e.format.Height + keepRows - 1) / keepRows
	area := c.bytes
	for _, r := range changed {
		area += r.Dx() * r.Dy()
	}
	threads := 1
	if area >= spread {
		threads = min(runtime.GOMAXPROCS(0), runtime.NumCPU(), 8)
	}
	for len(c.workers) < threads {
		c.workers = append(c.workers, &partWorker{})
	}
	var next atomic.Int64
	work := func(w *partWorker) {
		for {
			n := int(next.Add(1)) - 1
			if n >= len(c.jobs) {
				if n -= len(c.jobs); n >= bands {
					return
				}
				e.keep(n, changed, pix)
				continue
			}
			j := &c.jobs[n]
			j.out = w.part(j.out[:0], j, e, pix, c.ops[j.from:j.to])
		}
	}
	var others sync.WaitGroup
	for _, w := range c.workers[1:threads] {
		others.Go(func() { work(w) })
	}
	work(c.workers[0])
	others.Wait()
	for i := range c.jobs {
		dst = binary.AppendUvarint(dst, uint64(len(c.jobs[i].out)))
		dst = append(dst, c.jobs[i].out...)
	}
	return dst
}

// part appends one part.
func (w *partWorker) part(b []byte, j *job, e *encoder, pix []byte, ops []op) []byte {
	first, literals := byte(j.plane), 0
	for _, o := range ops {
		switch o.kind {
		case opMove:
			first |= partMoves
		case opLiteral:
			literals += o.bytes(j.p)
		}
	}
	b = append(b, first)
	b = binary.AppendUvarint(b, uint64(len(ops)))
	for _, o := range ops {
		b = append(b, o.kind)
		b = binary.AppendUvarint(b, uint64(o.r.Min.X))
		b = binary.AppendUvarint(b, uint64(o.r.Min.Y))
		b = binary.AppendUvarint(b, uint64(o.r.Dx()))
		b = binary.AppendUvarint(b, uint64(o.r.Dy()))
		switch o.kind {
		case opMove:
			b = binary.AppendVarint(b, int64(o.dx))
			b = binary.AppendVarint(b, int64(o.dy))
		case opFill:
			b = append(b, o.unit...)
		}
	}
	if literals == 0 {
		return b
	}
	if j.code == codePredicted {
		b = append(b, codePredicted)
		return w.predict.append(b, j.p, e.comps[j.plane], hasGreen(e.format), pix, ops)
	}
	if j.code == codeGrey {
		first := e.comps[j.plane][0]
		literals = first.perRow(j.p, literals/j.p.Unit)
		b = append(b, codeGrey)
	}
	w.lits = grow(w.lits, literals)
	at := 0
	for _, o := range ops {
		if o.kind != opLiteral {
			continue
		}
		for y := o.r.Min.Y; y < o.r.Max.Y; y++ {
			row := j.p.Row(pix, y, o.r.Min.X, o.r.Max.X)
			if j.code == codeGrey {
				first := e.comps[j.plane][0]
				n := first.perRow(j.p, o.r.Dx())
				first.gather(w.lits[at:at+n], row)
				at += n
				continue
			}
			at += copy(w.lits[at:], row)
		}
	}
	return w.compress(b)
}

// compress appends w.lits, with its code before it.
func (w *partWorker) compress(b []byte) []byte {
	w.packed = grow(w.packed, s2.MaxEncodedLen(len(w.lits)))
	packed := s2.Encode(w.packed, w.lits)
	if len(packed) >= len(w.lits) {
		return append(append(b, codeRaw), w.lits...)
	}
	// The S2 stream's literals are still bytes of few kinds: Huffman coding
	// them costs little, as there are few.
	at := len(b)
	b = append(b, codeS2Huffman)
	b = binary.AppendUvarint(b, uint64(len(packed)))
	b = w.predict.pack(b, packed)
	if len(b)-at < len(packed)*15/16 {
		return b
	}
	return append(append(b[:at], codeS2), packed...)
}
