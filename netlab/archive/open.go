package archive

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"eidetic/internal/lab"
)

// withDefaults fills the zero fields.
func (l Limits) withDefaults() Limits {
	l.File = cmp.Or(l.File, 8<<30)
	l.Decoded = cmp.Or(l.Decoded, 4<<30)
	l.Record = cmp.Or(l.Record, 1<<30)
	l.Exchanges = cmp.Or(l.Exchanges, 1_000_000)
	l.Header = cmp.Or(l.Header, 1<<20)
	l.Index = cmp.Or(l.Index, 64<<20)
	l.Entries = cmp.Or(l.Entries, 10_000)
	l.Ratio = cmp.Or(l.Ratio, defaultRatio)
	if l.Memory == 0 {
		l.Memory = MemoryOf(DefaultShare)
	}
	l.part = cmp.Or(l.part, 1<<20)
	return l
}

// block bounds a record's block: a message with its head.
func (l Limits) block() int64 { return l.Record + int64(l.Header) }

// Open reads a WACZ, a WARC file (plain, gzip or zstd) such as a cut-off
// working file, or a HAR, with default limits.
func Open(path string) (*Archive, error) { return OpenWithin(path, Limits{}) }

// OpenWithin is Open with limits.
func OpenWithin(path string, l Limits) (*Archive, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, e := os.Lstat(path + WorkingSuffix); e == nil {
			return nil, fmt.Errorf("open archive %s: the recording was cut off; open %s instead, which holds the complete records: %w",
				path, path+WorkingSuffix, fs.ErrNotExist)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	if st.IsDir() {
		return nil, fmt.Errorf("open archive %s: it is a folder: name a file in it; of several WARCs of one crawl make a zip (zip -r crawl.zip %s)",
			path, filepath.Base(path))
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("open archive %s: not a regular file", path)
	}
	a, err := OpenReader(f, st.Size(), l)
	if err != nil {
		return nil, fmt.Errorf("open archive %s: %w", path, err)
	}
	a.info.File = path
	return a, nil
}

// OpenWithFiles is OpenWithin for a file that a person names on this machine: bodies of a HAR that lie in files beside
// it (Playwright's recordHar) are read, too.
func OpenWithFiles(path string, l Limits) (*Archive, error) {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	defer dir.Close()
	l.files = func(name string, l Limits) ([]byte, error) { return readBeside(dir, name, l) }
	return OpenWithin(path, l)
}

// OpenReader reads the same formats from r, which holds size bytes.
func OpenReader(r io.ReaderAt, size int64, l Limits) (*Archive, error) {
	l = l.withDefaults()
	if size > l.File {
		return nil, fmt.Errorf("%d bytes are more than %d: %w", size, l.File, errLimit)
	}
	l.budget = newBudget(l, size)
	magic := make([]byte, mostMagic) // there may be less
	n, err := r.ReadAt(magic, 0)
	if magic = magic[:n]; n < 4 {
		return nil, fmt.Errorf("%d bytes are too few for an archive (%v)", n, err)
	}
	a := &Archive{}
	a.info.Bytes = size
	sum := background(func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(r, 0, size)), nil })
	defer sum.stop()
	switch {
	case bytes.HasPrefix(magic, []byte("PK")):
		err = a.openZip(r, size, l)
	case flows.Match(magic):
		err = a.openFlows(io.NewSectionReader(r, 0, size), l)
	case isJSON(io.NewSectionReader(r, 0, size), l):
		err = a.openHAR(io.NewSectionReader(r, 0, size), l.files, l)
	default:
		err = a.openStream(io.NewSectionReader(r, 0, size), l)
	}
	if err != nil {
		return nil, err
	}
	if a.info.SHA256, err = sum.wait(); err != nil {
		return nil, fmt.Errorf("hash of the file: %w", err)
	}
	a.leaveOutLarge(l)
	a.finish()
	return a, nil
}

