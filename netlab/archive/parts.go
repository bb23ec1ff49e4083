package archive

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"path"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
)

// part is a section of a WARC that one goroutine reads while others read other sections. Its
// beginning comes from an index, which may be wrong: a part only counts if it was read to its end
// as complete gzip members and complete records. If all parts before it are complete too, its
// records are those that reading the file from its beginning finds.
type part struct {
	from, to int64
	items    []*item
	decoded  int64   // bytes of records
	budget   *budget // what the reading of it took
	complete bool
	done     chan struct{}
}

// partsOf cuts a file into parts of at least least bytes.
func partsOf(size int64, cuts []int64, least int64) []part {
	var parts []part
	from := int64(0)
	for _, c := range cuts {
		if c-from >= least && c < size {
			parts = append(parts, part{from: from, to: c})
			from = c
		}
	}
	return append(parts, part{from: from, to: size})
}

// readParts takes the records of the parts in their order. It returns the beginning of the first
// incomplete part, or the file's size.
func (ld *loader) readParts(r io.ReaderAt, parts []part) (end int64, err error) {
	var running sync.WaitGroup
	started, taken := 0, ld.decoded.Load()
	unzippers := sync.Pool{New: newUnzipper}
	start := func() {
		p := &parts[started]
		started++
		p.done, p.budget = make(chan struct{}), ld.limits.budget.child()
		running.Go(func() {
			defer close(p.done)
			u := unzippers.Get().(*unzipper)
			l := ld.limits
			l.budget = p.budget
			p.read(r, u, l, &ld.decoded)
			unzippers.Put(u)
		})
	}
	complete := 0
	defer func() { // the bytes of incomplete parts do not count
		running.Wait()
		ld.decoded.Store(taken)
		for _, p := range parts[complete:started] {
			p.budget.drop()
		}
	}()
	for range min(2*runtime.GOMAXPROCS(0), len(parts)) {
		start()
	}
	for i := range parts {
		p := &parts[i]
		<-p.done
		if !p.complete {
			return p.from, nil
		}
		if started < len(parts) {
			start()
		}
		for _, it := range p.items {
			if err := ld.take(it); err != nil {
				return p.from, err
			}
		}
		taken += p.decoded
		complete++
		end, p.items = p.to, nil
	}
	return end, nil
}

// unzipper holds the buffers that one goroutine needs to read a part. It is reused: new buffers for
// each part would be a tenth of all memory.
type unzipper struct {
	file  *bufio.Reader
	plain gzip.Reader
	text  *bufio.Reader
}

func newUnzipper() any {
	return &unzipper{file: bufio.NewReaderSize(nil, 64<<10), text: bufio.NewReaderSize(nil, recordBuffer)}
}

func (p *part) read(r io.ReaderAt, u *unzipper, l Limits, decoded *atomic.Int64) {
	u.file.Reset(io.NewSectionReader(r, p.from, p.to-p.from))
	if u.plain.Reset(u.file) != nil {
		return
	}
	u.text.Reset(&u.plain)
	rr := &recordReader{r: u.text, limits: l, decoded: decoded}
	for {
		rec, err := rr.next()
		if err != nil {
			p.complete = err == io.EOF
			return
		}
		p.decoded += int64(len(rec.block))
		p.items = append(p.items, parse(rec, l))
	}
}

// cuts are the offsets of records in the WARCs of a WACZ, sorted, by the WARC's name.
type cuts map[string][]int64

// of returns those of a file.
func (c cuts) of(name string) []int64 { return c[path.Base(name)] }

// readCuts reads the index. It has none if the index cannot be read, or if no WARC is so large that it
// is read in parts.
func readCuts(data []warcFile, index *zip.File, l Limits) (cuts, error) {
	large := slices.ContainsFunc(data, func(one warcFile) bool { return one.file.UncompressedSize64 > 2*uint64(l.part) })
	if index == nil || !large {
		return nil, nil
	}
	text, err := readSmall(index, l)
	if err != nil {
		return nil, nil // it is damaged, or claims an impossible size: the WARCs are read without it
	}
	defer l.budget.give(int64(len(text)))
	out := cuts{}
	for line := range bytes.Lines(text) {
		i := bytes.IndexByte(line, '{')
		var at struct {
			Offset   json.Number `json:"offset"` // as a string, or not
			Filename string      `json:"filename"`
		}
		if i < 0 || json.Unmarshal(line[i:], &at) != nil {
			continue
		}
		if n, err := at.Offset.Int64(); err == nil && n > 0 {
			if err := l.budget.take(elementCost); err != nil {
				return nil, err
			}
			out[at.Filename] = append(out[at.Filename], n)
		}
	}
	for _, list := range out {
		slices.Sort(list)
	}
	return out, nil
}
