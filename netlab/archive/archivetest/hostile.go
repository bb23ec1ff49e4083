// Package archivetest makes archives that attack their reader, for the tests of whatever opens a
// recording: files of at most a megabyte, each of which decodes, parses or unpacks to gigabytes if
// nothing counts.
package archivetest

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/adler32"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Hostile is one file of the set.
type Hostile struct {
	Name string // with the ending of its format
	Make func() []byte
}

// MaxBytes is the most that a file of the set has.
const MaxBytes = 1_000_000

// Set lists all attacks.
func Set() []Hostile {
	var all []Hostile
	for _, list := range [][]Hostile{warcs(), sidecars(), zips(), hars(), bodies(), documents(), containers(), messages()} {
		all = append(all, list...)
	}
	return all
}

// must is for writers into memory, which do not fail.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("archivetest: %v", err))
	}
}

// bomb is n bytes that repeat unit, as gzip members of about 8 MB, which a reader joins.
func bomb(unit string, n int) []byte {
	each := max(8<<20/len(unit), 1)
	member := gzipped([]byte(strings.Repeat(unit, each)))
	return bytes.Repeat(member, max(n/(each*len(unit)), 1))
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	must(err)
	_, err = z.Write(b)
	must(err)
	must(z.Close())
	return out.Bytes()
}

// bombSize is what bomb returns n bytes of.
func bombSize(unit string, n int) int {
	each := max(8<<20/len(unit), 1)
	return max(n/(each*len(unit)), 1) * each * len(unit)
}

// head is the beginning of a WARC record.
func head(kind, id, url string, size int, more ...string) string {
	text := "WARC/1.1\r\nWARC-Type: " + kind + "\r\nWARC-Record-ID: <urn:x:" + id + ">\r\nWARC-Target-URI: " + url +
		"\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
	for _, line := range more {
		text += line + "\r\n"
	}
	return text + fmt.Sprintf("Content-Length: %d\r\n\r\n", size)
}

// record is a whole record.
func record(kind, id, block string, more ...string) string {
	return head(kind, id, "http://a.test/"+id, len(block), more...) + block + "\r\n\r\n"
}

const (
	okHead = "HTTP/1.1 200 OK\r\n\r\n"
	end    = "\r\n\r\n"
)

// filled is a record whose block begins with text and goes on with n bytes of unit, all in gzip.
func filled(kind, url, begin, unit, tail string, n int, more ...string) []byte {
	size := len(begin) + bombSize(unit, n) + len(tail)
	out := gzipped([]byte(head(kind, "1", url, size, more...) + begin))
	return append(append(out, bomb(unit, n)...), gzipped([]byte(tail+end))...)
}

// number stands for the number of a record, which has as many digits.
const number = "@@@@@@@"

// many is n records of which each has its own number in place of each number.
func many(n int, pattern string) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	for i := range n {
		_, err := io.WriteString(z, strings.ReplaceAll(pattern, number, fmt.Sprintf("%07d", i)))
		must(err)
		if i%1000 == 0 && out.Len() > MaxBytes-60_000 {
			break
		}
	}
	must(z.Close())
	return out.Bytes()
}

