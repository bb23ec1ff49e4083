package blob_test

import (
	"net/http"
	"strconv"
	"testing"

	"eidetic/internal/fleet/blob"
	"eidetic/internal/rigs/testlab"
)

func FuzzPatchHeaders(f *testing.F) {
	const kind = "application/offset+octet-stream"
	f.Add(kind, "0", "100", "", int64(100), false)
	f.Add(kind, "100", "100", "", int64(0), false)
	f.Add(kind, "7", "100", "identity", int64(-1), false)
	f.Add("text/plain", "0", "1", "", int64(1), false)
	f.Add(kind, "-1", "+1", "", int64(1), true)
	f.Add(kind, "999999999999999", "9223372036854775807", "", int64(1<<62), false)
	f.Add(kind, "0x10", "1_000", "", int64(0), false)
	f.Add(kind, " 1", "1 ", "", int64(0), false)
	f.Fuzz(func(t *testing.T, kind, offset, length, encoding string, body int64, twice bool) {
		defer testlab.Input(t)()
		r := &http.Request{Header: http.Header{"Content-Type": {kind}, "Upload-Offset": {offset}, "Upload-Length": {length}}, ContentLength: body}
		if encoding != "" {
			r.Header.Set("Content-Encoding", encoding)
		}
		if twice {
			r.Header.Add("Upload-Offset", offset)
		}
		from, to, status, err := blob.ParsePatch(r)
		if err != nil {
			if status < 400 || status > 499 {
				t.Errorf("ParsePatch() = status %d for %v; want one of the client's", status, err)
			}
			return
		}
		if from < 0 || from > to || body > to-from || twice || encoding != "" {
			t.Errorf("ParsePatch(%q, %q, body %d, twice %v) = %d, %d, nil; want an error", offset, length, body, twice, from, to)
		}
		// Zeros in front are all that two spellings may differ by.
		if n, err := strconv.ParseInt(offset, 10, 64); err != nil || n != from {
			t.Errorf("ParsePatch(%q) = %d; strconv says %d, %v", offset, from, n, err)
		}
	})
}
