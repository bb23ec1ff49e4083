package archive

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"

	"github.com/klauspost/compress/zstd"
)

// damagedURLs are what a file asks for: the second of three is damaged.
var damagedURLs = [3]string{"http://d.test/1", "http://d.test/2", "http://d.test/3"} // constant

const damagedBody = "a body of the record"

func damagedRecords() (out [3]string) {
	for i, url := range damagedURLs {
		out[i] = oddRecord("response", url, oddResponse("", fmt.Sprint(strings.Repeat(damagedBody, 40), i)), 0)
	}
	return out
}

// flipped has other bytes in the middle.
func flipped(s string) string {
	b := []byte(s)
	for i := len(b) / 2; i < len(b)/2+8; i++ {
		b[i] ^= 0x55
	}
	return string(b)
}

// zstdText makes a frame, with a dictionary or without.
func zstdText(t testing.TB, text string, dictionary []byte) string {
	t.Helper()
	options := []zstd.EOption{zstd.WithEncoderCRC(true)}
	if dictionary != nil {
		options = append(options, zstd.WithEncoderDict(dictionary))
	}
	z, err := zstd.NewWriter(nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return string(z.EncodeAll([]byte(text), nil))
}

// dictionaryFrame is the frame at the front of a .warc.zst.
func dictionaryFrame(dictionary []byte) string {
	return zstdDictionary + string(binary.LittleEndian.AppendUint32(nil, uint32(len(dictionary)))) + string(dictionary)
}

func makeDictionary(t testing.TB) []byte {
	t.Helper()
	var samples [][]byte
	for i := range 50 {
		samples = append(samples, []byte(oddRecord("response", fmt.Sprint("http://d.test/", i), oddResponse("Server: x\r\n", damagedBody), 0)))
	}
	d, err := zstd.BuildDict(zstd.BuildDictOptions{ID: 7, Contents: samples, History: bytes.Join(samples, nil)[:4096], Offsets: [3]int{1, 4, 8}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDamagedRecordOfEachKind: one damaged record costs itself, is told, and all others are there.
func TestDamagedRecordOfEachKind(t *testing.T) {
	r, dictionary := damagedRecords(), makeDictionary(t)
	entry := func(i int) string { return fmt.Sprintf(oddEntry, fmt.Sprint(i), `{"size":1,"text":"x"}`) }
	wpr := func(i int) string {
		return fmt.Sprintf("%q:[", damagedURLs[i]) + wprText("GET / HTTP/1.1\nHost: d.test\n\n", "HTTP/1.1 200 OK\n\nx") + "]"
	}
	zip3 := func(middle string) string {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, file := range [][2]string{
			{namePackage, "{}"}, {dirData + "1.warc", r[0]}, {dirData + "2.warc.gz", middle}, {dirData + "3.warc", r[2]},
		} {
			w, err := z.Create(file[0])
			if err == nil {
				_, err = w.Write([]byte(file[1]))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	gz, zst := func(s string) string { return gzipText(t, s) }, func(s string) string { return zstdText(t, s, nil) }
	dict := func(s string) string { return zstdText(t, s, dictionary) }
	for name, text := range map[string]string{
		"a WARC's first line":           r[0] + strings.Replace(r[1], "WARC/1.0", "WANC?1.0", 1) + r[2],
		"a WARC's answer":               r[0] + strings.Replace(r[1], "HTTP/1.1 200", "XTTP/1.1 abc", 1) + r[2],
		"a WARC's digest":               r[0] + strings.Replace(r[1], "Content-L", "WARC-Payload-Digest: sha1:"+strings.Repeat("A", 32)+"\r\nContent-L", 1) + r[2],
		"a gzip member":                 gz(r[0]) + flipped(gz(r[1])) + gz(r[2]),
		"a gzip member's head":          gz(r[0]) + "xx" + gz(r[1])[2:] + gz(r[2]),
		"a gzip member that is cut off": gz(r[0]) + gz(r[1])[:40] + gz(r[2]),
		"the first gzip member":         flipped(gz(r[1])) + gz(r[0]) + gz(r[2]),
		"a zstd frame":                  zst(r[0]) + flipped(zst(r[1])) + zst(r[2]),
		"a zstd frame of a dictionary":  dictionaryFrame(dictionary) + dict(r[0]) + flipped(dict(r[1])) + dict(r[2]),
		"an entry of a HAR":             `{"log":{"entries":[` + entry(1) + `,` + strings.Replace(entry(2), `"method":"GET"`, `"method":""`, 1) + `,` + entry(3) + `]}}`,
		"a .wprgo's entry": `{"Requests":{"d.test":{` + wpr(0) + `,` + strings.Replace(wpr(1), `"SerializedRequest":"`, `"SerializedRequest":"*`, 1) +
			`,` + wpr(2) + `}}}`,
		"a WARC of a WACZ": zip3(flipped(gz(r[1]))),
	} {
		a, err := OpenReader(strings.NewReader(text), int64(len(text)), Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, e := range a.Exchanges() {
			if e.Status == 200 { // not an icon
				got = append(got, e.URL[len(e.URL)-1:])
			}
		}
		if fmt.Sprint(got) != "[1 3]" || a.Lost() != 1 || len(a.Warnings()) == 0 {
			t.Errorf("%s: read %v, lost %d, told %q; want the others, and one lost", name, got, a.Lost(), a.Warnings())
		}
	}
}

// TestDamagedMemberOfOurs: of a recording whose index leads several goroutines, a damaged member costs its record.
func TestDamagedMemberOfOurs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wacz")
	var exchanges []*lab.Exchange
	for i := range 20 {
		exchanges = append(exchanges, &lab.Exchange{Order: i, Wall: wall, Method: "GET", URL: fmt.Sprint("http://d.test/", i), Protocol: "http/1.1", Status: 200,
			Response: lab.Message{Body: []byte(strings.Repeat(damagedBody, 50+i))}, Chunks: []lab.Chunk{{Bytes: len(damagedBody) * (50 + i)}}})
	}
	if err := Save(path, New(exchanges, nil, nil, CreateOptions{Wall: wall})); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := len(data) / 3
	copy(data[at:], "\x00\x01\x02\x03\x04\x05\x06\x07")
	a, err := bothWays(t, data, Limits{})
	if err != nil || len(a.Exchanges()) < 18 || len(a.Exchanges()) == 20 && a.Lost() == 0 {
		t.Fatalf("read %d of 20 exchanges, %v; want all but what is damaged", len(a.Exchanges()), err)
	}
}

// TestZstdDictionary: the dictionary at the front of a .warc.zst is used, also a compressed one; without it nothing is
// read.
func TestZstdDictionary(t *testing.T) {
	r, dictionary := damagedRecords(), makeDictionary(t)
	body := zstdText(t, r[0], dictionary) + zstdText(t, r[1], dictionary)
	for name, c := range map[string]struct {
		text, says string
	}{
		"plain":            {dictionaryFrame(dictionary) + body, ""},
		"compressed":       {dictionaryFrame([]byte(zstdText(t, string(dictionary), nil))) + body, ""},
		"missing":          {body, "not a WACZ, WARC, HAR or Web Page Replay file"},
		"of another":       {dictionaryFrame([]byte("some text")) + body, "not a WACZ, WARC, HAR or Web Page Replay file"},
		"damaged":          {dictionaryFrame([]byte(dictionaryHead+"nonsense")) + body, "zstd header"},
		"cut off":          {dictionaryFrame(dictionary)[:50], "the dictionary at the front"},
		"larger than real": {zstdDictionary + "\xff\xff\xff\x7f" + body, "the dictionary at the front"},
	} {
		a, err := openText(t, c.text)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want %q", name, err, c.says)
			}
			continue
		}
		if err != nil || byURL(a)[damagedURLs[1]] == nil {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
}

// TestOtherStreams: what is compressed and no recording is named as it is without compression, and a skippable frame in
// front of records is none of them.
func TestOtherStreams(t *testing.T) {
	const tar = "crawl/a.warc.gz"
	for text, want := range map[string]string{
		tar + strings.Repeat("\x00", 257-len(tar)) + "ustar\x0000" + strings.Repeat("\x00", 1<<20): "a tar file",
		"<!doctype html><title>Sign in</title>":                                                    "a page in HTML",
		"From: <Saved by Blink>\r\n":                                                               "MHTML",
		"6039:9:websocket;0:~":                                                                     "decompress them (gunzip)",
		strings.Repeat("text", 1000):                                                               "starts with",
		"some text\n":                                                                              "starts with",
		"\r\n\r\n":                                                                                 "empty",
	} {
		for _, packed := range []string{gzipText(t, text), zstdText(t, text, nil)} {
			if _, err := openText(t, packed); err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, errLimit) {
				t.Errorf("%.20q, packed: %v; want an error with %q", text, err, want)
			}
		}
	}
	const ofPzstd = "\x50\x2a\x4d\x18\x04\x00\x00\x00\x10\x00\x00\x00"
	if a, err := openText(t, ofPzstd+zstdText(t, damagedRecords()[0], nil)); err != nil || byURL(a)[damagedURLs[0]] == nil {
		t.Errorf("a skippable frame first: %v, %v; want the record behind it", a, err)
	}
}

// FuzzDictionary: whatever is in front of records is no harm.
func FuzzDictionary(f *testing.F) {
	f.Add([]byte(dictionaryHead + "x"))
	f.Add([]byte(zstdMagic + "x"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, dictionary []byte) {
		text := dictionaryFrame(dictionary) + zstdText(t, "WARC/1.0\r\nContent-Length: 0\r\n\r\n\r\n\r\n", nil)
		testlab.Bounded(t, 512<<20, func() { _, _ = openText(t, text) })
	})
}
