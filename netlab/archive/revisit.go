package archive

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"
)

// payloads finds bodies for revisit records.
type payloads struct {
	byID, byDigest map[string]*pending
	byURL          map[string]*pending
	digests        map[*pending][]string // in the form of labelled
	left           int64                 // bytes that the bodies of all revisits may have: each is written and sent again
}

func (ld *loader) payloads() (*payloads, error) {
	ps := &payloads{
		byID: map[string]*pending{}, byDigest: map[string]*pending{}, byURL: map[string]*pending{}, digests: map[*pending][]string{},
		left: ld.limits.Decoded,
	}
	needed, sha1s := false, false
	for _, p := range ld.order {
		if p.revisit != nil {
			needed, sha1s = true, sha1s || strings.HasPrefix(labelled(p.revisit.digest), "sha1:")
		}
	}
	if !needed {
		return ps, nil
	}
	if err := ld.limits.budget.take(recordCost * int64(len(ld.order))); err != nil {
		return nil, err
	}
	for _, p := range ld.order {
		if p.dns != nil || p.revisit != nil {
			continue
		}
		ps.byID[p.e.ID] = p
		ps.byURL[p.e.URL+" "+p.e.Wall.UTC().Format(time.RFC3339)] = p
		if _, ok := ps.byURL[p.e.URL]; !ok {
			ps.byURL[p.e.URL] = p
		}
		// The tool may have hashed the body with its transfer coding.
		digests := []string{"sha256:" + ld.a.BodySHA256(p.e.Response.Body)}
		if said := labelled(p.digest); said != "" {
			digests = append(digests, said)
		}
		if sha1s {
			sum := sha1.Sum(p.e.Response.Body)
			digests = append(digests, "sha1:"+hex.EncodeToString(sum[:]))
		}
		ps.digests[p] = digests
		for _, d := range digests {
			ps.byDigest[d] = p
		}
	}
	return ps, nil
}

// resolve gives a revisit the body that it refers to, or says why not.
func (ps *payloads) resolve(p *pending) (why string) {
	r := p.revisit
	day := r.date
	if t, err := time.Parse(time.RFC3339Nano, r.date); err == nil {
		day = t.UTC().Format(time.RFC3339)
	}
	want := labelled(r.digest)
	if isOfNothing(want) && p.e.Status > 0 {
		p.e.Truncated = "" // as below
		return ""
	}
	for _, from := range []*pending{ps.byID[r.id], ps.byURL[r.url+" "+day], ps.byDigest[want], ps.byURL[r.url]} {
		if from == nil || want != "" && !ps.has(from, want) {
			continue
		}
		if ps.left -= int64(len(from.e.Response.Body)); ps.left < 0 {
			return "all bodies that revisits refer to are more than the limit"
		}
		// A revisit states "length" as its block lacks the body (WARC 1.1, 6.7.2): whether that body is whole is told by the
		// record that has it.
		p.e.Response.Body, p.e.Truncated = from.e.Response.Body, from.e.Truncated
		if p.e.Status == 0 {
			p.e.Status, p.e.Reason, p.e.Protocol = from.e.Status, from.e.Reason, from.e.Protocol
			p.e.Response.Header = from.e.Response.Header
		}
		ps.byID[p.e.ID], ps.digests[p] = p, ps.digests[from] // another revisit may name this one
		return ""
	}
	return "it refers to a body that the file does not have: if another WARC of the crawl has it, import both in one zip"
}

// isOfNothing tells the digest of an empty body, as redirects have.
func isOfNothing(digest string) bool {
	bySHA1, bySHA256 := sha1.Sum(nil), sha256.Sum256(nil)
	return digest == "sha1:"+hex.EncodeToString(bySHA1[:]) || digest == "sha256:"+hex.EncodeToString(bySHA256[:])
}

// has tells whether a body has a digest, as far as that can be known: with an unknown algorithm
// only the digests in the file can be compared with each other.
func (ps *payloads) has(p *pending, want string) bool {
	label, _, _ := strings.Cut(want, ":")
	known := label == "sha256" || label == "sha1" || ps.byDigest[want] != nil
	for _, d := range ps.digests[p] {
		if d == want {
			return true
		}
		known = known || strings.HasPrefix(d, label+":")
	}
	return !known
}

// labelled normalises a labelled digest to sha256 or sha1 in hex: it may be in hex, in base 32, or in Base64 of either
// alphabet (WARC 1.1, 5.8, asks for none of them). The digest of another algorithm stays as it is; a text that is no
// labelled digest gives "".
func labelled(digest string) string {
	label, value, ok := strings.Cut(digest, ":")
	if !ok {
		return ""
	}
	label = strings.ReplaceAll(strings.ToLower(label), "-", "")
	size, bare := digestSize(label), strings.TrimRight(value, "=")
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString,
		func(s string) ([]byte, error) {
			return base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(s))
		},
		base64.RawStdEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if raw, err := decode(bare); err == nil && len(raw) == size && size > 0 {
			return label + ":" + hex.EncodeToString(raw)
		}
	}
	return label + ":" + value
}

// digestSize is how many bytes a digest has, or 0 for one of an algorithm that is not known.
func digestSize(label string) int {
	return map[string]int{"sha1": sha1.Size, "sha256": sha256.Size}[label]
}
