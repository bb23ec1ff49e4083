package archive

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// A large page: 3,000 exchanges with 60 MB of text and 60 MB of pictures.
func largeArchive() *Archive {
	r := rand.New(rand.NewPCG(1, 2))
	var list []*lab.Exchange
	for i := range 3000 {
		body, kind := make([]byte, 40_000), "image/png"
		for k := range body {
			body[k] = byte(r.Uint32())
		}
		if i%2 == 0 {
			var text bytes.Buffer
			for text.Len() < 40_000 {
				fmt.Fprintf(&text, "<div class=\"item-%d\">{\"price\": %d, \"name\": \"article\"}</div>\n", r.IntN(1000), r.IntN(100_000))
			}
			body, kind = text.Bytes(), "text/html"
		}
		list = append(list, &lab.Exchange{
			Order: i, Wall: time.Unix(1_700_000_000+int64(i), 0), Method: "GET", URL: fmt.Sprintf("https://a.test/%d", i),
			Protocol: "h2", Status: 200, FirstByte: time.Millisecond,
			Request: lab.Message{Header: []lab.HeaderField{{Name: "accept", Value: "*/*"}, {Name: "user-agent", Value: "x"}}},
			Response: lab.Message{Header: []lab.HeaderField{{Name: "content-type", Value: kind}, {Name: "cache-control", Value: "no-store"}},
				Body: body},
			Chunks: []lab.Chunk{{At: time.Millisecond, Bytes: 20_000}, {At: 2 * time.Millisecond, Bytes: len(body) - 20_000}},
		})
	}
	return New(list, nil, nil, CreateOptions{Software: "test", Wall: time.Unix(1_700_000_000, 0)})
}

func BenchmarkOpen(b *testing.B) {
	a, dir := largeArchive(), b.TempDir()
	files := map[string]func(string) error{
		"wacz": func(path string) error { return Save(path, a) },
		"warc": func(path string) error { return WriteWARC(path, a) },
		"har": func(path string) error {
			f, err := os.Create(path)
			if err == nil {
				err = WriteHAR(f, a)
			}
			return err
		},
	}
	for _, kind := range []string{"wacz", "warc", "har"} {
		path := filepath.Join(dir, "a."+kind)
		if err := files[kind](path); err != nil {
			b.Fatal(err)
		}
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				if _, err := Open(path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("assess", func(b *testing.B) {
		for b.Loop() {
			Assess(a)
		}
	})
}
