package archive

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"eidetic/internal/lab"

	"github.com/klauspost/compress/zstd"
)

// loader joins records into exchanges.
type loader struct {
	a       *Archive
	limits  Limits
	decoded atomic.Int64 // bytes of records
	records int

	order     []*pending          // responses in the order of the file
	byID      map[string]*pending // by the response's record ID
	requests  map[string][]byte   // request blocks by the response's ID, seen first
	asked     []sentRequest       // requests in the order of the file
	loose     map[string][][]byte // request blocks that name no response, by URL
	sidecars  map[string]*sidecar
	shared    map[[32]byte][]byte // bodies by their SHA-256, so that equal ones are kept once
	dnsMeta   map[string]*DNS
	pageCount map[string]bool
	kinds     map[string]int // records by their type, and scheme where it is not HTTP
	// segments are the records that were written in several, by the ID of the first; segmentIDs are these in the order of
	// the file.
	segments   map[string]*segmented
	segmentIDs []string
	// dictionary is that of a .warc.zst; nil without one.
	dictionary zstd.DOption
	isOwn      bool     // this program wrote the file
	notes      harNotes // what is left out of another tool's file, or was mended
}

// pending is a response that waits for its request and metadata.
type pending struct {
	e       *lab.Exchange
	dns     *DNS
	revisit *revisit
	digest  string // of the body, as the file says
}

// revisit refers to the payload that a revisit record leaves out.
type revisit struct {
	id, url, date, digest string
}

func newLoader(a *Archive, l Limits) *loader {
	a.sums = map[*byte]payload{}
	return &loader{
		a: a, limits: l, byID: map[string]*pending{}, requests: map[string][]byte{}, loose: map[string][][]byte{},
		sidecars: map[string]*sidecar{}, dnsMeta: map[string]*DNS{}, shared: map[[32]byte][]byte{}, pageCount: map[string]bool{},
		kinds: map[string]int{}, segments: map[string]*segmented{},
	}
}