func warcs() []Hostile {
	lines := okHead[:len(okHead)-2] + strings.Repeat("a:\r\n", 250_000) + "\r\n"
	const page = "http://a.test/"
	return []Hostile{
		{"body.warc.gz", func() []byte { return filled("response", page, okHead, "\x00", "", 950_000_000) }},
		{"body-lie.warc.gz", func() []byte { return gzipped([]byte(head("response", "1", page, 1<<30) + okHead)) }},
		{"many-lies.warc.gz", func() []byte {
			return many(1, strings.Repeat(record("response", number, okHead), 3)+head("response", "x", page, 1<<30))
		}},
		{"tiny-records.warc.gz", func() []byte { return many(3_000_000, record("response", number, okHead)) }},
		{"same-records.warc.gz", func() []byte {
			return bomb("WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.test/\r\nContent-Length: 19\r\n\r\n"+okHead+end, 250_000_000)
		}},
		{"tiny-requests.warc.gz", func() []byte {
			return many(3_000_000, record("request", number, "GET / HTTP/1.1\r\n\r\n", "WARC-Concurrent-To: <urn:x:"+number+">"))
		}},
		{"loose-requests.warc.gz", func() []byte { return many(3_000_000, record("request", "1"+number, "GET / HTTP/1.1\r\n\r\n")) }},
		{"revisits.warc.gz", func() []byte {
			return many(3_000_000, record("revisit", number, okHead, "WARC-Payload-Digest: sha1:"+number, "WARC-Refers-To: <urn:x:"+number+">"))
		}},
		{"header-lines.warc.gz", func() []byte { return many(60, record("response", number, lines)) }},
		{"request-lines.warc.gz", func() []byte {
			return many(60, record("response", number, okHead)+
				record("request", number+"r", "GET / HTTP/1.1\r\n"+lines[17:], "WARC-Concurrent-To: <urn:x:"+number+">"))
		}},
		{"record-lines.warc.gz", func() []byte {
			return many(60, "WARC/1.1\r\n"+strings.Repeat("a:\r\n", 250_000)+"Content-Length: 0\r\n\r\n\r\n\r\n")
		}},
		{"folded-lines.warc.gz", func() []byte {
			return many(8, record("response", number, "HTTP/1.1 200 OK\r\na: b\r\n"+strings.Repeat(" c\r\n", 250_000)+"\r\n"))
		}},
		{"folded-record.warc.gz", func() []byte {
			return many(8, "WARC/1.1\r\na: b\r\n"+strings.Repeat(" c\r\n", 250_000)+"Content-Length: 0\r\n\r\n\r\n\r\n")
		}},
		{"info-lines.warc.gz", func() []byte { return filled("warcinfo", "", "", "\n", "", 900_000_000) }},
		{"imported.warc.gz", func() []byte {
			return filled("warcinfo", "", "", "eidetic-imported: "+strings.Repeat("x", 8<<20)+"\n", "", 900_000_000)
		}},
		{"rules.warc.gz", func() []byte { return filled("warcinfo", "", "eidetic-rules: [{}", ",{}", "]\n", 900_000_000) }},
		{"dns-text.warc.gz", func() []byte { return filled("response", "dns:a.test", "2026\n", "x\n", "", 900_000_000) }},
		{"chunked.warc.gz", func() []byte {
			return filled("response", page, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "8000\r\n"+strings.Repeat("\x00", 0x8000)+"\r\n",
				"0\r\n\r\n", 800_000_000)
		}},
		{"padded.warc.gz", func() []byte { // by nearly a gigabyte of zeros
			one, two := gzipped([]byte(record("response", "1", okHead))), gzipped([]byte(record("response", "2", okHead)))
			return slices.Concat(one, bomb("\x00", 950_000_000), two)
		}},
		{"window.warc.zst", window},
		{"body.warc.zst", func() []byte { return zstdRecord(1_000_000_000) }},
	}
}

// window is a zstd frame that asks for a window of 128 MiB, again and again.
func window() []byte {
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithWindowSize(128<<20), zstd.WithSingleSegment(false))
	must(err)
	for i := range 40 {
		z.Reset(&out)
		_, err := io.WriteString(z, record("response", fmt.Sprint(i), okHead+strings.Repeat("x", 1000)))
		must(err)
		must(z.Flush())
		must(z.Close())
	}
	return out.Bytes()
}

// zstdRecord is a response with n bytes: blocks of 128 KiB that repeat one byte, four bytes each.
func zstdRecord(n int) []byte {
	const most = 128 << 10
	n = n / most * most
	begin := head("response", "1", "http://a.test/", n+len(okHead)) + okHead
	out := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58} // no checksum, no size, a window of 2 MiB
	block := func(kind, size, last int) {
		v := uint32(last | kind<<1 | size<<3)
		out = append(out, byte(v), byte(v>>8), byte(v>>16))
	}
	block(0, len(begin), 0)
	out = append(out, begin...)
	for range n / most {
		block(1, most, 0)
		out = append(out, 'x')
	}
	block(0, len(end), 1)
	return append(out, end...)
}

