package archive

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"eidetic/internal/lab"
	"eidetic/netlab/inject"
)

// body returns the request's body.
func (r *harRequest) body() ([]byte, error) {
	if c := r.Content; r.PostData == nil && c != nil && c.Text != nil {
		return (&harPost{Text: *c.Text, Encoding: c.Encoding}).bytes(c.Size)
	}
	return r.PostData.bytes(r.BodySize)
}

// bytes returns the request's body; size is its length as the exporter states it.
func (p *harPost) bytes(size harInt) ([]byte, error) {
	switch {
	case p == nil:
		return nil, nil
	case p.attached != nil:
		return p.attached, nil
	case p.Text == "" && len(p.Params) > 0 && (p.MIME == "" || strings.HasPrefix(p.MIME, "application/x-www-form-urlencoded")):
		var parts []string
		for _, q := range p.Params { // exporters keep them escaped
			parts = append(parts, q.Name+"="+q.Value)
		}
		return []byte(strings.Join(parts, "&")), nil
	case isBase64(p.Encoding):
		b, err := fromBase64(string(p.Text))
		if err != nil {
			return nil, fmt.Errorf("request body: %w", err)
		}
		return nonEmpty(b), nil
	}
	if body, n := afterFields(string(p.Text)); n > 0 {
		return harString(body).wire(n).bytes, nil
	}
	return p.Text.wire(int64(size)).bytes, nil
}

// afterFields returns what follows on the fields that Firefox writes before the body of a form that a page sends without a
// script, and how many bytes it had; 0 without such fields.
func afterFields(text string) (body string, n int64) {
	head, body, found := strings.Cut(text, "\r\n\r\n")
	for line := range strings.SplitSeq(head[:min(len(head), 1<<10)], "\r\n") {
		switch name, value, _ := strings.Cut(line, ":"); strings.ToLower(name) {
		case "content-length":
			n, _ = strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		case "content-type", "content-disposition":
		default:
			return "", 0
		}
	}
	if !found || n != int64(len(body)) && n != int64(utf8.RuneCountInString(body)) {
		return "", 0
	}
	return body, n
}

// truncations are WARC's words for why a body was cut off.
var truncations = []string{"length", "time", "disconnect", "unspecified"}

// firefoxLimit is how much of a body Firefox keeps (devtools.netmonitor.responseBodyLimit).
const firefoxLimit = 1 << 20

// isCut tells a body that is shorter than its stated size. A text may be a little shorter, by its byte order mark and
// by line ends that were made one character, and half as long if it was UTF-16.
func (c *harContent) isCut(e *lab.Exchange) bool {
	got, want := int64(len(e.Response.Body)), int64(c.Size)
	if c.coded {
		return false // mitmproxy, and Firefox of small bodies, state how many bytes there were before they were decoded
	}
	if isBase64(c.Encoding) || got == firefoxLimit || int64(utf8.RuneCount(e.Response.Body)) == firefoxLimit {
		return got < want
	}
	charset, _ := charsetOf(c.MIME)
	lines := int64(bytes.Count(e.Response.Body, []byte("\n")))
	asUTF16 := int64(0)
	for b := e.Response.Body; len(b) > 0; {
		r, n := utf8.DecodeRune(b)
		asUTF16, b = asUTF16+2*int64(utf16.RuneLen(r)), b[n:]
	}
	return got > 0 && got+lines+3 < want && !strings.HasPrefix(charset, "utf-16") && want != asUTF16 && want != asUTF16+2
}

// UnmarshalJSON implements json.Unmarshaler. The body alone may stand for the content. An error would end the reading of
// the fields behind it, too.
func (c *harContent) UnmarshalJSON(raw []byte) error {
	type plain harContent
	switch raw[0] {
	case '{':
		c.isOdd = json.Unmarshal(raw, (*plain)(c)) != nil
	case '"':
		c.Text = new(harString)
		return c.Text.UnmarshalJSON(raw)
	default:
		c.isOdd = string(raw) != "null"
	}
	return nil
}

