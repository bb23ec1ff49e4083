package replay

import (
	"errors"
	"io"
	"sync/atomic"

	"eidetic/netlab/archive"
)

// What of an exchange takes in memory until it is in the archive, measured with margins: it is kept, made into records
// and compressed.
const (
	byteCost  = 2   // of a byte of a body, which grows as it comes
	chunkCost = 200 // of a chunk: its time and length, also as JSON
	pieceCost = 400 // of a piece of a socket
	dataCost  = 12  // of a byte of a socket, which is Base64 in JSON, and which takes as long to be written
	keptCost  = 6   // of the same byte, for the reader of the archive
)

// budget is the memory that one recording may take for all its exchanges together.
type budget struct{ held, kept bound }

// bound counts what is taken of a most.
type bound struct {
	most int64
	n    atomic.Int64
}

func (b *bound) take(n int64) bool {
	if b.n.Add(n) <= b.most {
		return true
	}
	b.n.Add(-n)
	return false
}

// newBudget is the budget of a recording that may take so much memory: half of it for exchanges that are not in the
// archive yet, all of it for the archive's reader.
func newBudget(memory int64) *budget {
	const enough = 2 << 30
	b := &budget{}
	b.held.most, b.kept.most = min(memory/2, enough), memory
	return b
}

// errBudget says that a recording takes no more.
var errBudget = errors.New("the recording has as much as this machine's memory allows: what more comes is not recorded; " +
	"record fewer pages at once, or use a machine with more memory") // constant

// take counts what a part of the exchange takes, now and of the archive's reader. It says whether there was room.
func (f *fetch) take(memory int64, kept int) bool {
	b := f.c.budget
	if !b.held.take(memory) {
		return f.exceed()
	}
	f.held.Add(memory)
	if !b.kept.take(int64(kept)) {
		return f.exceed()
	}
	return true
}

// exceed notes that a part of the exchange is lost.
func (f *fetch) exceed() bool {
	f.exceeded.Store(true)
	return false
}

// give gives back what the exchange took of the memory, when it is in the archive, unless a replay keeps it.
func (f *fetch) give() {
	if n := f.held.Swap(0); f.c.added == nil {
		f.c.budget.held.n.Add(-n)
	}
}

// budgeted reads a request's body within the budget.
type budgeted struct {
	io.ReadCloser
	f *fetch
}

func (b budgeted) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && !b.f.take(byteCost*int64(n), n) {
		return 0, errBudget
	}
	return n, err
}

// memoryFor is the budget of a recording on this machine: what a reader of its archive may take.
func memoryFor(o RecordOptions) int64 {
	if o.Memory > 0 {
		return o.Memory
	}
	return archive.MemoryOf(archive.DefaultShare)
}