// sidecars are attacks in the JSON of metadata records.
func sidecars() []Hostile {
	const page = "http://a.test/"
	const huge, small = 400_000_000, 30_000_000 // beyond any limit of bytes, and within all of them
	response := gzipped([]byte(record("response", "1", okHead)))
	list := func(field, element string, n int) func() []byte {
		return func() []byte {
			meta := filled("metadata", page, `{"v":1,"wall":"2026-01-01T00:00:00Z","`+field+`":[`+element, ","+element, "]}", n,
				"WARC-Concurrent-To: <urn:x:1>", "Content-Type: application/vnd.eidetic.exchange+json")
			return append(bytes.Clone(response), meta...)
		}
	}
	return []Hostile{
		{"chunks.warc.gz", list("chunks", "[]", huge)}, {"small-chunks.warc.gz", list("chunks", "[]", small)},
		{"sockets.warc.gz", list("socket", "{}", huge)}, {"small-sockets.warc.gz", list("socket", "{}", small)},
		{"interims.warc.gz", list("interim", "{}", huge)}, {"small-interims.warc.gz", list("interim", "{}", small)},
		{"trailers.warc.gz", list("response_trailer", "{}", huge)}, {"small-trailers.warc.gz", list("response_trailer", "{}", small)},
		{"nested.warc.gz", list("x", "[[[[[[[[[[[[]]]]]]]]]]]]", huge)}, {"small-nested.warc.gz", list("x", "[[[[[[[[[[[[]]]]]]]]]]]]", small)},
		{"dns-records.warc.gz", func() []byte {
			return append(gzipped([]byte(head("response", "1", "dns:a.test", 5)+"2026\n"+end)),
				filled("metadata", "dns:a.test", `{"name":"a.test","records":[""`, `,""`, "]}", 600_000_000,
					"WARC-Concurrent-To: <urn:x:1>", "Content-Type: application/vnd.eidetic.dns+json")...)
		}},
		{"page-metadata.warc.gz", func() []byte {
			return many(3_000_000, record("metadata", number, `{"url":"http://a.test/`+number+`"}`, "Content-Type: application/vnd.eidetic.page+json"))
		}},
	}
}

// member is one file of a zip.
type member struct {
	name   string
	method uint16
	data   []byte // as stored, so that the caller can compress it in pieces
	plain  uint64
	sum    uint32
}

func stored(name string, b []byte) member {
	return member{name, zip.Store, b, uint64(len(b)), crc32.ChecksumIEEE(b)}
}

// deflated is a file of n bytes of unit between begin and tail.
func deflated(name, begin, unit, tail string, n int) member {
	sum := crc32.NewIEEE()
	data, size := deflate(begin, unit, tail, n, sum)
	return member{name, zip.Deflate, data, uint64(size), sum.Sum32()}
}

// deflate compresses begin, about n bytes of unit, and tail (RFC 1951). One block is compressed and
// then repeated: it refers to nothing before it.
func deflate(begin, unit, tail string, n int, sum hash.Hash) (out []byte, size int) {
	pack := func(text string, close bool) []byte {
		var b bytes.Buffer
		z, err := flate.NewWriter(&b, flate.BestCompression)
		must(err)
		_, err = io.WriteString(z, text)
		must(err)
		must(z.Flush())
		if close {
			must(z.Close())
		}
		return b.Bytes()
	}
	block := strings.Repeat(unit, max(4<<20/len(unit), 1))
	packed := pack(block, false)
	out = pack(begin, false)
	size = len(begin)
	_, _ = io.WriteString(sum, begin)
	for size < n {
		out, size = append(out, packed...), size+len(block)
		_, _ = io.WriteString(sum, block)
	}
	_, _ = io.WriteString(sum, tail)
	return append(out, pack(tail, true)...), size + len(tail)
}

func zipped(members ...member) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, m := range members {
		w, err := z.CreateRaw(&zip.FileHeader{
			Name: m.name, Method: m.method, CRC32: m.sum, CompressedSize64: uint64(len(m.data)), UncompressedSize64: m.plain,
		})
		must(err)
		_, err = w.Write(m.data)
		must(err)
	}
	must(z.Close())
	return out.Bytes()
}

