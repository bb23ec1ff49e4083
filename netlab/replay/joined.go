package replay

import (
	"fmt"
	"slices"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/replay/match"
)

// pieceKey is equal for 206 answers that are pieces of one representation (RFC 9110, 15.3.7.3).
type pieceKey struct {
	url, etag, modified string
	total               int
}

// joinPieces makes exchanges of pieces that were recorded apart and together hold every byte: a player or a PDF viewer
// asks for other ranges in a replay. No more is joined than the archive's bodies have bytes, however often one of them
// is used.
func joinPieces(a *archive.Archive, entries []*entry) (out []*lab.Exchange) {
	groups := map[pieceKey][]*entry{}
	var order []pieceKey
	distinct := map[*byte]bool{}
	var left int64
	for _, en := range entries {
		if b := en.Response.Body; len(b) > 0 && !distinct[&b[0]] {
			distinct[&b[0]] = true
			left += int64(len(b))
		}
		if en.Part == nil || en.Method != "GET" || en.Truncated != "" || en.Response.Get("Content-Encoding") != "" {
			continue
		}
		k := pieceKey{en.URL, en.Response.Get("ETag"), en.Response.Get("Last-Modified"), en.Part.Total}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], en)
	}
	for _, k := range order {
		if len(groups[k]) > 1 && int64(k.total) <= left {
			if e := joined(groups[k], k.total); e != nil {
				left -= int64(k.total)
				out = append(out, e)
			}
		}
	}
	return out
}

// joined is the exchange with all bytes of some pieces, or nil if they do not hold all.
func joined(pieces []*entry, total int) *lab.Exchange {
	pieces = slices.Clone(pieces)
	slices.SortStableFunc(pieces, func(x, y *entry) int { return x.Part.First - y.Part.First })
	at := 0
	for _, p := range pieces {
		if p.Part.First > at {
			return nil
		}
		at = max(at, p.Part.Last+1)
	}
	if at != total {
		return nil
	}
	first := pieces[0]
	e := *first.Exchange
	e.ID += "+joined"
	e.Request.Header = append(dropFields(slices.Clone(e.Request.Header), "Range"), lab.HeaderField{Name: "Range", Value: "bytes=0-"})
	body := make([]byte, 0, total)
	for _, p := range pieces {
		if p.Part.Last >= len(body) {
			body = append(body, p.Response.Body[len(body)-p.Part.First:]...)
		}
	}
	e.Response.Body, e.Chunks = body, []lab.Chunk{{At: e.FirstByte, Bytes: total}}
	e.Response.Header = append(dropFields(dropFields(slices.Clone(e.Response.Header), "Content-Range"), "Content-Length"),
		lab.HeaderField{Name: "Content-Range", Value: fmt.Sprintf("bytes 0-%d/%d", total-1, total)},
		lab.HeaderField{Name: "Content-Length", Value: fmt.Sprint(total)})
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