// leaveOutLarge leaves out the exchanges that can be read, such as those of a HAR, and not be written: no reader of a
// WARC would take their headers.
func (a *Archive) leaveOutLarge(l Limits) {
	const lines = 256 // bytes of the first line, without the address, and the last one
	size := func(m *lab.Message) (n int) {
		for _, f := range m.Header {
			n += len(f.Name) + len(f.Value) + len(": \r\n")
		}
		return n + lines
	}
	a.exchanges = slices.DeleteFunc(a.exchanges, func(e *lab.Exchange) bool {
		isLarge := len(e.URL) > l.Header/2 || max(len(e.URL)+size(&e.Request), len(e.Reason)+size(&e.Response)) > l.Header
		if isLarge {
			a.lose("%.120s is left out: its address and header have more than %d bytes", e.URL, l.Header)
		}
		return isLarge
	})
	if len(a.exchanges) == 0 && len(a.warnings) > 0 {
		a.found = cmp.Or(a.found, "a file of which all exchanges are left out: "+a.warnings[len(a.warnings)-1])
	}
}

// openStream reads one WARC file and repairs a cut-off end.
func (a *Archive) openStream(file *io.SectionReader, l Limits) error {
	ld := newLoader(a, l)
	err := ld.readFrom(file, 0)
	switch {
	case err == nil:
	case errors.Is(err, errLimit), errors.Is(err, errARC), errors.Is(err, errUnknown):
		return err
	case ld.records == 0 && errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the file is cut off or damaged before the end of its first record (%w): get a whole one", err)
	case ld.records == 0:
		return fmt.Errorf("%w: %w", errUnknown, err)
	default:
		a.lose("the file is cut off or damaged after %d complete records (%v), which are used", ld.records, err)
	}
	return ld.done()
}

// arcMagic begins the first line of an ARC file.
const arcMagic = "filedesc://"

// errARC says that a file has the format that came before WARC.
var errARC = errors.New("this is an ARC file (it begins with " + arcMagic + "), the format before WARC, which is not read: " +
	"convert it, for instance with 'warcio recompress old.arc.gz new.warc.gz' (Python's warcio), and import that")

// decompress returns the decompressed stream of a WARC, whose first bytes tell the compression.
func (ld *loader) decompress(buffered *bufio.Reader, magic []byte) (io.Reader, func(), error) {
	switch {
	case isGzip(magic):
		m, err := newMemberReader(buffered)
		if err != nil {
			return nil, nil, err
		}
		return m, func() { _ = m.z.Close() }, nil
	case bytes.Equal(magic, []byte(zstdMagic)), isSkippable(magic): // pzstd begins with such a frame
		var options []zstd.DOption
		if string(magic) == zstdDictionary {
			if err := ld.readDictionary(buffered); err != nil {
				return nil, nil, fmt.Errorf("the dictionary at the front of the file: %w", err)
			}
		}
		if ld.dictionary != nil {
			options = append(options, ld.dictionary)
		}
		z, err := newUnzstd(buffered, ld.limits, options...)
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	case string(magic) == "WARC":
		return buffered, func() {}, nil
	case bytes.Equal(magic, []byte("file")):
		if head, _ := buffered.Peek(len(arcMagic)); string(head) == arcMagic {
			return nil, nil, errARC
		}
	}
	head, _ := buffered.Peek(mostMagic) // there may be less
	return nil, nil, unknown(head)
}

// newUnzstd reads what is compressed by zstd.
func newUnzstd(r io.Reader, l Limits, options ...zstd.DOption) (*zstd.Decoder, error) {
	options = append(options, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(128<<20),
		zstd.WithDecoderMaxMemory(uint64(l.Decoded)))
	runtime.GC() // a decoder before this one may have left 128 MiB behind, and a file of 6 kB can make each of them do so
	z, err := zstd.NewReader(r, options...)
	if err != nil {
		return nil, fmt.Errorf("zstd header: %w", err)
	}
	return z, nil
}

