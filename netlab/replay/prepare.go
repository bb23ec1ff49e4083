package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
	"eidetic/netlab/message"
	"eidetic/netlab/replay/match"
)

// Prepared is an archive made ready to be replayed: indexes for matching, and
// documents with the script in them, re-encoded. Sessions share it.
type Prepared struct {
	archive *archive.Archive
	script  *inject.Script

	ignored   *match.Ignored
	index     *match.Index
	entries   map[*match.Entry]*entry // those of index
	filled    int                     // exchanges of a View that were added
	protocols map[string][]string     // by host as in the URL
	hosts     []string
	names     map[string]bool // of hosts, and those that were looked up
	browsed   map[string]bool // hosts that a browser was seen to ask
	recoded   sync.Map        // recodeKey → *body, for devices that lack a content coding

	dictionaries dictionaries
}

// entry is one exchange, ready to be matched and served.
type entry struct {
	*match.Entry
	body   *body // as recorded
	filled bool  // it is one of a View
	// variants are the body with the script in it, by inject.Plan.Kind; nil if no request for it
	// gets a script.
	variants *[inject.Kinds]variant
}

// body is a response body as it goes to the device.
type body struct {
	bytes  []byte
	chunks []lab.Chunk
	header []lab.HeaderField
	sum    string // hex SHA-256
	stated string // the length that the origin stated over HTTP/2, if it is not the body's

	fields []preparedField // header, made ready
	altSvc bool            // header has an Alt-Svc
	coding string          // its content coding, if that can be replaced by another
}

// prepare makes the header ready to be sent.
func (b *body) prepare(en *entry) {
	b.fields = prepareFields(b.header, &en.Request)
	for _, f := range b.header {
		b.altSvc = b.altSvc || strings.EqualFold(f.Name, "Alt-Svc")
	}
	coding := inject.ContentCoding(b.header)
	if inject.Recodes(coding) && en.Truncated == "" && en.Part == nil {
		b.coding = coding
	}
}

// Prepare indexes a and puts the script of o into its documents.
func Prepare(a *archive.Archive, o inject.Options) (*Prepared, error) {
	script, limit := inject.NewScript(o), archive.NewDecodeLimit(a)
	entries := make([]*entry, 0, len(a.Exchanges()))
	compared := make([]*match.Entry, 0, len(a.Exchanges()))
	for _, e := range a.Exchanges() {
		en, err := newEntry(a, script, e, limit)
		if err != nil {
			return nil, fmt.Errorf("prepare replay: exchange %s: %w", e.ID, err)
		}
		entries, compared = append(entries, en), append(compared, en.Entry)
	}
	for _, e := range joinPieces(a, entries) {
		en, err := newEntry(a, script, e, limit)
		if err != nil {
			return nil, fmt.Errorf("prepare replay: exchange %s: %w", e.ID, err)
		}
		entries = append(entries, en)
	}
	p := newPrepared(a, script, match.Learn(compared, ignoredBy(a.Options().Rules)))
	for _, en := range entries {
		p.add(en)
	}
	p.learnHosts()
	return p, nil
}

// ignoredBy tells whether one of the rules leaves a parameter of a request out.
func ignoredBy(rules []archive.Rule) func(url, name string) bool {
	return func(url, name string) bool {
		return slices.ContainsFunc(rules, func(r archive.Rule) bool { return r.Ignores(url, name) })
	}
}

func newPrepared(a *archive.Archive, script *inject.Script, ignored *match.Ignored) *Prepared {
	return &Prepared{
		archive: a, script: script, ignored: ignored,
		index: match.NewIndex(ignored), entries: map[*match.Entry]*entry{}, protocols: map[string][]string{},
	}
}

func (p *Prepared) add(en *entry) {
	p.index.Add(en.Entry)
	p.entries[en.Entry] = en
}

func newEntry(a *archive.Archive, script *inject.Script, e *lab.Exchange, limit *archive.DecodeLimit) (*entry, error) {
	sum := a.BodySHA256(e.Response.Body)
	compared := match.NewEntry(e, sum)
	en := &entry{Entry: compared}
	en.body = &body{bytes: e.Response.Body, chunks: e.Chunks, header: trueLength(e), sum: sum}
	isTrue := len(en.body.header) == 0 || &en.body.header[0] == &e.Response.Header[0]
	if e.Protocol == "h2" && a.IsSeeded() && !isTrue { // other tools' are mistakes
		en.body.stated = e.Response.Get("Content-Length")
	}
	en.body.prepare(en)
	if script.Concerns(e.Method, e.Status, e.Response.Header) {
		en.variants = new([inject.Kinds]variant)
		if plan := script.Plan(e.Method, e.URL, &e.Request, e.Status, e.Response.Header); plan != nil {
			en.injected(plan)
			if err := limit.Take(en.variants[plan.Kind()].decoded); err != nil {
				return nil, err
			}
		}
	}
	return en, nil
}