// read takes the records of one WARC. It returns the error of the first incomplete record.
func (ld *loader) read(r io.Reader) error {
	plain := &counter{r: r}
	rr := newRecordReader(plain, ld.limits, &ld.decoded)
	rr.count = ld.records
	var last *record // not taken yet: the checksum of its gzip member comes behind it
	lastAt := int64(0)
	for {
		at := plain.n - int64(rr.r.Buffered())
		rec, err := rr.next()
		if last != nil && isDamaged(err, lastAt) {
			ld.limits.budget.give(int64(len(last.block)) + last.headerCost)
			last = nil
		}
		if last != nil {
			if err := ld.take(parse(last, ld.limits)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		last, lastAt = rec, at
	}
}

// isDamaged tells that a reading ended with a damaged gzip member that began with the record which begins behind a
// byte: at most so many line ends lie between them.
func isDamaged(err error, at int64) bool {
	const lineEnds = 8
	var m *memberError
	return errors.As(err, &m) && at <= m.plain && m.plain <= at+lineEnds
}

// item is a record parsed as far as it can be without the other records, so that many goroutines
// can do it at once.
type item struct {
	*record
	url string
	p   *pending // of a response, revisit or resource; nil for other records
	sum [32]byte // SHA-256 of p's body, if it has one
	err error    // why the record is left out
	// isMisstated: the digest of the body is another's, though the record is whole.
	isMisstated bool
}

func parse(rec *record, l Limits) *item {
	it := &item{record: rec, url: target(rec.get("WARC-Target-URI"))}
	switch rec.kind() {
	case "response":
		it.response(l)
	case "revisit":
		it.revisit(l)
	case "resource":
		it.resource()
	}
	return it
}

// target is the address that a record names, as a browser sends it: wget puts brackets around it, and some tools keep
// the user and the password.
func target(uri string) string {
	uri = strings.TrimSpace(strings.Trim(uri, "<>"))
	u := lab.ParseURL(uri)
	rest, isPlain := strings.CutPrefix(uri, u.Origin())
	if u.IsWeb() && (!isPlain || rest != "" && !strings.ContainsAny(rest[:1], "/?#\\")) {
		return u.Sent() // it has a user, a host in capitals, the scheme's own port, or the dot of the root
	}
	return uri
}

// records bounds the records of a file: an exchange has three.
func (l Limits) records() int { return 8 * l.Exchanges }

// take adds one record. A damaged or unknown record is left out with a warning; an error says that
// there are too many.
func (ld *loader) take(it *item) error {
	ld.records++
	ld.count(it)
	if len(ld.order) > ld.limits.Exchanges || ld.records > ld.limits.records() {
		return fmt.Errorf("more than %d exchanges: %w", ld.limits.Exchanges, errLimit)
	}
	place := fmt.Sprint("record ", ld.records)
	if it.skipped > 0 {
		ld.a.lose("%d bytes before record %d are damaged and left out", it.skipped, ld.records)
	}
	if it.resized != 0 {
		ld.notes.add(place, it.url, "with a wrong Content-Length of the record, which is taken to end where the next begins")
	}
	if it.odd > 0 {
		ld.notes.add(place, it.url, "with lines of the record's header that are no fields, which are left out")
	}
	if ld.hold(it) {
		return nil
	}
	switch it.kind() {
	case "warcinfo":
		ld.info(it.block)
	case "request":
		ld.request(it.record, it.url)
	case "metadata":
		if err := ld.metadata(it.record); err != nil {
			return err
		}
	}
	ld.limits.budget.give(it.headerCost)
	if it.isMisstated {
		ld.notes.add(place, it.url, "with a WARC-Payload-Digest that is not its body's, in a record that is whole by its WARC-Block-Digest")
	}
	switch it.kind() {
	case "":
		ld.a.lose("record %d (%.120s) is left out: it has no WARC-Type", ld.records, it.url)
	case "continuation":
		ld.a.lose("record %d is left out: it does not say of which record it is which segment (WARC-Segment-Origin-ID, WARC-Segment-Number)", ld.records)
	}
	if it.isOther() {
		ld.notes.add(place, it.url, "left out: a record of the tool's own, and no answer to a request of the web")
	}
	var tooMuch *memoryError
	switch {
	case errors.As(it.err, &tooMuch):
		return fmt.Errorf("record %d (%.120s): %w", ld.records, it.url, it.err)
	case it.err != nil:
		ld.a.lose("record %d (%.120s) is left out: %v", ld.records, it.url, it.err)
	case it.p != nil:
		return ld.file(it)
	}
	return nil
}

func (ld *loader) info(block []byte) {
	for line := range bytes.Lines(block) {
		before, after, _ := bytes.Cut(line, []byte(":"))
		if len(before) > 40 || len(after) > ld.limits.Header {
			continue
		}
		value, name := string(bytes.TrimSpace(after)), string(bytes.ToLower(bytes.TrimSpace(before)))
		ld.isOwn = ld.isOwn || strings.HasPrefix(name, "eidetic-")
		switch name {
		case "software":
			ld.a.options.Software = value
		case "title":
			ld.a.options.Title = value
		case "eidetic-seed":
			ld.a.options.Seed, _ = strconv.ParseUint(value, 10, 64)
		case "eidetic-rules":
			rules, err := parseRules(value, ld.limits.budget)
			if err != nil {
				ld.a.warn("%v", err)
			}
			ld.a.options.Rules = rules
		case "eidetic-imported":
			ld.a.options.addImported(value)
		case "eidetic-lost":
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				ld.a.options.Lost = min(n, mostLost)
			}
		case "eidetic-zone":
			if isZone(value) {
				ld.a.options.Zone = value
			}
		case "eidetic-page-date":
			ld.a.options.PageDate, _ = time.Parse(time.RFC3339Nano, value)
		}
	}
}

// mostLost bounds what a file may say that it has lost.
const mostLost = 1 << 30

// newPending starts an exchange from the fields that every record has.
func newPending(rec *record, url string) *pending {
	e := &lab.Exchange{ID: rec.id(), URL: url, Method: "GET", Truncated: strings.ToLower(rec.get("WARC-Truncated"))}
	if i := strings.IndexByte(e.URL, '#'); i >= 0 {
		e.URL = e.URL[:i]
	}
	e.Wall = warcTime(rec.get("WARC-Date"))
	if a, err := netip.ParseAddr(rec.get("WARC-IP-Address")); err == nil {
		e.Server = netip.AddrPortFrom(a, portOf(url))
	}
	for _, f := range rec.header {
		if !strings.EqualFold(f.Name, "WARC-Protocol") {
			continue
		}
		for v := range strings.SplitSeq(strings.ToLower(f.Value), ",") {
			if v = strings.TrimSpace(v); strings.HasPrefix(v, "tls/") {
				e.TLS = v
			} else if e.Protocol == "" && strings.HasPrefix(v, "h") {
				e.Protocol = harProtocol(v)
			}
		}
	}
	return &pending{e: e}
}

// warcTime reads a WARC-Date: also one that is cut off behind a part (WARC 1.1, 5.4), the 14 digits of old tools, and
// the forms that occur in a HAR.
func warcTime(text string) time.Time {
	text = strings.TrimSpace(text)
	for _, layout := range []string{time.RFC3339Nano, "20060102150405", "2006", "2006-01", "2006-01-02", "2006-01-02T15:04Z"} {
		if t, err := time.Parse(layout, text); err == nil {
			return sane(t)
		}
	}
	return harTime(text)
}

func portOf(url string) uint16 {
	host := hostOf(url)
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		if n, err := strconv.ParseUint(host[i+1:], 10, 16); err == nil {
			return uint16(n)
		}
	}
	if strings.HasPrefix(url, "https:") {
		return 443
	}
	return 80
}

