package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"eidetic/internal/lab"

	"github.com/klauspost/compress/gzip"
)

// Writer records. Its methods may be called from many goroutines.
type Writer struct {
	path string // of the WACZ that Close makes
	o    CreateOptions
	// limits are a reader's: what exceeds them is not recorded, since a reader would refuse the
	// complete file.
	limits Limits

	packers sync.Map // by level, *sync.Pool

	mu     sync.Mutex
	file   *os.File // nil once closed
	size   int64    // of the complete records in file
	blocks int64    // bytes of their blocks, which readers bound
	serial int      // records, for their IDs
	count  int      // exchanges
	index  []indexLine
	pages  []Page
	first  *Page // the first document seen, used if there are no pages
}

// Create starts a recording that Close packs as path. Until then the records are in path +
// [WorkingSuffix]. It is an error if either file exists.
func Create(path string, o CreateOptions) (*Writer, error) {
	if o.Wall.IsZero() {
		return nil, fmt.Errorf("create archive %s: no wall-clock time was given", path)
	}
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("create archive %s: it exists; choose another name or remove it: %w", path, os.ErrExist)
	}
	f, err := os.OpenFile(path+WorkingSuffix, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("create archive %s: the rest of an earlier recording is in the way; keep or remove it: %w", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("create archive: %w", err)
	}
	return newWriter(path, f, o)
}

// newWriter records to the working file f.
func newWriter(path string, f *os.File, o CreateOptions) (*Writer, error) {
	if o.Title == "" {
		o.Title = filepath.Base(path)
	}
	w := &Writer{path: path, o: o, file: f, limits: Limits{}.withDefaults()}
	if err := w.writeInfo(); err != nil {
		_ = w.Discard()
		return nil, fmt.Errorf("create archive %s: %w", path, err)
	}
	return w, nil
}

// infoField is a line of the warcinfo record.
func infoField(b *bytes.Buffer, name, value string) {
	b.WriteString(name + ": " + oneLine(value) + "\r\n")
}

func (w *Writer) writeInfo() error {
	var b bytes.Buffer
	if len(w.o.Rules) > maxRules {
		return fmt.Errorf("%d matching rules, at most %d", len(w.o.Rules), maxRules)
	}
	infoField(&b, "software", w.o.Software)
	infoField(&b, "format", "WARC File Format 1.1")
	infoField(&b, "conformsTo", "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/")
	infoField(&b, "title", w.o.Title)
	infoField(&b, "eidetic-seed", strconv.FormatUint(w.o.Seed, 10))
	if !w.o.PageDate.IsZero() {
		infoField(&b, "eidetic-page-date", w.o.PageDate.UTC().Format(time.RFC3339Nano))
	}
	if w.o.Zone != "" {
		infoField(&b, "eidetic-zone", w.o.Zone)
	}
	if len(w.o.Rules) > 0 {
		infoField(&b, "eidetic-rules", string(marshal(w.o.Rules)))
	}
	if w.o.Lost > 0 {
		infoField(&b, "eidetic-lost", strconv.Itoa(w.o.Lost))
	}
	for _, line := range w.o.Imported {
		infoField(&b, "eidetic-imported", line)
	}
	out := members{limits: w.limits, packers: &w.packers}
	err := out.add(gzip.BestSpeed, []lab.HeaderField{
		{Name: "WARC-Type", Value: "warcinfo"},
		{Name: "WARC-Record-ID", Value: "<" + w.newID("warcinfo") + ">"},
		{Name: "WARC-Date", Value: warcDate(w.o.Wall)},
		{Name: "WARC-Filename", Value: "data.warc.gz"},
		{Name: "Content-Type", Value: "application/warc-fields"},
	}, b.Bytes())
	if err != nil {
		return err
	}
	return w.append(&out, nil)
}

// newID makes a record ID from the recording's content and time. It is unique in this recording and
// unlikely in another.
func (w *Writer) newID(what string) string {
	w.mu.Lock()
	w.serial++
	serial := w.serial
	w.mu.Unlock()
	return uuid(fmt.Appendf(nil, "%s\n%d\n%d\n%s", w.path, w.o.Wall.UnixNano(), serial, what))
}

// warcDate renders W3C-DTF with nanoseconds, which WARC 1.1 allows.
func warcDate(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }

// digest renders a labelled digest in the base 32 that WARC tools use.
func digest(b []byte) string {
	h := sha256.Sum256(b)
	return "sha256:" + base32.StdEncoding.EncodeToString(h[:])
}

// append writes complete members at the end. After an error (a full disk) it truncates the file to
// its last complete record, so that recording can go on.
func (w *Writer) append(m *members, line *indexLine) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.appendLocked(m, line)
}