// openZip reads a WACZ.
func (a *Archive) openZip(r io.ReaderAt, size int64, l Limits) error {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return fmt.Errorf(
			"the WACZ is cut off or damaged (%w): its list of files at the end cannot be read; copy it again, or record again",
			err,
		)
	}
	if len(z.File) > l.Entries {
		return fmt.Errorf("%d files in the WACZ are more than %d: %w", len(z.File), l.Entries, errLimit)
	}
	// The zip's directory itself is at most as large as the file.
	if err := l.budget.take(recordCost * int64(len(z.File))); err != nil {
		return err
	}
	seen := map[string]*zip.File{}
	for _, f := range z.File {
		if f.Name = plainName(f.Name); f.Name == "" || strings.HasSuffix(f.Name, "/") {
			continue
		}
		if !fs.ValidPath(f.Name) {
			return fmt.Errorf("the WACZ has a file with the impossible name %.80q", f.Name)
		}
		if err := checkPacking(f); err != nil {
			return err
		}
		if seen[f.Name] != nil {
			return fmt.Errorf("the WACZ has two files named %.80q", f.Name)
		}
		seen[f.Name] = f
	}
	if har, err := soleHAR(seen); err != nil {
		return err
	} else if har != nil {
		return a.openZippedHAR(har, seen, l)
	}
	if sessions := fiddlerSessions(seen); len(sessions) > 0 && seen[namePackage] == nil {
		return a.openFiddler(sessions, seen, l)
	}
	seen = inFolder(seen)
	hashes, err := readPackage(seen, l)
	if err != nil {
		return err
	}
	data := warcsOf(z, seen)
	if len(data) == 0 {
		return noWARC(seen, hashes)
	}
	if seen[namePackage] == nil {
		a.warn("the zip has no %s, so that the hashes of its %d WARCs cannot be checked", namePackage, len(data))
	}
	ld := newLoader(a, l)
	index, err := readCuts(data, seen[nameIndex], l)
	if err != nil {
		return err
	}
	var failed error // of the first that has no record
	for _, one := range data {
		err := a.readMember(ld, r, one.file, index.of(one.file.Name), hashes[one.name])
		if err != nil {
			err = fmt.Errorf("%s in the WACZ: %w", one.file.Name, err)
		}
		switch {
		case errors.Is(err, errLimit):
			return err
		case err != nil && failed == nil:
			failed = err
		}
		if errors.Is(err, errUnknown) && len(data) > 1 { // what somebody put beside them
			a.warn("%s is left out: %v", one.file.Name, errors.Unwrap(err))
		} else if err != nil && len(data) > 1 {
			a.lose("%s is left out: %v", one.file.Name, errors.Unwrap(err))
		}
	}
	if ld.records == 0 && failed != nil {
		return failed
	}
	if f := seen[namePages]; f != nil {
		text, err := readSmall(f, l)
		if err != nil {
			return err
		}
		if err := ld.pagesJSON(text); err != nil {
			return err
		}
	}
	return ld.done()
}

// readPackage returns the hashes of datapackage.json by path, if there is one, checking its own digest.
func readPackage(files map[string]*zip.File, l Limits) (map[string]string, error) {
	hashes := map[string]string{}
	f := files[namePackage]
	if f == nil {
		return hashes, nil
	}
	text, err := readSmall(f, l)
	if err != nil {
		return nil, err
	}
	if d := files[nameDigest]; d != nil {
		var digest packageDigest
		b, err := readSmall(d, l)
		if err != nil {
			return nil, err
		}
		if l.budget.unmarshal(b, &digest) == nil && strings.HasPrefix(digest.Hash, "sha256:") {
			if h := sha256.Sum256(text); !strings.EqualFold(digest.Hash, "sha256:"+hex.EncodeToString(h[:])) {
				return nil, fmt.Errorf("%s does not have the hash that %s names: the WACZ was changed", namePackage, nameDigest)
			}
		}
	}
	var p dataPackage
	if err := l.budget.unmarshal(bytes.TrimPrefix(text, []byte(byteOrderMark)), &p); err != nil {
		return nil, fmt.Errorf("%s: %w", namePackage, err)
	}
	for _, r := range p.Resources {
		hashes[plainName(r.Path)] = strings.ToLower(r.Hash)
	}
	return hashes, nil
}