func (ld *loader) file(it *item) error {
	p := it.p
	if p.e.ID == "" {
		p.e.ID = fmt.Sprintf("urn:eidetic:record:%d", ld.records)
	}
	if other := ld.byID[p.e.ID]; other != nil {
		if other.e.URL == p.e.URL && other.e.Wall.Equal(p.e.Wall) && bytes.Equal(other.e.Response.Body, p.e.Response.Body) {
			ld.a.warn("record %d is record %.80s again, and is left out", ld.records, p.e.ID)
			ld.limits.budget.give(int64(len(it.block)))
			return nil
		}
		ld.a.warn("record %d repeats the ID %.80s of another, and gets one of its own", ld.records, p.e.ID)
		p.e.ID = fmt.Sprintf("urn:eidetic:record:%d", ld.records)
	}
	if err := ld.limits.budget.take(exchangeCost + addressCost*int64(len(p.e.URL))); err != nil {
		return err
	}
	if p.dns == nil && p.revisit == nil {
		p.e.Response.Body = ld.share(p.e.Response.Body, it.sum)
	}
	ld.byID[p.e.ID] = p
	ld.order = append(ld.order, p)
	return nil
}

// payload is a body that was read, with its hash.
type payload struct {
	bytes []byte
	sum   [32]byte
}

// share returns the copy of a body that is kept, one for all equal bodies.
func (ld *loader) share(b []byte, sum [32]byte) []byte {
	if len(b) == 0 {
		return nil
	}
	if one, ok := ld.shared[sum]; ok {
		ld.limits.budget.give(int64(len(b)))
		return one
	}
	ld.shared[sum], ld.a.sums[&b[0]] = b, payload{b, sum}
	return b
}

// isOther tells a record with content that is no web exchange: crawlers keep screenshots and texts beside them.
func (it *item) isOther() bool {
	if it.p != nil || it.err != nil {
		return false
	}
	switch it.kind() {
	case "resource", "response", "revisit", "conversion":
		return true
	}
	return false
}