func (w *Writer) appendLocked(m *members, line *indexLine) error {
	if w.file == nil {
		return fmt.Errorf("the archive is closed: %w", os.ErrClosed)
	}
	if w.blocks+m.blocks > w.limits.Decoded {
		return fmt.Errorf("the archive has %d bytes, and %d more than a reader takes (%d): record the rest to another one",
			w.blocks, m.blocks, w.limits.Decoded)
	}
	if line != nil && w.count >= w.limits.Exchanges {
		return fmt.Errorf("the archive has %d exchanges, which is as many as a reader takes: record the rest to another one", w.count)
	}
	if m.file == nil {
		if _, err := w.file.WriteAt(m.buffer.Bytes(), w.size); err != nil {
			_ = w.file.Truncate(w.size)
			return err
		}
	}
	if line != nil {
		line.Offset = w.size
		w.index = append(w.index, *line)
		w.count++
	}
	w.size += m.n
	w.blocks += m.blocks
	return nil
}

// Add appends an exchange; when it returns nil the records are with the operating system. It gives
// an ID to an exchange without one. One that is pending has no response record, and so no line in
// the index. The writer keeps no reference to e.
func (w *Writer) Add(e *lab.Exchange) error {
	if e.ID == "" {
		e.ID = w.newID(e.Method + " " + e.URL)
	}
	date, wall := warcDate(e.Wall), e.Wall
	reqHead, hostAdded := requestHead(e)
	respHead := responseHead(e)
	payload := digest(e.Response.Body)

	common := []lab.HeaderField{{Name: "WARC-Target-URI", Value: e.URL}, {Name: "WARC-Date", Value: date}}
	if e.Server.IsValid() {
		common = append(common, lab.HeaderField{Name: "WARC-IP-Address", Value: e.Server.Addr().String()})
	}
	for _, p := range []string{e.Protocol, e.TLS} {
		if p != "" {
			common = append(common, lab.HeaderField{Name: "WARC-Protocol", Value: p})
		}
	}
	response := append([]lab.HeaderField{
		{Name: "WARC-Type", Value: "response"},
		{Name: "WARC-Record-ID", Value: "<" + e.ID + ">"},
	}, common...)
	response = append(response,
		lab.HeaderField{Name: "WARC-Payload-Digest", Value: payload},
		lab.HeaderField{Name: "Content-Type", Value: "application/http; msgtype=response"})
	if e.Truncated != "" {
		response = append(response, lab.HeaderField{Name: "WARC-Truncated", Value: e.Truncated})
	}
	concurrent := lab.HeaderField{Name: "WARC-Concurrent-To", Value: "<" + e.ID + ">"}
	request := append([]lab.HeaderField{
		{Name: "WARC-Type", Value: "request"},
		{Name: "WARC-Record-ID", Value: "<" + w.newID("request") + ">"},
		concurrent,
	}, common...)
	request = append(request, lab.HeaderField{Name: "Content-Type", Value: "application/http; msgtype=request"})
	metadata := []lab.HeaderField{
		{Name: "WARC-Type", Value: "metadata"},
		{Name: "WARC-Record-ID", Value: "<" + w.newID("metadata") + ">"},
		concurrent,
		{Name: "WARC-Target-URI", Value: e.URL},
		{Name: "WARC-Date", Value: date},
		{Name: "Content-Type", Value: typeExchange},
	}

	add := func(out *members) (line *indexLine, err error) {
		var length int64
		if e.Status != 0 {
			if err := out.add(level(e), response, respHead, e.Response.Body); err != nil {
				return nil, err
			}
			length = out.n
		}
		if err := out.add(gzip.BestSpeed, request, reqHead, e.Request.Body); err != nil {
			return nil, err
		}
		if err := out.add(gzip.BestSpeed, metadata, marshal(newSidecar(e, hostAdded))); err != nil || e.Status == 0 {
			return nil, err
		}
		return new(newIndexLine(e, payload, length)), nil
	}
	if err := w.write(add, len(e.Response.Body)+len(e.Request.Body) > large); err != nil {
		return fmt.Errorf("archive %s %s: %w", e.Method, e.URL, err)
	}
	if isDocument(e) {
		w.mu.Lock()
		if w.first == nil {
			w.first = &Page{URL: e.URL, Wall: wall}
		}
		w.mu.Unlock()
	}
	return nil
}

// large is the size of bodies from which on an exchange is written to the file at once, which keeps others waiting:
// small ones are made in memory, many at a time.
const large = 1 << 20