func zips() []Hostile {
	pack := stored("datapackage.json", []byte(`{"profile":"data-package","resources":[]}`))
	data := stored("archive/data.warc.gz", gzipped([]byte(record("response", "1", okHead+"body"))))
	return []Hostile{
		{"gzip-in-deflate.wacz", func() []byte {
			inner := filled("response", "http://a.test/", okHead, "\x00", "", 2_000_000_000)
			return zipped(pack, deflated("archive/data.warc.gz", "", string(inner), "", 1))
		}},
		{"package.wacz", func() []byte {
			return zipped(deflated("datapackage.json", `{"resources":[{}`, ",{}", "]}", 60_000_000), data)
		}},
		{"pages.wacz", func() []byte {
			return zipped(pack, data, deflated("pages/pages.jsonl", "", `{"url":"a","ts":"2026-01-01T00:00:00Z"}`+"\n", "", 60_000_000))
		}},
		{"index.wacz", func() []byte {
			return zipped(pack, data, deflated("indexes/index.cdxj", "", `a 1 {"offset":9,"filename":"data.warc.gz"}`+"\n", "", 60_000_000))
		}},
		{"digest.wacz", func() []byte {
			return zipped(pack, data, deflated("datapackage-digest.json", `{"x":[0`, ",0", "]}", 60_000_000))
		}},
		{"directory.wacz", func() []byte {
			list := []member{pack, data}
			for i := range 9_000 {
				list = append(list, stored(fmt.Sprintf("%08x", i), nil))
			}
			return zipped(list...)
		}},
		{"overlapping.wacz", func() []byte { return overlapping(zipped(pack), 9_000) }},
	}
}

// overlapping adds to a zip n files that all have the same data.
func overlapping(z []byte, n int) []byte {
	data := filled("response", "http://a.test/", okHead, "\x00", "", 64<<20)
	at := bytes.LastIndex(z, []byte("PK\x05\x06"))
	begin := binary.LittleEndian.Uint32(z[at+16:])
	directory := bytes.Clone(z[begin:at])
	out := bytes.Clone(z[:begin])
	local := uint32(len(out))
	field := func(b []byte, values ...any) []byte {
		for _, v := range values {
			var err error
			b, err = binary.Append(b, binary.LittleEndian, v)
			must(err)
		}
		return b
	}
	sum, size := crc32.ChecksumIEEE(data), uint32(len(data))
	out = field(out, []byte("PK\x03\x04"), uint16(20), uint16(0), uint16(0), uint32(0), sum, size, size, uint16(1), uint16(0), []byte("x"))
	out = append(out, data...)
	begin = uint32(len(out))
	for i := range n {
		name := fmt.Sprintf("archive/%04x.warc.gz", i)
		directory = field(directory, []byte("PK\x01\x02"), uint16(20), uint16(20), uint16(0), uint16(0), uint32(0), sum, size, size,
			uint16(len(name)), uint16(0), uint16(0), uint16(0), uint16(0), uint32(0), local, []byte(name))
	}
	out = append(out, directory...)
	return field(out, []byte("PK\x05\x06"), uint32(0), uint16(n+1), uint16(n+1), uint32(len(directory)), begin, uint16(0))
}

