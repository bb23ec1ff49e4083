package replay

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
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

// TestBodiesThatExpand: what is compared of a hostile body takes little memory,
// and it is still told from another.
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
			header := &lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: c.media}, {Name: "Content-Encoding", Value: "gzip"}}}
			body, other := packed(c.tail), packed(c.tail+"!")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			kind, fields := bodyFields(header, body, sumOf(body))
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > most {
				t.Errorf("%d bytes of request took %d MiB of memory", len(body), got>>20)
			}
			if kind != "bytes" || len(fields) != 1 || len(fields[0].value) != 64 {
				t.Errorf("%s with %d fields", kind, len(fields))
			}
			if _, differs := bodyFields(header, other, sumOf(other)); differs[0] == fields[0] {
				t.Error("another body is the same")
			}
		})
	}
}

// TestLongBodiesMatch: by their plain bytes, however they were compressed; an
// upload by its parts, whatever its boundary.
func TestLongBodiesMatch(t *testing.T) {
	text := strings.Repeat("a line of a log\n", 400_000)
	coded := &lab.Message{Header: []lab.HeaderField{{Name: "Content-Encoding", Value: "gzip"}}}
	shapes := []*shape{}
	for _, c := range []struct {
		header *lab.Message
		body   []byte
	}{{&lab.Message{}, []byte(text)}, {coded, gzipped(t, text)}} {
		s, err := newShape("POST", "https://a.example/log", c.header, c.body)
		if err != nil {
			t.Fatal(err)
		}
		shapes = append(shapes, s)
	}
	l := &learned{}
	if a, b := shapes[0].normalKey(l), shapes[1].normalKey(l); a != b {
		t.Errorf("%s and %s", a, b)
	}
	upload := func(boundary, file string) []pair {
		body := fmt.Sprintf("--%[1]s\r\nContent-Disposition: form-data; name=f; filename=x.bin\r\n\r\n%[2]s\r\n--%[1]s--\r\n", boundary, file)
		kind, fields := bodyFields(&lab.Message{Header: fields("Content-Type: multipart/form-data; boundary=" + boundary)}, []byte(body), "")
		if kind != "multipart" || len(fields) != 1 {
			t.Fatalf("%s with %d fields", kind, len(fields))
		}
		return fields
	}
	if a, b := upload("one", text), upload("two", text); a[0] != b[0] {
		t.Errorf("an upload with another boundary: %v and %v", a, b)
	}
	if a, b := upload("one", text), upload("two", text+"."); a[0] == b[0] {
		t.Errorf("another file is the same upload: %v", a)
	}
}
