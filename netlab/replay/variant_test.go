package replay

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"

	"eidetic/internal/lab"
	"eidetic/netlab/inject"
)

const (
	asDocument = "Sec-Fetch-Dest: document\nAccept: text/html"
	asWorker   = "Sec-Fetch-Dest: worker"
	asFetch    = "Sec-Fetch-Dest: empty"
	asGuess    = "Accept: */*" // a client that does not say what it will do with it
)

// TestVariantsDependOnTheRequestAlone: whoever asks first, each kind of request gets its own form
// of a body, and the same as in any other order.
func TestVariantsDependOnTheRequestAlone(t *testing.T) {
	const html, script = "<!doctype html><title>t</title><p>x", "self.x = 1"
	for name, c := range map[string]exchange{
		"a document":                {header: "Content-Type: text/html; charset=utf-8", answer: html},
		"no type":                   {answer: script},
		"a document without a type": {answer: html},
		"a script":                  {header: "Content-Type: text/javascript", answer: script},
	} {
		t.Run(name, func(t *testing.T) {
			kinds := []string{asDocument, asWorker, asFetch, asGuess}
			got := map[string]map[string]bool{}
			for _, recordedAs := range kinds {
				for first := range kinds {
					c.ask, c.with = "GET https://a.test/x", recordedAs
					k := newAsker(t, build(c), Options{Seed: 5, Timing: Timing{Mode: TimingNone}})
					for i := range kinds {
						kind := kinds[(first+i)%len(kinds)]
						if got[kind] == nil {
							got[kind] = map[string]bool{}
						}
						_, text, _ := k.ask("192.0.2.1", c.ask, kind, "")
						got[kind][text] = true
					}
				}
			}
			for kind, texts := range got {
				if len(texts) != 1 {
					t.Errorf("%q gets %d different bodies, by who asked first; want one", kind, len(texts))
				}
			}
			if !got[asFetch][c.answer] {
				t.Errorf("a fetch gets %v; want what was recorded", got[asFetch])
			}
		})
	}
}

// TestRangesOfAnInjectedDocument: a browser that goes on with a document that it has half of gets
// the rest of what it got.
func TestRangesOfAnInjectedDocument(t *testing.T) {
	html := "<!doctype html><html><head><title>t</title>" + strings.Repeat("text ", 1000)
	k := newAsker(t, build(exchange{
		ask: "GET https://a.test/", with: asDocument, answer: html, chunks: []lab.Chunk{{Bytes: 3000}, {At: 1, Bytes: len(html) - 3000}},
		header: "Content-Type: text/html; charset=utf-8\nETag: \"x\"\nContent-Length: " + fmt.Sprint(len(html)),
	}), Options{Seed: 5})
	_, whole, _ := k.ask("192.0.2.1", "GET https://a.test/", asDocument, "")
	if script := inject.NewScript(inject.Options{Seed: 5, Date: recordedAt}).Text(); !strings.Contains(whole, script) {
		t.Fatalf("the document has no script: %.200q", whole)
	}
	for _, c := range []struct {
		with       string
		status     int
		from, upto int // of whole
	}{
		{"Range: bytes=100-", 206, 100, len(whole)},
		{"Range: bytes=100-199\nIf-Range: \"x\"", 206, 100, 200},
		{"Range: bytes=100-199\nIf-Range: \"y\"", 200, 0, len(whole)},
		{"Range: bytes=-50", 206, len(whole) - 50, len(whole)},
		{fmt.Sprintf("Range: bytes=%d-", len(html)+10), 206, len(html) + 10, len(whole)}, // outside of what was recorded
		{fmt.Sprintf("Range: bytes=%d-", len(whole)), 416, 0, 0},
	} {
		resp, text, _ := k.ask("192.0.2.1", "GET https://a.test/", asDocument+"\n"+c.with, "")
		if resp.StatusCode != c.status || text != whole[c.from:c.upto] {
			t.Errorf("%q: %d with %d bytes; want %d with %d bytes of the document with the script", c.with, resp.StatusCode, len(text), c.status, c.upto-c.from)
		}
		want := ""
		switch c.status {
		case 206:
			want = fmt.Sprintf("bytes %d-%d/%d", c.from, c.upto-1, len(whole))
		case 416:
			want = fmt.Sprintf("bytes */%d", len(whole))
		}
		if got := resp.Header.Get("Content-Range"); got != want {
			t.Errorf("%q: Content-Range %q; want %q", c.with, got, want)
		}
	}
	resp, text, _ := k.ask("192.0.2.1", "GET https://a.test/", asFetch+"\nRange: bytes=100-199", "")
	if resp.StatusCode != 206 || text != html[100:200] || resp.Header.Get("Content-Range") != fmt.Sprintf("bytes 100-199/%d", len(html)) {
		t.Errorf("a fetch of a range gets %d %q %v; want the recorded bytes", resp.StatusCode, text, resp.Header)
	}
	if resp, _, _ := k.ask("192.0.2.1", "HEAD https://a.test/", asDocument+"\nRange: bytes=0-9", ""); resp.StatusCode != 200 {
		t.Errorf("HEAD with a Range is %d; want 200, since ranges are of GET alone", resp.StatusCode)
	}
}