func hars() []Hostile {
	var all []Hostile
	for _, c := range []struct{ name, begin, unit, tail string }{
		{"entries", `{"log":{"entries":[{}`, ",{}", "]}}"},
		{"exchanges", `{"log":{"entries":[{}`, `,{"request":{"method":"G","url":"http://a"},"response":{"status":200}}`, "]}}"},
		{"headers", `{"log":{"entries":[{"request":{"method":"GET","url":"http://a","headers":[{}`, `,{"name":"a"}`, `]},"response":{"status":200}}]}}`},
		{"empty-headers", `{"log":{"entries":[{"request":{"method":"GET","url":"http://a","headers":[{}`, `,{}`, `]},"response":{"status":200}}]}}`},
		{"cookies", `{"log":{"entries":[{"request":{"method":"GET","url":"http://a"},"response":{"status":200,"cookies":[{}`, `,{}`, `]}}]}}`},
		{"lines", `{"log":{"entries":[{"request":{"method":"GET","url":"http://a","headers":[{"name":"a","value":"`, `\n`, `"}]},"response":{"status":200}}]}}`},
		{"set-cookie", `{"log":{"entries":[{"request":{"method":"GET","url":"http://a"},"response":{"status":200,"cookies":[{},{}],"headers":[{"name":"Set-Cookie","value":"`, `, `, `"}]}}]}}`},
		{"messages", `{"log":{"entries":[{"request":{"method":"GET","url":"ws://a"},"response":{"status":101},"_webSocketMessages":[{"type":"send"}`, `,{"type":"send"}`, `]}]}}`},
		{"events", `{"log":{"entries":[{"request":{"method":"GET","url":"http://a"},"response":{"status":200,"headers":[{"name":"Content-Type","value":"text/event-stream"}]},"_eventSourceMessages":[{}`, `,{}`, `]}]}}`},
		{"lines-of-events", `{"log":{"entries":[{"request":{"method":"GET","url":"http://a"},"response":{"status":200,"headers":[{"name":"Content-Type","value":"text/event-stream"}]},"_eventSourceMessages":[{"data":"`, `\n`, `"}]}]}}`},
		{"own-chunks", `{"log":{"entries":[{"request":{"method":"GET","url":"http://a"},"response":{"status":200},"_eidetic":{"v":1,"chunks":[[]`, `,[]`, `]}}]}}`},
		{"own-dns", `{"log":{"_eidetic":{"v":1,"seed":"1","dns":[{}`, `,{}`, `]},"entries":[]}}`},
		{"pages", `{"log":{"entries":[],"pages":[{}`, `,{}`, `]}}`},
		{"unknown", `{"log":{"x":[{}`, `,{}`, `],"entries":[]}}`},
		{"nested", `{"log":{"x":[[]`, `,[[[[[[[]]]]]]]`, `],"entries":[]}}`},
		{"surrogates", `{"log":{"entries":[{"request":{"method":"GET","url":"http://a"},"response":{"status":200,"content":{"text":"`, `\udc80`, `"}}}]}}`},
		{"text", `{"log":{"entries":[{"request":{"method":"GET","url":"http://a"},"response":{"status":200,"content":{"text":"`, `x`, `"}}}]}}`},
		{"list", `[{}`, `,{"request":{"method":"G","url":"http://a"},"response":{"status":200}}`, `]`},
		{"lines-of-entries", `{}`, "\n" + `{"request":{"method":"G","url":"http://a"},"response":{"status":200}}`, ""},
		{"fields", `{"request":{"url":"http://a"},"response":{}`, `,"request":{}`, `}`},
		{"others", `{"a":0`, `,"b":[[{"c":[0]}]]`, `}`},
		{"comments", `{"log":{"entries":[{}`, `/**/,`, `]}}`},
		{"quoted", `"{\"log\":{\"entries\":[{}`, `,{\"request\":{\"method\":\"G\",\"url\":\"http://a\"},\"response\":{\"status\":200}}`, `]}}"`},
		{"web-page-replay", `{"Requests":{"a":{"http://a":[{}`, `,{"SerializedRequest":"R0VUIC8=","SerializedResponse":"SFRUUC8xLjEgMjAw"}`, `]}}}`},
	} {
		all = append(all, Hostile{c.name + ".har", func() []byte {
			n := (MaxBytes - len(c.begin) - len(c.tail)) / len(c.unit)
			return []byte(c.begin + strings.Repeat(c.unit, n) + c.tail)
		}})
		if !slices.Contains([]string{"entries", "empty-headers", "own-dns", "nested", "text", "list", "fields", "quoted", "web-page-replay"}, c.name) {
			continue
		}
		all = append(all, Hostile{c.name + ".zhar", func() []byte { // as mitmproxy compresses them
			sum := adler32.New()
			data, _ := deflate(c.begin, c.unit, c.tail, 280_000_000, sum)
			return sum.Sum(append([]byte{0x78, 0xda}, data...))
		}})
	}
	return all
}