// readSmall reads a JSON or index file of the zip.
func readSmall(f *zip.File, l Limits) ([]byte, error) {
	rc, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%s in the WACZ: %w", f.Name, err)
	}
	defer rc.Close()
	if f.UncompressedSize64 > uint64(l.Index) {
		return nil, fmt.Errorf("%s in the WACZ has more than %d bytes: %w", f.Name, l.Index, errLimit)
	}
	size := int64(f.UncompressedSize64)
	if err := l.budget.take(size); err != nil {
		l.budget.give(size)
		return nil, fmt.Errorf("%s in the WACZ: %w", f.Name, err)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(rc, b); err != nil {
		return nil, fmt.Errorf("%s in the WACZ: %w", f.Name, err)
	}
	// The checksum is compared at the end; a file of more bytes than its head says is an error there.
	if n, err := rc.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		return nil, fmt.Errorf("%s in the WACZ: it is damaged (%w)", f.Name, cmp.Or(err, zip.ErrFormat))
	}
	return b, nil
}

// readMember reads one WARC of the WACZ and compares its hash.
func (a *Archive) readMember(ld *loader, r io.ReaderAt, f *zip.File, cuts []int64, want string) error {
	if f.UncompressedSize64 == 0 { // of a crawler that had nothing left to write
		a.warn("%s is empty", f.Name)
		return nil
	}
	sum := background(f.Open)
	defer sum.stop()
	before := ld.records
	if err := ld.readWARC(r, f, cuts); err != nil {
		if errors.Is(err, errLimit) || ld.records == before {
			return err
		}
		a.lose("%s is damaged after %d complete records (%v), which are used", f.Name, ld.records-before, err)
	}
	switch got, err := sum.wait(); {
	case err != nil:
		a.warn("%s: %v", f.Name, err)
	case strings.HasPrefix(want, "sha256:") && want != "sha256:"+got:
		a.warn("%s does not have the hash that %s names: the file was damaged or changed", f.Name, namePackage)
	}
	return nil
}

// readWARC reads a WARC of the WACZ: by parts as far as they are complete, and the rest from front
// to back. The caller, which computes the hash, checks the zip's checksum.
func (ld *loader) readWARC(r io.ReaderAt, f *zip.File, cuts []int64) error {
	if f.Method != zip.Store || f.CompressedSize64 != f.UncompressedSize64 {
		rc, err := f.Open()
		if err != nil {
			return err
		}
		defer rc.Close()
		return ld.readPacked(io.LimitReader(rc, ld.limits.File))
	}
	at, err := f.DataOffset()
	if err != nil {
		return err
	}
	size := int64(min(f.UncompressedSize64, uint64(ld.limits.File)))
	stored := io.NewSectionReader(r, at, size)
	parts := partsOf(size, cuts, ld.limits.part)
	if len(parts) == 1 {
		return ld.readFrom(stored, 0)
	}
	done, err := ld.readParts(stored, parts)
	if err != nil || done == size {
		return err
	}
	return ld.readFrom(stored, done)
}

// readPacked reads a WARC whose first bytes tell the compression.
func (ld *loader) readPacked(r io.Reader) error {
	raw := bufio.NewReaderSize(r, 64<<10)
	if _, err := skipBlanks(raw, ld.limits.budget); errors.Is(err, errLimit) {
		return err
	} // whoever reads next finds the others
	magic, err := raw.Peek(4)
	if err != nil {
		return fmt.Errorf("cut off: %w", unexpected(err))
	}
	plain, closer, err := ld.decompress(raw, bytes.Clone(magic))
	if err != nil {
		return err
	}
	defer closer()
	return ld.read(plain)
}

func (a *Archive) warn(format string, args ...any) {
	const most = 200 // a hostile file must not fill the memory with warnings
	if len(a.warnings) < most {
		a.warnings = append(a.warnings, fmt.Sprintf(format, args...))
	}
}

// lose warns of something that could not be read.
func (a *Archive) lose(format string, args ...any) {
	a.lost++
	a.warn(format, args...)
}
