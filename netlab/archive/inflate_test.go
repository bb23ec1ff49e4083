package archive

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// BenchmarkInflate takes one body out of its gzip member: what the first
// request for it would wait for if that were not done before a trial.
func BenchmarkInflate(b *testing.B) {
	for _, size := range []int{50_000, 1_000_000} {
		for name, level := range map[string]int{"text": gzip.BestSpeed, "stored": gzip.NoCompression} {
			b.Run(fmt.Sprintf("%s-%d", name, size), func(b *testing.B) {
				var text strings.Builder
				for i := 0; text.Len() < size; i++ {
					fmt.Fprintf(&text, "const v%d = %x + margin%d; ", i, i*i*7919, i%17)
				}
				var member bytes.Buffer
				if err := appendMember(&member, level, nil, []byte(text.String())); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(size))
				u := newUnzipper().(*unzipper)
				for b.Loop() {
					p := part{to: int64(member.Len())}
					p.read(bytes.NewReader(member.Bytes()), u, Limits{}.withDefaults(), new(atomic.Int64))
					if !p.complete || len(p.items) != 1 {
						b.Fatal("the member is not whole")
					}
				}
			})
		}
	}
}