// bodies are honest archives but for the content codings of bodies.
func bodies() []Hostile {
	var all []Hostile
	zeros := func(w io.WriteCloser, n int) {
		_, err := io.WriteString(w, "<html>")
		must(err)
		block := make([]byte, 1<<20)
		for range n >> 20 {
			_, err := w.Write(block)
			must(err)
		}
		must(w.Close())
	}
	for _, c := range []struct {
		coding string
		make   func(n int) []byte
	}{
		{"gzip", func(n int) []byte { // one member: browsers read no further
			var out bytes.Buffer
			z, err := gzip.NewWriterLevel(&out, 1)
			must(err)
			zeros(z, n)
			return out.Bytes()
		}},
		{"br", func(n int) []byte {
			var out bytes.Buffer
			zeros(brotli.NewWriterLevel(&out, 0), n)
			return out.Bytes()
		}},
		{"zstd", func(n int) []byte {
			var out bytes.Buffer
			z, err := zstd.NewWriter(&out, zstd.WithWindowSize(1<<20))
			must(err)
			zeros(z, n)
			return out.Bytes()
		}},
		{"deflate", func(n int) []byte {
			var out bytes.Buffer
			z, err := zlib.NewWriterLevel(&out, 1)
			must(err)
			zeros(z, n)
			return out.Bytes()
		}},
	} {
		response := func(n int) string {
			return "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: " + c.coding + "\r\n\r\n" + string(c.make(n))
		}
		all = append(all,
			Hostile{"one-" + c.coding + ".warc", func() []byte { return []byte(record("response", "1", response(700_000_000))) }},
			Hostile{"many-" + c.coding + ".warc", func() []byte {
				block, out := response(20<<20), ""
				for i := 0; len(out)+len(block)+500 < MaxBytes && i < 200; i++ {
					out += record("response", fmt.Sprint(i), block)
				}
				return []byte(out)
			}})
	}
	return all
}

// documents are honest archives of hostile pages, and of bodies that other programs write at several times their size.
func documents() []Hostile {
	page := func(name, kind string, n int, begin, unit string) Hostile {
		return Hostile{name + ".warc", func() []byte {
			body := append(gzipped([]byte(begin)), bomb(unit, n)...)
			return []byte(record("response", "1", "HTTP/1.1 200 OK\r\nContent-Type: "+kind+"\r\nContent-Encoding: gzip\r\n\r\n"+string(body)))
		}}
	}
	const html = "text/html"
	most := 16<<20 + 64*15_000 // what a body of a few kilobytes may decode to
	plain := func(name, kind, unit string) Hostile {
		return Hostile{name + ".warc.gz", func() []byte {
			return filled("response", "http://a.test/", "HTTP/1.1 200 OK\r\nContent-Type: "+kind+"\r\n\r\n", unit, "", 60_000_000)
		}}
	}
	return []Hostile{
		page("utf16", html+"; charset=utf-16", most-1<<20, "\xff\xfe", "<\x00p\x00>\x00"),
		page("utf16-large", html+"; charset=utf-16", 20_000_000, "\xff\xfe", "\x00\x4e"),
		page("attributes", html, 16<<20, "<html>", "<a "+strings.Repeat("b ", 500_000)+">"),
		page("one-tag", html, 16<<20, "<html><a ", strings.Repeat("b=c ", 200_000)),
		page("metas", html, 16<<20, "<html><head>", "<meta http-equiv=refresh content=x>"),
		page("meta-attributes", html, 16<<20, "<html><head>", "<meta "+strings.Repeat("b ", 500_000)+">"),
		page("images", html, 16<<20, "<html>", "<img src=x>"),
		page("frames", html, 16<<20, "<html>", "<iframe srcdoc=x>"),
		{"base.warc", func() []byte {
			body := "<html><base href=http://a.test/" + strings.Repeat("x", 700_000) + "/>"
			for i := range 10_000 {
				body += fmt.Sprintf("<img src=%d>", i)
			}
			return []byte(record("response", "1", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"+body))
		}},
		plain("plain-text", "text/plain", "\"<&\x01"),
		plain("plain-utf16", "text/plain; charset=utf-16", "x\x00"),
		plain("plain-page", html, "<a b c d e f g>"),
		{"request-body.warc.gz", func() []byte {
			begin := "POST / HTTP/1.1\r\nContent-Type: text/plain\r\n\r\n"
			return append(gzipped([]byte(record("response", "1", okHead))),
				filled("request", "http://a.test/1", begin, "\x00", "", 60_000_000, "WARC-Concurrent-To: <urn:x:1>")...)
		}},
		{"cut-off.warc.gz", func() []byte {
			return filled("response", "http://a.test/", okHead, "\x00", "", 60_000_000, "WARC-Truncated: length")
		}},
	}
}
