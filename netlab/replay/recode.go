package replay

import (
	"strconv"
	"strings"

	"eidetic/internal/lab"
	"eidetic/netlab/inject"
)

// recodeKey is a body in another content coding.
type recodeKey struct {
	body   *body
	coding string
}

// coded returns b in a content coding that the device takes: gzip or none, if
// it does not take the recorded one. That is done once for each body.
func (s *Session) coded(en *entry, b *body, accept string) *body {
	if accept == en.Request.Get("Accept-Encoding") || acceptsAll(accept, b.coding) {
		return b
	}
	key := recodeKey{body: b}
	if accepts(accept, "gzip") {
		key.coding = "gzip"
	}
	if made, ok := s.p.recoded.Load(key); ok {
		return made.(*body)
	}
	made, err := recode(b, b.coding, key.coding)
	if err != nil {
		return b // it does not decode, which verifying the archive reports
	}
	made.prepare(en)
	kept, _ := s.p.recoded.LoadOrStore(key, made)
	return kept.(*body)
}

func recode(from *body, coding, to string) (*body, error) {
	stream, err := inject.NewRecoder(coding, to)
	if err != nil {
		return nil, err
	}
	b, err := through(from, stream)
	if err != nil {
		return nil, err
	}
	b.header = recodedHeader(from.header, to, len(b.bytes))
	return b, nil
}

// recodedHeader is the header of a body of n bytes in another content coding.
func recodedHeader(fields []lab.HeaderField, to string, n int) (out []lab.HeaderField) {
	isCoded := false
	for _, f := range fields {
		switch strings.ToLower(f.Name) {
		case "content-encoding": // there may be several, of codings one on the other
			if f.Value = to; to == "" || isCoded {
				continue
			}
			isCoded = true
		case "content-length":
			f.Value = strconv.Itoa(n)
		case "content-md5", "digest", "content-digest", "repr-digest", "accept-ranges":
			continue
		case "etag": // another representation, with the same meaning (RFC 9110, 8.8.3)
			if !strings.HasPrefix(f.Value, "W/") {
				f.Value = "W/" + f.Value
			}
		}
		out = append(out, f)
	}
	return out
}

// acceptsAll tells whether a field takes all of the codings that a body has.
func acceptsAll(field, codings string) bool {
	for coding := range strings.SplitSeq(codings, ", ") {
		if !accepts(field, coding) {
			return false
		}
	}
	return true
}

// accepts tells whether an Accept-Encoding field takes a coding (RFC 9110,
// 12.5.3). A device that sends no such field takes no coding.
func accepts(field, coding string) bool {
	any := false
	for item := range strings.SplitSeq(field, ",") {
		name, params, _ := strings.Cut(item, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name != coding && name != "*" && !(coding == "gzip" && name == "x-gzip") {
			continue
		}
		good := true
		if _, q, ok := strings.Cut(strings.ToLower(params), "q="); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
			good = err == nil && v > 0
		}
		if name != "*" {
			return good
		}
		any = good
	}
	return any
}