// fill sets the body, and adapts the header to how HAR keeps the body.
func (c *harContent) fill(e *lab.Exchange) error {
	hasBody := e.Method != "HEAD" && e.Status >= 200 && e.Status != 204 && e.Status != 304
	var text wireText
	switch {
	case c.attached != nil:
		e.Response.Body = nonEmpty(c.attached)
	case c.Text == nil:
		if why, ok := strings.CutPrefix(c.Comment, harCut); ok && hasBody && slices.Contains(truncations, why) {
			e.Truncated = why
		} else if (c.Size > 0 || c.Size < 0 && e.Response.Get("Content-Length") != "0") && hasBody && e.Status/100 != 3 {
			e.Truncated = "unspecified" // of a negative size: the exporter could not get it (Playwright, of a broken connection)
		}
	case isBase64(c.Encoding):
		b, err := fromBase64(string(*c.Text))
		if err != nil {
			return fmt.Errorf("response body: %w", err)
		}
		e.Response.Body = nonEmpty(b)
	case !isText(c.Encoding):
		return fmt.Errorf("response body in the unknown encoding %q", c.Encoding)
	default:
		if e.Response.Body = c.unsaidBase64(); e.Response.Body == nil {
			text = c.Text.wire(int64(c.Size), int64(c.Size)+int64(c.Compression))
			e.Response.Body = text.bytes
		}
	}
	if !hasBody {
		e.Response.Body = nil
		return nil
	}
	if c.Text != nil && c.isCut(e) {
		e.Truncated = "length"
	}
	isCoded := isStillCoded(&e.Response)
	kept := e.Response.Header[:0]
	for _, f := range e.Response.Header {
		switch strings.ToLower(f.Name) {
		case "content-encoding":
			if !isCoded {
				continue
			}
		case "transfer-encoding":
			continue
		case "content-length":
			switch { // where the body is cut off, so that the device sees that
			case e.Truncated != "" && c.Size > 0:
				f.Value = strconv.Itoa(int(c.Size))
			case e.Truncated == "" || c.Size == 0:
				f.Value = strconv.Itoa(len(e.Response.Body))
			}
		case "content-type":
			switch _, at := charsetOf(f.Value); {
			case at >= 0 && text.recoded:
				f.Value = f.Value[:at] + "charset=utf-8"
			case text.recoded && !text.same && hasCharset(f.Value): // else the browser would use the charset of a <meta>
				f.Value += "; charset=utf-8"
			}
		}
		kept = append(kept, f)
	}
	e.Response.Header = kept
	return nil
}

// isSpoiled tells a body that is no text and was written as one: what stands in place of its bytes (U+FFFD) does not say
// which they were.
func (c *harContent) isSpoiled() bool {
	if c.attached != nil || c.Text == nil || !isText(c.Encoding) || !strings.ContainsRune(string(*c.Text), utf8.RuneError) ||
		!utf8.ValidString(string(*c.Text)) { // exporters in Python write the bytes themselves
		return false
	}
	media, _, _ := strings.Cut(strings.ToLower(c.MIME), ";")
	media = strings.TrimSpace(media)
	kind, _, _ := strings.Cut(media, "/")
	return slices.Contains([]string{"image", "audio", "video", "font"}, kind) && media != "image/svg+xml" ||
		slices.Contains([]string{"application/octet-stream", "application/wasm", "application/pdf", "application/zip"}, media)
}

// unsaidBase64 is the body of an exporter that writes Base64 and does not say so, or nil: it has the stated size, and
// the text has another.
func (c *harContent) unsaidBase64() []byte {
	text := string(*c.Text)
	if c.Size <= 0 || c.Encoding != "" || len(text) != base64.StdEncoding.EncodedLen(int(min(c.Size, firstLarge))) || hasCharset(c.MIME) {
		return nil
	}
	if b, err := base64.StdEncoding.DecodeString(text); err == nil && int64(len(b)) == int64(c.Size) {
		return b
	}
	return nil
}

// firstLarge is more than any body has.
const firstLarge = 1 << 40

// codingSeen is how much of a body is decoded to see whether it has its content coding.
const codingSeen = 64 << 10

// isStillCoded tells a body that has its content coding: proxies keep what was on the wire, where browsers decode. Of
// several codings the last one tells. br and deflate have no mark of their own: the beginning of the body is decoded.
func isStillCoded(m *lab.Message) bool {
	coding := codingOf(m)
	if coding == "" || utf8.Valid(m.Body) {
		return false
	}
	if i := strings.LastIndexByte(coding, ' '); i >= 0 {
		coding = coding[i+1:]
	}
	if isDecoded(coding, m.Body) {
		return false
	}
	r, err := inject.NewDecoder(coding, bytes.NewReader(m.Body))
	if err != nil {
		return false
	}
	defer r.Close()
	_, err = io.CopyN(io.Discard, r, codingSeen)
	return err == nil || err == io.EOF
}
