package replay

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestDevicesWithoutTheDictionary: an answer that was recorded as its difference from another one is given so to a
// device that has the other, and whole to any other device.
func TestDevicesWithoutTheDictionary(t *testing.T) {
	const first, second = "function one(){return 'all of the first version'}", "function one(){return 'all of the second version'}"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(first))
	_ = z.Close()
	sum := sha256.Sum256([]byte(first))
	w, err := zstd.NewWriter(nil, zstd.WithEncoderDictRaw(0, []byte(first)))
	if err != nil {
		t.Fatal(err)
	}
	difference := dczHead + string(sum[:]) + string(w.EncodeAll([]byte(second), nil))
	lost := dczHead + strings.Repeat("?", sha256.Size) + difference[len(dczHead)+len(sum):]
	tag := ":" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	has := "Accept-Encoding: gzip, br, zstd, dcb, dcz\nAvailable-Dictionary: " + tag
	const header = "Content-Type: text/javascript\nContent-Encoding: dcz\nETag: \"2\"\nVary: Accept-Encoding, Available-Dictionary"
	k := newAsker(t, build(
		exchange{ask: "GET https://a.test/1.js", answer: packed.String(),
			header: "Content-Type: text/javascript\nContent-Encoding: gzip\nUse-As-Dictionary: match=\"/*.js\""},
		exchange{ask: "GET https://a.test/2.js", with: has, answer: difference, header: header},
		exchange{ask: "GET https://a.test/3.js", with: has, answer: lost, header: header},
	), Options{Timing: Timing{Mode: TimingNone}})
	for _, c := range []struct{ path, with, want, coding string }{
		{"2.js", has, difference, "dcz"},
		{"2.js", "Accept-Encoding: gzip, br, zstd", second, ""},
		{"2.js", "Accept-Encoding: gzip, br, zstd, dcb, dcz", second, ""},
		{"2.js", "Accept-Encoding: gzip, dcz\nAvailable-Dictionary: :AAAA:", second, ""},
		{"2.js", "", second, ""},
		{"3.js", "", lost, "dcz"}, // nothing better is known
	} {
		for range 2 { // made, and then kept
			resp, got, _ := k.ask("192.0.2.1", "GET https://a.test/"+c.path, c.with, "")
			if got != c.want || resp.Header.Get("Content-Encoding") != c.coding {
				t.Errorf("%s with %q: %q in %q, want %q in %q", c.path, c.with, got, resp.Header.Get("Content-Encoding"), c.want, c.coding)
			}
			if tag := resp.Header.Get("ETag"); (tag == `W/"2"`) != (c.coding == "") {
				t.Errorf("%s with %q has the ETag %s, want a weak one if the coding is another", c.path, c.with, tag)
			}
		}
	}
}
