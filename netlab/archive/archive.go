package archive

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// Archive is a recording in RAM. It does not change after it was opened, and sessions may
// share it.
type Archive struct {
	exchanges []*lab.Exchange
	dns       []DNS
	pages     []Page
	options   CreateOptions
	info      lab.ArchiveInfo
	warnings  []string
	notes     []string // what reading another tool's file left out, lacks or changed
	lost      int      // exchanges, or parts of the file, that could not be read
	found     string   // what is in a file of which nothing can be replayed

	sums map[*byte]payload // of the bodies that were read, by their first byte
}

// New returns an archive of exchanges that are in RAM already, for imports and tests. It does
// not copy them.
func New(exchanges []*lab.Exchange, dns []DNS, pages []Page, o CreateOptions) *Archive {
	a := &Archive{exchanges: exchanges, dns: dns, pages: pages, options: o}
	a.finish()
	return a
}

// Exchanges returns the exchanges by Order. They are shared: do not change them.
func (a *Archive) Exchanges() []*lab.Exchange { return a.exchanges }

// DNS returns the recorded answers in the order of the recording.
func (a *Archive) DNS() []DNS { return a.dns }

// BodySHA256 returns the hex SHA-256 of a body of this archive or any other. For a body of this
// archive it was computed while the file was read.
func (a *Archive) BodySHA256(body []byte) string {
	if len(body) > 0 {
		if p, ok := a.sums[&body[0]]; ok && len(p.bytes) == len(body) {
			return hex.EncodeToString(p.sum[:])
		}
	}
	h := sha256.Sum256(body)
	return hex.EncodeToString(h[:])
}

// Pages returns the documents that were visited.
func (a *Archive) Pages() []Page { return a.pages }

// Options returns the options that the recording was created with, as far as the file has them.
func (a *Archive) Options() CreateOptions { return a.options }

// Info describes the archive for a report.
func (a *Archive) Info() lab.ArchiveInfo { return a.info }

// Warnings lists the defects of the file that could be repaired, such as a cut-off end, and what
// reading another tool's file left out, lacks or changed: one line each.
func (a *Archive) Warnings() []string { return slices.Concat(a.warnings, a.notes) }

// IsSeeded tells that the pages drew their numbers from a seed while they were recorded, so that they draw
// the same ones in a replay. The pages of an import did not.
func (a *Archive) IsSeeded() bool { return !a.options.PageDate.IsZero() }

// Import returns the archive of a file that is to be kept as an archive of its own. It keeps what
// Warnings said of the file. It is an error if nothing of the file can be replayed.
func (a *Archive) Import() (*Archive, error) {
	if len(a.exchanges) == 0 {
		return nil, fmt.Errorf("nothing of it can be replayed: it is %s", cmp.Or(a.found, "an archive without exchanges"))
	}
	return New(a.exchanges, a.dns, a.pages, a.carried()), nil
}

// Lost is how many exchanges, or damaged parts of unknown size, of the file could not be read; the
// warnings say which. What is made of the archive lacks them.
func (a *Archive) Lost() int { return a.lost }

// carried are the options of an archive that is made of this one: they keep what was said of the file,
// and what it had lost.
func (a *Archive) carried() CreateOptions {
	o := a.options
	o.Lost += a.lost
	o.Imported = a.importNotes()
	for _, w := range a.warnings {
		o.addImported(w)
	}
	return o
}

// importNotes are the notes of this import and of earlier ones.
func (a *Archive) importNotes() []string {
	o := CreateOptions{Imported: slices.Clone(a.options.Imported)}
	for _, n := range a.notes {
		o.addImported(n)
	}
	return o.Imported
}

// finish sorts the exchanges and counts them.
func (a *Archive) finish() {
	slices.SortStableFunc(a.exchanges, func(x, y *lab.Exchange) int { return x.Order - y.Order })
	hosts, protocols := map[string]bool{}, map[string]bool{}
	a.info.Exchanges, a.info.BodyBytes = len(a.exchanges), 0
	for _, e := range a.exchanges {
		a.info.BodyBytes += int64(len(e.Response.Body))
		hosts[hostOf(e.URL)] = true
		protocols[e.Protocol] = true
	}
	a.info.Hosts, a.info.Protocols = keys(hosts), keys(protocols)
}

// hostOf returns the host and port of an absolute URL as it is written.
func hostOf(raw string) string {
	_, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return ""
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return strings.ToLower(rest[strings.LastIndexByte(rest, '@')+1:])
}

func keys(m map[string]bool) []string {
	out := []string{}
	for k := range m {
		if k != "" {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}