// TestStackedCodings: a document that was given two codings gets its script, and keeps both; a
// device that lacks one of them gets another.
func TestStackedCodings(t *testing.T) {
	html := "<!doctype html><html><head><title>t</title><p>" + strings.Repeat("text ", 500)
	for name, header := range map[string]string{
		"one field":  "Content-Encoding: gzip, br",
		"two fields": "Content-Encoding: gzip\nContent-Encoding: BR",
	} {
		t.Run(name, func(t *testing.T) {
			packed := coded(t, "", "gzip, br", html)
			k := newAsker(t, build(exchange{
				ask: "GET https://a.test/", with: asDocument + "\nAccept-Encoding: gzip, br", answer: packed,
				header: "Content-Type: text/html; charset=utf-8\n" + header,
			}), Options{Seed: 5, Timing: Timing{Mode: TimingNone}})
			script := inject.NewScript(inject.Options{Seed: 5, Date: recordedAt}).Text()
			for accept, want := range map[string]string{"gzip, br": "gzip, br", "gzip": "gzip", "": ""} {
				resp, text, _ := k.ask("192.0.2.1", "GET https://a.test/", asDocument+"\nAccept-Encoding: "+accept, "")
				got := inject.ContentCoding(fieldsOf(resp.Header, 1))
				if got != want {
					t.Errorf("Accept-Encoding %q gets the coding %q; want %q", accept, got, want)
				}
				if plain := coded(t, got, "", text); strings.Count(plain, script) != 1 || len(plain) != len(html)+len("<script></script>")+len(script) {
					t.Errorf("Accept-Encoding %q: %d bytes with %d scripts; want the document with one", accept, len(plain), strings.Count(plain, script))
				}
			}
			if _, text, _ := k.ask("192.0.2.1", "GET https://a.test/", asFetch+"\nAccept-Encoding: gzip, br", ""); text != packed {
				t.Error("a fetch does not get the recorded bytes")
			}
		})
	}
}

// coded undoes the codings of a text and applies others, by the codecs that the injection uses.
func coded(t *testing.T, from, to, text string) string {
	t.Helper()
	r, err := inject.NewDecoder(from, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if to == "" {
		return string(plain)
	}
	var out bytes.Buffer
	for i, coding := range strings.Split(to, ", ") {
		if i > 0 {
			plain = bytes.Clone(out.Bytes())
			out.Reset()
		}
		w := codecs()[coding](&out)
		if _, err := w.Write(plain); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// codecs are compressors of other packages than those that are tested.
func codecs() map[string]func(io.Writer) io.WriteCloser {
	return map[string]func(io.Writer) io.WriteCloser{
		"gzip": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"br":   func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	}
}
