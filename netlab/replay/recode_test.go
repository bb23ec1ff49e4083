package replay

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
)

func TestAccepts(t *testing.T) {
	for field, want := range map[string]bool{
		"": false, "br": true, "gzip, br": true, "gzip;q=1, BR;q=0.1": true, "br;q=0": false, "*": true, "*, br;q=0": false, "gzip": false, "identity": false,
	} {
		if got := accepts(field, "br"); got != want {
			t.Errorf("accepts(%q, br) = %v, want %v", field, got, want)
		}
	}
}

// A device without brotli gets gzip or plain text, with headers to match.
func TestRecodedForDevicesThatLackACoding(t *testing.T) {
	const text = "all that was said, all that was said"
	var packed bytes.Buffer
	w := brotli.NewWriter(&packed)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	k := newAsker(t, build(exchange{
		ask: "GET https://a.test/x.css", with: "accept-encoding: gzip, br", answer: packed.String(),
		header: "Content-Type: text/css\nContent-Encoding: br\nETag: \"1\"\nVary: Accept-Encoding\nRepr-Digest: sha-256=:x:\nContent-Digest: sha-256=:x:",
	}), Options{Timing: Timing{Mode: TimingNone}})
	for accept, want := range map[string]string{"gzip, br": "br", "gzip": "gzip", "": "", "br;q=0, *;q=0": ""} {
		for range 2 { // made, and then kept
			r, body, _ := k.ask("192.0.2.1", "GET https://a.test/x.css", "Accept-Encoding: "+accept, "")
			if got := r.Header.Get("Content-Encoding"); got != want {
				t.Errorf("Accept-Encoding %q gets the coding %q, want %q", accept, got, want)
			}
			var reader io.Reader = strings.NewReader(body)
			switch want {
			case "br":
				reader = brotli.NewReader(reader)
			case "gzip":
				z, err := gzip.NewReader(reader)
				if err != nil {
					t.Fatal(err)
				}
				reader = z
			}
			if got, err := io.ReadAll(reader); err != nil || string(got) != text {
				t.Errorf("Accept-Encoding %q: the body decodes to %q, %v; want %q", accept, got, err, text)
			}
			for _, name := range []string{"Content-Digest", "Repr-Digest"} { // of the bytes that were recorded
				if digest := r.Header.Get(name); (digest != "") != (want == "br") {
					t.Errorf("Accept-Encoding %q gets the %s %q; want one only with the coding br", accept, name, digest)
				}
			}
			if tag := r.Header.Get("ETag"); (want == "br") != (tag == `"1"`) {
				t.Errorf("Accept-Encoding %q gets the ETag %s; want %q with the coding br alone", accept, tag, `"1"`)
			}
		}
	}
}