func (it *item) response(l Limits) {
	p := newPending(it.record, it.url)
	if name, ok := strings.CutPrefix(it.url, "dns:"); ok {
		if p.dns, it.err = parseDNSText(name, it.record, p.e.Wall, l.budget); it.err == nil {
			it.p = p
		}
		return
	}
	if !isWeb(it.url) {
		return
	}
	if it.err = parseResponse(p.e, it.block, l); it.err != nil {
		return
	}
	it.sum = sha256.Sum256(p.e.Response.Body)
	p.digest = it.get("WARC-Payload-Digest")
	if want := p.digest; !digestMatches(want, it.block, p.e.Response.Body, it.sum) {
		if it.isMisstated = it.isWhole(); !it.isMisstated {
			it.err = fmt.Errorf("its body does not have the digest %.80s", want)
			return
		}
	}
	it.p = p
}

// isWhole tells a record whose block has the digest that it states, so that nothing was changed since it was written.
func (it *item) isWhole() bool {
	label, value, _ := strings.Cut(labelled(it.get("WARC-Block-Digest")), ":")
	switch label {
	case "sha1":
		sum := sha1.Sum(it.block)
		return value == hex.EncodeToString(sum[:])
	case "sha256":
		sum := sha256.Sum256(it.block)
		return value == hex.EncodeToString(sum[:])
	}
	return false
}

// digestMatches compares a labelled digest with the payload. One with an unknown label, or in no form that is known,
// counts as a match. A tool that keeps a transfer coding may have hashed the body with it, so the coded body is compared
// too. bodySum is the SHA-256 of body.
func digestMatches(want string, block, body []byte, bodySum [32]byte) bool {
	label, value, _ := strings.Cut(labelled(want), ":")
	size := digestSize(label)
	if size == 0 || len(value) != hex.EncodedLen(size) {
		return true
	}
	raw := body
	if i := bytes.Index(block, []byte("\r\n\r\n")); i >= 0 {
		raw = block[i+4:]
	}
	hash := func(b []byte, sum [32]byte) string {
		if label == "sha1" {
			s := sha1.Sum(b)
			return hex.EncodeToString(s[:])
		}
		return hex.EncodeToString(sum[:])
	}
	return value == hash(body, bodySum) || len(body) != len(raw) && value == hash(raw, sha256.Sum256(raw))
}

// parseDNSText reads Heritrix' text/dns: a date line, then records.
func parseDNSText(name string, rec *record, wall time.Time, b *budget) (*DNS, error) {
	d := &DNS{
		Name: strings.ToLower(strings.TrimSuffix(name, ".")), Type: "A", RCode: "NOERROR", Wall: wall, Server: rec.get("WARC-IP-Address"),
	}
	i := 0
	for line := range bytes.Lines(rec.block) {
		if line = bytes.TrimSpace(line); i > 0 && len(line) > 0 {
			if err := b.take(int64(fieldCost + len(line))); err != nil {
				return nil, err
			}
			d.Records = append(d.Records, string(line))
		}
		i++
	}
	return d, nil
}

func (it *item) revisit(l Limits) {
	if !isWeb(it.url) {
		return
	}
	p := newPending(it.record, it.url)
	if len(it.block) > 0 {
		if it.err = parseResponse(p.e, it.block, l); it.err != nil {
			return
		}
	}
	if strings.Contains(it.get("WARC-Profile"), "server-not-modified") {
		if p.e.Status == 0 { // the answer itself is not kept
			p.e.Status, p.e.Reason, p.e.Protocol = 304, "Not Modified", cmp.Or(p.e.Protocol, "http/1.1")
		}
	} else {
		p.revisit = &revisit{
			id: unbracket(it.get("WARC-Refers-To")), url: target(it.get("WARC-Refers-To-Target-URI")),
			date: it.get("WARC-Refers-To-Date"), digest: it.get("WARC-Payload-Digest"),
		}
	}
	it.p = p
}

