package archivetest

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// containers are archives in archives, and in wrappings of other tools.
func containers() []Hostile {
	pack := stored("datapackage.json", []byte(`{"profile":"data-package","resources":[]}`))
	har := `{"log":{"entries":[{"request":{"method":"GET","url":"http://a"},"response":{"status":200,"content":{"_file":"x"}}}`
	const entry = `,{"request":{"method":"GET","url":"http://a"},"response":{"status":200,"content":{"_file":"x"}}}`
	return []Hostile{
		{"wacz-in-wacz.wacz", func() []byte {
			inner := zipped(pack, stored("archive/data.warc.gz", filled("response", "http://a.test/", okHead, "\x00", "", 400<<20)))
			return zipped(pack, stored("archive/data.warc.gz", inner), stored("archive/inner.wacz", inner))
		}},
		{"har-in-zip.har.zip", func() []byte {
			return zipped(deflated("x.har", `{"log":{"entries":[{}`, ",{}", "]}}", 280_000_000))
		}},
		{"one-file-of-many.har.zip", func() []byte { // one file of 8 MB, of which each entry is to have its own
			return zipped(stored("x.har", []byte(har+strings.Repeat(entry, 8000)+"]}}")), deflated("x", "", "\x00", "", 8<<20))
		}},
		{"large-file.har.zip", func() []byte {
			return zipped(stored("x.har", []byte(har+"]}}")), deflated("x", "", "\x00", "", 700<<20))
		}},
		{"gzip-of-gzip.har.gz", func() []byte {
			return gzipped(gzipped(bomb(har+"]}}"+strings.Repeat(" ", 100_000), 400<<20)))
		}},
		{"json.har.gz", func() []byte {
			return append(gzipped([]byte(`{"log":{"entries":[`)), bomb(`{"request":{"method":"GET","url":"http://a"},"response":{"status":200}},`, 250<<20)...)
		}},
		{"requests.wprgo", func() []byte {
			return append(gzipped([]byte(`{"Requests":{"a":{"http://a":[{}`)),
				bomb(`,{"SerializedRequest":"R0VUIC8=","SerializedResponse":"SFRUUC8xLjEgMjAwDQoNCg=="}`, 250<<20)...)
		}},
		{"hosts.wprgo", func() []byte {
			return many(3_000_000, `{"Requests":{"a`+number+`":{"http://a`+number+`/":[{"SerializedRequest":"R0VUIC8=","SerializedResponse":"SFRUUC8xLjEgMjAwDQoNCg=="}]}}}`)
		}},
		{"lines.wprgo", func() []byte {
			lines := base64.StdEncoding.EncodeToString([]byte("HTTP/1.1 200 OK\r\n" + strings.Repeat("a:\r\n", 2_000_000) + "\r\n"))
			return gzipped([]byte(`{"Requests":{"a":{"http://a/":[{"SerializedRequest":"R0VUIC8=","SerializedResponse":"` + lines + `"}]}}}`))
		}},
		{"deep.har", func() []byte { return []byte(`{"log":{"x":` + strings.Repeat("[", 900_000)) }},
		{"deep-objects.har", func() []byte { return []byte(`{"log":{"x":` + strings.Repeat(`{"":`, 240_000)) }},
		{"base64.zhar", func() []byte { // whose length none has
			sum := adler32.New()
			data, _ := deflate(`{"log":{"entries":[{"request":{"method":"GET","url":"http://a"},"response":{"status":200,"content":{"encoding":"base64","text":"`,
				"A", `"}}}]}}`, 270_000_000, sum)
			return sum.Sum(append([]byte{0x78, 0xda}, data...))
		}},
		{"utf16.har", func() []byte {
			text := `{"log":{"entries":[{}` + strings.Repeat(",{}", 150_000) + "]}}"
			out := []byte{0xff, 0xfe}
			for _, c := range []byte(text) {
				out = append(out, c, 0)
			}
			return out
		}},
		{"dictionary.warc.zst", func() []byte { return dictionary(200 << 20) }},
		{"dictionary-frames.warc.zst", func() []byte {
			out := dictionary(100 << 10)
			z, err := zstd.NewWriter(nil)
			must(err)
			frame := z.EncodeAll([]byte(record("response", "1", okHead)), nil)
			return append(out, bytes.Repeat(frame, (MaxBytes-len(out))/len(frame))...)
		}},
		{"skipped.warc.zst", func() []byte { // a frame that is skipped and longer than the file
			return binary.LittleEndian.AppendUint32([]byte{0x50, 0x2a, 0x4d, 0x18}, 1<<31)
		}},
		{"extra.warc.gz", func() []byte { // a member whose name never ends
			out := []byte{0x1f, 0x8b, 8, 8 | 16, 0, 0, 0, 0, 0, 3}
			return append(out, bytes.Repeat([]byte("n"), MaxBytes-len(out))...)
		}},
	}
}

