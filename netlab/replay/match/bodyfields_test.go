package match

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func gzipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBodiesThatExpand: taking a hostile body apart needs little memory, and the body
// still differs from another.
func TestBodiesThatExpand(t *testing.T) {
	const most = 48 << 20 // bytes allocated for one, of which little stays
	const json, form, parts = "application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"
	deep := strings.Repeat(`{"`+strings.Repeat("k", 300)+`":`, 9000)
	for name, c := range map[string]struct {
		media, head, unit string
		times             int // 65,536 units
		tail              string
	}{
		"numbers":         {json, "[", "0,", 480, "0]"},
		"fewer numbers":   {json, "[", "0,", 31, "0]"},
		"arrays":          {json, strings.Repeat("[[],", 9000), "", 0, "0" + strings.Repeat("]", 9000)},
		"objects":         {json, "[", "{},", 16, "0]"},
		"nested names":    {json, deep, "", 0, "0" + strings.Repeat("}", 9000)},
		"a form":          {form, "", "a&", 480, "a"},
		"a shorter form":  {form, "", "a&", 31, "a"},
		"a long text":     {"text/plain", "", "x", 960, "x"},
		"a bomb":          {"text/plain", "", "x", 1280, "x"},
		"many parts":      {parts, "", "--b\r\n\r\n\r\n", 100, "x"},
		"fewer parts":     {parts, "", "--b\r\n\r\n\r\n", 6, "x"},
		"many part heads": {parts, "--b\r\n", "a:\r\n", 160, "x"},
		"fewer of them":   {parts, "--b\r\n", "a:\r\n", 15, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			units := gzipped(t, strings.Repeat(c.unit, 1<<16)) // members add up
			packed := func(tail string) []byte {
				return slices.Concat(gzipped(t, c.head), bytes.Repeat(units, c.times), gzipped(t, tail))
			}
			header := http.Header{"Content-Type": {c.media}, "Content-Encoding": {"gzip"}}
			body, other := packed(c.tail), packed(c.tail+"!")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			kind, fields, _ := bodyFields(header, body, BodySum(body))
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > most {
				t.Errorf("a body of %d bytes took %d MiB of memory, want at most %d", len(body), got>>20, most>>20)
			}
			if kind != "bytes" || len(fields) != 1 || len(fields[0].value) != 64 {
				t.Errorf("the body is of kind %s with %d fields, want its SHA-256 alone", kind, len(fields))
			}
			if _, differs, _ := bodyFields(header, other, BodySum(other)); differs[0] == fields[0] {
				t.Errorf("two different bodies have the same field %v", fields[0])
			}
		})
	}
}

// TestLongBodiesMatch: a long body is compared by its decoded bytes, however it was
// compressed; an upload by its parts, whatever its boundary.
func TestLongBodiesMatch(t *testing.T) {
	text := strings.Repeat("a line of a log\n", 400_000)
	var requests []*Request
	for _, c := range []struct {
		header http.Header
		body   []byte
	}{{http.Header{}, []byte(text)}, {http.Header{"Content-Encoding": {"gzip"}}, gzipped(t, text)}} {
		r := NewRequest("POST", "https://a.example/log", c.header, c.body)
		requests = append(requests, r)
	}
	if a, b := requests[0].normalKey(&Ignored{}), requests[1].normalKey(&Ignored{}); a != b {
		t.Errorf("the normal keys of one body, plain and compressed, are %s and %s; want one key", a, b)
	}
	upload := func(boundary, file string) []pair {
		body := fmt.Sprintf(
			"--%[1]s\r\nContent-Disposition: form-data; name=f; filename=x.bin\r\n\r\n%[2]s\r\n--%[1]s--\r\n",
			boundary,
			file,
		)
		kind, fields, _ := bodyFields(http.Header{"Content-Type": {"multipart/form-data; boundary=" + boundary}}, []byte(body), "")
		if kind != "multipart" || len(fields) != 1 {
			t.Fatalf("the body is of kind %s with %d fields, want multipart with 1", kind, len(fields))
		}
		return fields
	}
	if a, b := upload("one", text), upload("two", text); a[0] != b[0] {
		t.Errorf("one upload with two boundaries has the fields %v and %v, want the same", a, b)
	}
	const part = "--b\r\nContent-Disposition: form-data; name=meta\r\n\r\n{\"at\":1,\"q\":\"a\"}\r\n--b--\r\n"
	want := []pair{{"meta.at", "1"}, {"meta.q", "a"}}
	if _, got, _ := bodyFields(http.Header{"Content-Type": {"multipart/form-data; boundary=b"}}, []byte(part), ""); !slices.Equal(got, want) {
		t.Errorf("JSON in a part has the fields %v; want %v", got, want)
	}
	if a, b := upload("one", text), upload("two", text+"."); a[0] == b[0] {
		t.Errorf("uploads of two different files have the same field %v", a)
	}
}