func (it *item) resource() {
	if !strings.HasPrefix(it.url, "http:") && !strings.HasPrefix(it.url, "https:") {
		return
	}
	p := newPending(it.record, it.url)
	p.e.Status, p.e.Reason, p.e.Protocol = 200, "OK", "http/1.1"
	if kind := it.get("Content-Type"); kind != "" {
		p.e.Response.Header = []lab.HeaderField{{Name: "Content-Type", Value: kind}}
	}
	p.e.Response.Body = nonEmpty(it.block)
	it.p, it.sum = p, sha256.Sum256(it.block)
}

// request takes a request record. It may name several records that were made with it (WARC 1.1, 5.7).
func (ld *loader) request(rec *record, url string) {
	r := sentRequest{url: url, block: rec.block}
	for _, f := range rec.header {
		if id := unbracket(f.Value); id != "" && strings.EqualFold(f.Name, "WARC-Concurrent-To") {
			ld.requests[id] = rec.block
			r.of = append(r.of, id)
		}
	}
	ld.asked = append(ld.asked, r)
}

// sentRequest is a request, with the records that it names.
type sentRequest struct {
	url   string
	of    []string
	block []byte
}

// looseRequests finds the requests that name no response of the file: the URL tells theirs, unless this program wrote
// the file.
func (ld *loader) looseRequests() {
	for _, r := range ld.asked {
		known := slices.ContainsFunc(r.of, func(id string) bool { return ld.byID[id] != nil })
		if len(r.of) == 0 || !known && !ld.ours() {
			ld.loose[r.url] = append(ld.loose[r.url], r.block)
		}
	}
	ld.asked = nil
}

// metadata takes the JSON of a metadata record. One that cannot be read is left out with a warning; an
// error ends the reading.
func (ld *loader) metadata(rec *record) error {
	decode := func(v any) (bool, error) {
		err := ld.limits.budget.unmarshal(rec.block, v)
		if err != nil && !errors.Is(err, errLimit) {
			ld.a.lose("metadata record %d is left out: %v", ld.records, err)
			return false, nil
		}
		ld.limits.budget.give(int64(len(rec.block))) // the text itself is not kept
		return err == nil, err
	}
	id := unbracket(rec.get("WARC-Concurrent-To"))
	switch rec.get("Content-Type") {
	case typeExchange:
		s := &sidecar{}
		if ok, err := decode(s); !ok {
			return err
		}
		ld.sidecars[id] = s
		if s.Pending && ld.byID[id] == nil && id != "" {
			p := newPending(rec, target(rec.get("WARC-Target-URI")))
			p.e.ID = id
			ld.byID[id], ld.order = p, append(ld.order, p)
			return ld.limits.budget.take(exchangeCost)
		}
	case typeDNS:
		d := &DNS{}
		if ok, err := decode(d); !ok {
			return err
		}
		ld.dnsMeta[id] = d
	case typePage:
		return ld.page(rec.block)
	}
	return nil
}

func (ld *loader) page(line []byte) error {
	var p Page
	if json.Unmarshal(line, &p) != nil || p.URL == "" {
		return nil
	}
	p.URL = browserURL(target(p.URL))
	key := p.URL + p.Wall.UTC().String()
	if ld.pageCount[key] {
		return nil
	}
	ld.pageCount[key] = true
	ld.a.pages = append(ld.a.pages, p)
	return ld.limits.budget.take(int64(recordCost + 2*len(key) + len(p.Title)))
}

// maxPages bounds the visited documents of a recording.
const maxPages = 100_000

func (ld *loader) pagesJSON(text []byte) error {
	defer ld.limits.budget.give(int64(len(text)))
	if n := bytes.Count(text, []byte("\n")); n > maxPages {
		return fmt.Errorf("%s has %d lines, more than %d: %w", namePages, n, maxPages, errLimit)
	}
	for line := range bytes.Lines(text) {
		if err := ld.page(line); err != nil {
			return err
		}
	}
	return nil
}