// trueLength returns the header with a Content-Length that is the body's: other tools keep one that belonged to the
// compressed or uncut body. What states the true length in words of its own ("5, 5"), or none ("abc"), stays.
func trueLength(e *lab.Exchange) []lab.HeaderField {
	want, hasBody := int64(len(e.Response.Body)), e.Method != "HEAD" && bodyAllowed(e.Status)
	got, err := message.Length((&message.Head{Fields: e.Response.Header}).Values("Content-Length"))
	if err == nil && (got < 0 || got == want) || !hasBody || e.Truncated != "" {
		return e.Response.Header
	}
	fields := slices.Clone(e.Response.Header)
	return append(dropFields(fields, "Content-Length"), lab.HeaderField{Name: "Content-Length", Value: strconv.FormatInt(want, 10)})
}

// injectBody puts the script into a recorded body. It returns nil for one that
// turns out to be no document. decoded is how many bytes the body decoded to.
func injectBody(plan *inject.Plan, from *body) (to *body, decoded int64, err error) {
	s, err := plan.NewStream()
	if err != nil {
		return nil, 0, err
	}
	to, err = through(from, s)
	decoded = s.Decoded()
	if err != nil || s.Unchanged() {
		return nil, decoded, err
	}
	to.header = plan.Header(from.header, s.Charset())
	if (&lab.Message{Header: from.header}).Get("Content-Length") != "" {
		to.header = append(to.header, lab.HeaderField{Name: "Content-Length", Value: fmt.Sprint(len(to.bytes))})
	}
	return to, decoded, nil
}

// through runs a recorded body through s chunk by chunk, so that each piece of
// the result keeps the time of the piece that it comes from.
func through(from *body, s *inject.Stream) (*body, error) {
	to := &body{bytes: make([]byte, 0, len(from.bytes)+len(from.bytes)/64+4<<10)} // a large body that grows is there twice
	rest := from.bytes
	add := func(at time.Duration, out []byte) {
		if len(out) == 0 {
			return
		}
		to.bytes = append(to.bytes, out...)
		if n := len(to.chunks); n > 0 && to.chunks[n-1].At == at {
			to.chunks[n-1].Bytes += len(out)
			return
		}
		to.chunks = append(to.chunks, lab.Chunk{At: at, Bytes: len(out)})
	}
	const part = 256 << 10 // a stream takes several times what it is fed at once
	var last time.Duration
	for _, c := range from.chunks {
		for left := c.Bytes; left > 0; {
			n := min(left, part)
			out, err := s.Feed(rest[:n])
			if err != nil {
				_, _ = s.Finish()
				return nil, err
			}
			add(c.At, out)
			rest, left = rest[n:], left-n
			last = c.At
		}
	}
	out, err := s.Finish()
	if err != nil {
		return nil, err
	}
	add(last, out)
	if n := len(from.chunks); n > 0 && from.chunks[n-1].Bytes == 0 { // when the body was cut off
		to.chunks = append(to.chunks, from.chunks[n-1])
	}
	to.sum = hexSum(to.bytes)
	return to, nil
}

func hexSum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// learnHosts notes which protocols each origin spoke over TLS.
func (p *Prepared) learnHosts() {
	names := map[string]bool{}
	p.browsed = map[string]bool{}
	spoken := map[string]map[string]bool{}
	for en := range p.entries {
		scheme, host, _ := strings.Cut(en.Origin(), "://")
		names[bareHost(host)] = true
		if IsOfBrowser(&en.Request) {
			p.browsed[bareHost(host)] = true
		}
		if scheme == "https" {
			if spoken[host] == nil {
				spoken[host] = map[string]bool{}
			}
			spoken[host][en.Protocol] = true
		}
	}
	for _, host := range slices.Sorted(maps.Keys(spoken)) {
		set := spoken[host]
		var list []string
		for _, proto := range []string{"h3", "h2", "http/1.1"} {
			// An origin that speaks a newer protocol also speaks the older ones.
			if set[proto] || len(list) > 0 || proto == "http/1.1" {
				list = append(list, proto)
			}
		}
		p.protocols[host] = list
		if bare := bareHost(host); p.protocols[bare] == nil {
			p.protocols[bare] = list
		}
	}
	p.names = map[string]bool{}
	for name := range names {
		p.hosts = append(p.hosts, name)
		p.names[strings.ToLower(name)] = true
	}
	for _, d := range p.archive.DNS() {
		p.names[d.Name] = true
	}
	slices.Sort(p.hosts)
}

// IsOfBrowser tells a request of a browser by what every browser sends: the name of the first, or what the answer is for.
func IsOfBrowser(h match.Header) bool {
	return strings.HasPrefix(h.Get("User-Agent"), "Mozilla/") || h.Get("Sec-Fetch-Site") != ""
}

// isOfAnother tells a request of another program than the browser whose pages were recorded: to a host that none of
// them asked, and not as a browser asks.
func (p *Prepared) isOfAnother(r *http.Request) bool {
	return len(p.browsed) > 0 && !p.browsed[bareHost(r.URL.Host)] && !IsOfBrowser(r.Header)
}

// bareHost returns a host without its port.
func bareHost(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		return host[:i]
	}
	return host
}
