package replay

import (
	"fmt"
	"slices"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/replay/match"
)

// pieceKey is equal for 206 answers that are pieces of one representation (RFC 9110, 15.3.7.3).
type pieceKey struct{ url, etag, modified string }

// joinPieces makes exchanges of pieces that were recorded apart and follow on each other: a player or a PDF viewer asks
// for other ranges in a replay. No more is joined than the archive's bodies have bytes, however often one of them is
// used.
func joinPieces(a *archive.Archive, entries []*entry) (out []*lab.Exchange) {
	groups := map[pieceKey][]*entry{}
	var order []pieceKey
	distinct := map[*byte]bool{}
	var left int
	for _, en := range entries {
		if b := en.Response.Body; len(b) > 0 && !distinct[&b[0]] {
			distinct[&b[0]] = true
			left += len(b)
		}
		if en.Part == nil || en.Method != "GET" || en.Truncated != "" || en.Response.Get("Content-Encoding") != "" {
			continue
		}
		k := pieceKey{en.URL, en.Response.Get("ETag"), en.Response.Get("Last-Modified")}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], en)
	}
	for _, k := range order {
		total, ok := totalOf(groups[k])
		if !ok {
			continue
		}
		for _, run := range runs(groups[k]) {
			first, last := run[0].Part.First, lastOf(run)
			if n := last + 1 - first; len(run) > 1 && n <= left {
				left -= n
				out = append(out, joined(run, first, last, total))
			}
		}
	}
	return out
}

// totalOf is the length that pieces name, or -1 if none does ("*"); ok is false if two differ.
func totalOf(pieces []*entry) (total int, ok bool) {
	total = -1
	for _, p := range pieces {
		if n := p.Part.Total; n >= 0 && total >= 0 && n != total {
			return 0, false
		}
		total = max(total, p.Part.Total)
	}
	return total, total < 0 || lastOf(pieces) < total
}

func lastOf(pieces []*entry) (last int) {
	for _, p := range pieces {
		last = max(last, p.Part.Last)
	}
	return last
}

// runs sorts pieces, and cuts them where a byte is missing.
func runs(pieces []*entry) (out [][]*entry) {
	pieces = slices.Clone(pieces)
	slices.SortStableFunc(pieces, func(x, y *entry) int { return x.Part.First - y.Part.First })
	from, last := 0, pieces[0].Part.Last
	for i, p := range pieces {
		if p.Part.First > last+1 {
			out = append(out, pieces[from:i])
			from = i
		}
		last = max(last, p.Part.Last)
	}
	return append(out, pieces[from:])
}

// joined is the exchange with all bytes of some pieces, from first to last.
func joined(pieces []*entry, first, last, total int) *lab.Exchange {
	e := *pieces[0].Exchange
	e.ID += "+joined"
	toEnd := slices.ContainsFunc(pieces, func(p *entry) bool { return p.Part.ToEnd && p.Part.Last == last })
	asked, of := fmt.Sprintf("bytes=%d-%d", first, last), "*"
	if toEnd || last == total-1 {
		asked = fmt.Sprintf("bytes=%d-", first)
	}
	if total >= 0 {
		of = fmt.Sprint(total)
	}
	e.Request.Header = append(dropFields(slices.Clone(e.Request.Header), "Range"), lab.HeaderField{Name: "Range", Value: asked})
	body := make([]byte, 0, last+1-first)
	for _, p := range pieces {
		if at := first + len(body); p.Part.Last >= at {
			body = append(body, p.Response.Body[at-p.Part.First:]...)
		}
	}
	e.Response.Body, e.Chunks = body, []lab.Chunk{{At: e.FirstByte, Bytes: len(body)}}
	e.Response.Header = append(dropFields(slices.Clone(e.Response.Header), "Content-Range", "Content-Length"),
		lab.HeaderField{Name: "Content-Range", Value: fmt.Sprintf("bytes %d-%d/%s", first, last, of)},
		lab.HeaderField{Name: "Content-Length", Value: fmt.Sprint(len(body))})
	return &e
}

// askedKey is equal for entries that count once among those that a page asked for: how many ranges a player asks for
// depends on how quickly they come.
func askedKey(en *match.Entry) any {
	if en.AskedRange != "" || en.Part != nil {
		return en.URL
	}
	return en
}