// TestPartsOfAllKinds: of a batch of requests or an upload in parts, the boundaries make no difference, nor do times in
// JSON, whether it is long, has a name of a file, or stands in a part of a part; the content of each part does.
func TestPartsOfAllKinds(t *testing.T) {
	filler := strings.Repeat("x", 400)
	for name, c := range map[string]struct{ media, body string }{ // §: a boundary, @: a time, #: what counts
		"a batch":        {"multipart/mixed; boundary=§", "--§\r\nContent-Type: application/http\r\n\r\nGET /# HTTP/1.1\r\n\r\n--§--\r\n"},
		"an upload":      {"multipart/related; boundary=§", "--§\r\nContent-Type: application/json\r\n\r\n{\"ts\":@,\"name\":\"#\"}\r\n--§\r\nContent-Type: image/png\r\n\r\n" + filler + "\r\n--§--\r\n"},
		"parts in parts": {"multipart/mixed; boundary=§", "--§\r\nContent-Type: multipart/mixed; boundary=in§\r\n\r\n--in§\r\n\r\nPUT /#\r\n--in§--\r\n\r\n--§--\r\n"},
		"long JSON": {"multipart/form-data; boundary=§", "--§\r\nContent-Disposition: form-data; name=a\r\n\r\n{\"ts\":@,\"v\":\"#\",\"w\":\"" + filler +
			"\"}\r\n--§--\r\n"},
		"JSON as a file": {"multipart/form-data; boundary=§", "--§\r\nContent-Disposition: form-data; name=a; filename=blob\r\nContent-Type: application/json\r\n\r\n{\"ts\":@,\"v\":\"#\"}\r\n--§--\r\n"},
		"no JSON":        {"multipart/form-data; boundary=§", "--§\r\nContent-Disposition: form-data; name=a\r\n\r\n{" + filler + "#\r\n--§--\r\n"},
	} {
		key := func(boundary, at, what string) string {
			r := strings.NewReplacer("§", boundary, "@", at, "#", what)
			return NewRequest("POST", "https://a.test/", http.Header{"Content-Type": {r.Replace(c.media)}}, []byte(r.Replace(c.body))).normalKey(&Ignored{})
		}
		recorded := key("one", "1770000000123", "a")
		if got := key("another", "1770000999456", "a"); got != recorded {
			t.Errorf("%s: another boundary and time make it another request:\n%s\n%s", name, got, recorded)
		}
		if got := key("one", "1770000000123", "b"); got == recorded {
			t.Errorf("%s: another content is the same request: %s", name, got)
		}
	}
}

// TestCompressedByThePage: a body that a script has compressed, of which no field tells, is compared by what is in it.
func TestCompressedByThePage(t *testing.T) {
	ask := func(text string) string {
		return NewRequest("POST", "https://a.test/e", http.Header{"Content-Type": {"text/plain"}}, gzipped(t, text)).normalKey(&Ignored{})
	}
	one := ask(`{"ts":1770000000123,"page":"cart"}`)
	if later := ask(`{"page":"cart","ts":1770000999456}`); later != one {
		t.Errorf("another time makes it another request:\n%s\n%s", later, one)
	}
	if other := ask(`{"ts":1770000000123,"page":"home"}`); other == one {
		t.Errorf("another page is the same request: %s", other)
	}
}