// write appends the records that add makes.
func (w *Writer) write(add func(*members) (*indexLine, error), isLarge bool) error {
	out := members{limits: w.limits, packers: &w.packers}
	if !isLarge {
		line, err := add(&out)
		if err != nil {
			return err
		}
		return w.append(&out, line)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return fmt.Errorf("the archive is closed: %w", os.ErrClosed)
	}
	out.file, out.at = w.file, w.size
	line, err := add(&out)
	if err == nil {
		err = w.appendLocked(&out, line)
	}
	if err != nil {
		_ = w.file.Truncate(w.size)
	}
	return err
}

// isDocument tells the exchange of a page that the browser navigated to.
func isDocument(e *lab.Exchange) bool {
	dest := e.Request.Get("Sec-Fetch-Dest")
	return e.Method == "GET" && e.Status == 200 && (dest == "" || dest == "document") &&
		strings.HasPrefix(strings.ToLower(e.Response.Get("Content-Type")), "text/html")
}

// level stores bodies that are compressed already and compresses the rest lightly: recording must
// not slow the device, and opening must be quick.
func level(e *lab.Exchange) int {
	kind := strings.ToLower(e.Response.Get("Content-Type"))
	if e.Response.Get("Content-Encoding") != "" || strings.HasPrefix(kind, "font/") ||
		strings.HasPrefix(kind, "image/") && !strings.Contains(kind, "svg") ||
		strings.HasPrefix(kind, "video/") || strings.HasPrefix(kind, "audio/") {
		return gzip.NoCompression
	}
	return gzip.BestSpeed
}

// AddDNS appends an answer of the name server, as Heritrix writes it
// (a response record of text/dns) with a metadata record for the rest.
func (w *Writer) AddDNS(d DNS) error {
	id := w.newID("dns:" + d.Name)
	var text bytes.Buffer
	text.WriteString(d.Wall.UTC().Format("20060102150405") + "\n")
	for _, r := range d.Records {
		text.WriteString(oneLine(r) + "\n")
	}
	common := []lab.HeaderField{
		{Name: "WARC-Target-URI", Value: "dns:" + d.Name},
		{Name: "WARC-Date", Value: warcDate(d.Wall)},
	}
	out := members{limits: w.limits, packers: &w.packers}
	err := out.add(gzip.BestSpeed, append([]lab.HeaderField{
		{Name: "WARC-Type", Value: "response"},
		{Name: "WARC-Record-ID", Value: "<" + id + ">"},
		{Name: "Content-Type", Value: "text/dns"},
	}, common...), text.Bytes())
	if err == nil {
		err = out.add(gzip.BestSpeed, append([]lab.HeaderField{
			{Name: "WARC-Type", Value: "metadata"},
			{Name: "WARC-Record-ID", Value: "<" + w.newID("metadata") + ">"},
			{Name: "WARC-Concurrent-To", Value: "<" + id + ">"},
			{Name: "Content-Type", Value: typeDNS},
		}, common...), marshal(d))
	}
	if err == nil {
		err = w.append(&out, nil)
	}
	if err != nil {
		return fmt.Errorf("archive dns:%s: %w", d.Name, err)
	}
	return nil
}

// AddPage notes a visited document.
func (w *Writer) AddPage(p Page) error {
	out := members{limits: w.limits, packers: &w.packers}
	err := out.add(gzip.BestSpeed, []lab.HeaderField{
		{Name: "WARC-Type", Value: "metadata"},
		{Name: "WARC-Record-ID", Value: "<" + w.newID("page") + ">"},
		{Name: "WARC-Target-URI", Value: p.URL},
		{Name: "WARC-Date", Value: warcDate(p.Wall)},
		{Name: "Content-Type", Value: typePage},
	}, marshal(p))
	if err == nil {
		err = w.append(&out, nil)
	}
	if err != nil {
		return fmt.Errorf("archive page %s: %w", p.URL, err)
	}
	w.mu.Lock()
	w.pages = append(w.pages, p)
	w.mu.Unlock()
	return nil
}

// Count returns the exchanges added so far.
func (w *Writer) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// Close packs the working file into the WACZ and removes it. On an error the
// working file stays, and Open reads it.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return fmt.Errorf("close archive %s: %w", w.path, os.ErrClosed)
	}
	f := w.file
	w.file = nil
	defer f.Close()
	if len(w.pages) == 0 && w.first != nil {
		w.pages = []Page{*w.first}
	}
	if err := w.pack(f); err != nil {
		return fmt.Errorf("close archive %s (the recording is kept in %s): %w", w.path, f.Name(), err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return fmt.Errorf("close archive %s: %w", w.path, err)
	}
	return nil
}

// Discard ends the recording and removes the working file; after Close it does nothing.
func (w *Writer) Discard() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