// dictionary is the front of a .warc.zst: a frame that is skipped, with a dictionary of n bytes, compressed itself.
func dictionary(n int) []byte {
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed, zstd.WithWindowSize(1<<20))
	must(err)
	_, err = io.CopyN(z, zeros{}, int64(n))
	must(err)
	must(z.Close())
	out := binary.LittleEndian.AppendUint32([]byte{0x5d, 0x2a, 0x4d, 0x18}, uint32(packed.Len()))
	return append(out, packed.Bytes()...)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// messages are honest archives of hostile messages: what a replay compares, joins and decodes.
func messages() []Hostile {
	request := func(name, kind, body string, n int) Hostile {
		return Hostile{name + ".warc.gz", func() []byte {
			return many(n, record("response", number, okHead)+
				record("request", number+"r", "POST /"+number+" HTTP/1.1\r\nContent-Type: "+kind+"\r\n\r\n"+body, "WARC-Concurrent-To: <urn:x:"+number+">"))
		}}
	}
	response := func(name string, n int, head, body string) Hostile {
		return Hostile{name + ".warc.gz", func() []byte {
			return many(n, record("response", number, "HTTP/1.1 200 OK\r\n"+head+"\r\n\r\n"+body))
		}}
	}
	gz := func(b []byte) []byte { return gzipped(b) }
	br := func(b []byte) []byte {
		var out bytes.Buffer
		w := brotli.NewWriterLevel(&out, 5)
		_, err := w.Write(b)
		must(err)
		must(w.Close())
		return out.Bytes()
	}
	onTop := func(name, coding string, codes ...func([]byte) []byte) Hostile {
		return Hostile{name + ".warc", func() []byte {
			body := []byte("<html>" + strings.Repeat("<p>", 20<<20))
			for _, code := range codes {
				body = code(body)
			}
			return []byte(record("response", "1", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: "+coding+"\r\n\r\n"+string(body)))
		}}
	}
	return []Hostile{
		request("json-requests", "application/json", "["+strings.Repeat("0,", 400_000)+"0]", 60),
		request("deep-json-requests", "application/json", strings.Repeat("[", 400_000), 60),
		request("objects-requests", "application/json", `{"a":`+strings.Repeat(`{"a":1,"b":`, 60_000)+"1", 60),
		request("json-in-json", "application/json", `{"a":"`+strings.Repeat(`{\"a\":1,\"b\":2}`, 50_000)+`"}`, 60),
		request("form-requests", "application/x-www-form-urlencoded", strings.Repeat("a&", 400_000), 60),
		request("form-of-percents", "application/x-www-form-urlencoded", strings.Repeat("%41=%41&", 100_000), 60),
		request("multipart-requests", "multipart/form-data; boundary=b", strings.Repeat("--b\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n", 15_000), 60),
		{"long-queries.warc.gz", func() []byte {
			return many(60, head("response", number, "http://a.test/"+number+"?"+strings.Repeat("a=b&", 200_000), len(okHead))+okHead+end)
		}},
		{"long-paths.warc.gz", func() []byte {
			return many(60, head("response", number, "http://a.test/"+number+strings.Repeat("/a", 400_000), len(okHead))+okHead+end)
		}},
		{"percent-paths.warc.gz", func() []byte {
			return many(200, head("response", number, "http://a.test/"+number+strings.Repeat("%", 700_000), len(okHead))+okHead+end)
		}},
		response("set-cookies", 60, strings.TrimSuffix(strings.Repeat("Set-Cookie: a=b; expires=Thu, 01 Jan 2026 00:00:00 GMT\r\n", 9_000), "\r\n"), ""),
		response("policies", 60, "Content-Type: text/html\r\nContent-Security-Policy: "+strings.Repeat("script-src 'nonce-a';", 40_000), "<html>"),
		response("vary", 60, "Vary: "+strings.Repeat("a,", 400_000), ""),
		response("links", 60, "Link: "+strings.Repeat("</a>; rel=preload, ", 40_000), ""),
		response("styles", 60, "Content-Type: text/css", strings.Repeat("a{background:url(a)}", 30_000)),
		response("deep-pages", 60, "Content-Type: text/html", "<html>"+strings.Repeat("<div>", 100_000)),
		response("pages-of-frames", 60, "Content-Type: text/html", "<html>"+strings.Repeat(`<iframe srcdoc="<iframe srcdoc='&lt;iframe srcdoc=x>'>">`, 12_000)),
		response("polled", 3000, "Content-Type: text/html; charset=iso-2022-jp", "<html>"+strings.Repeat("\x1b$B", 3_000)),
		{"pieces.warc.gz", func() []byte { // which together hold a representation of gigabytes, as they say
			return many(200_000, record("response", number, "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes "+number+"-"+number+"/4000000000\r\n\r\nx"))
		}},
		{"pieces-of-one.warc.gz", func() []byte {
			return many(200_000, head("response", number, "http://a.test/", len(pieceHead)+1)+pieceHead+"x"+end)
		}},
		{"overlapping-pieces.warc.gz", func() []byte {
			body := strings.Repeat("x", 300_000)
			piece := "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-299999/*\r\n\r\n" + body
			return many(200, head("response", number, "http://a.test/"+number, len(piece))+piece+end)
		}},
		{"revisited.warc.gz", func() []byte { // a body of 8 MB that thousands of records name
			out := filled("response", "http://a.test/", okHead, "\x00", "", 8<<20)
			return append(out, many(3_000, record("revisit", "r"+number, okHead, "WARC-Refers-To: <urn:x:1>",
				"WARC-Refers-To-Target-URI: http://a.test/"))...)
		}},
		{"deflated-socket.warc.gz", func() []byte { // messages that are compressed (RFC 7692), of a megabyte each
			var b bytes.Buffer
			z, err := flate.NewWriter(&b, 9)
			must(err)
			_, err = io.CopyN(z, zeros{}, 1<<20)
			must(err)
			must(z.Flush())
			message := bytes.TrimSuffix(b.Bytes(), []byte{0, 0, 0xff, 0xff})
			frame := append(binary.BigEndian.AppendUint16([]byte{0xc2, 126}, uint16(len(message))), message...)
			one := fmt.Sprintf(`{"at_ns":1,"data":%q}`, base64.StdEncoding.EncodeToString(frame))
			meta := `{"v":1,"wall":"2026-01-01T00:00:00Z","socket":[` + one + strings.Repeat(","+one, 3000) + "]}"
			return append(gzipped([]byte(record("response", "1", "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"))),
				gzipped([]byte(record("metadata", "m", meta, "WARC-Concurrent-To: <urn:x:1>", "Content-Type: application/vnd.eidetic.exchange+json")))...)
		}},
		onTop("gzip-in-gzip", "gzip, gzip", gz, gz), onTop("gzip-four-times", "gzip, gzip, gzip, gzip", gz, gz, gz, gz), onTop("br-in-br", "br, br", br, br),
	}
}

const pieceHead = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-5/300000000\r\n\r\n"
