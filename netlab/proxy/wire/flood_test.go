package wire

import (
	"bytes"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// TestHeaderFloods: header blocks that are long, or short and mean something long, are refused
// before their fields are stored, and the handler is not called.
func TestHeaderFloods(t *testing.T) {
	const frame = 16 << 10 // the largest payload that is allowed without asking
	const frames = maxContinuations
	var bomb bytes.Buffer
	e := hpack.NewEncoder(&bomb)
	request := func() {
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "wire.test"}, {":path", "/"}} {
			_ = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
	}
	request()
	// An entry of the table that is named again and again, each time by one byte: 8 GB.
	_ = e.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("a", 4000)})
	const newest = 0x80 | 62 // RFC 7541, 6.1: the first entry after the static table
	bomb.Write(bytes.Repeat([]byte{newest}, frame*frames-bomb.Len()))
	var long bytes.Buffer
	e = hpack.NewEncoder(&long)
	e.SetMaxDynamicTableSize(0)
	request()
	for long.Len() < frame*frames {
		_ = e.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("a", 4000), Sensitive: true})
	}
	for name, block := range map[string][]byte{"HPACK": bomb.Bytes(), "CONTINUATION": long.Bytes()} {
		t.Run(name, func(t *testing.T) {
			var called atomic.Int64
			s := newStand(t, "h2", func(http.ResponseWriter, *http.Request) { called.Add(1) })
			p := newPeer(t, s)
			defer p.nc.Close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			go func() {
				first := http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:frame], EndStream: true}
				if p.WriteHeaders(first) != nil {
					return // the server had enough
				}
				for at := frame; at < len(block); at += frame {
					end := min(at+frame, len(block))
					if p.WriteContinuation(1, end == len(block), block[at:end]) != nil {
						return
					}
				}
			}()
			refused := ""
			decoder := hpack.NewDecoder(4096, func(f hpack.HeaderField) {
				if f.Name == ":status" {
					refused = f.Value
				}
			})
			err := p.until(func(f http2.Frame) bool {
				if h, ok := f.(*http2.HeadersFrame); ok {
					_, _ = decoder.Write(h.HeaderBlockFragment())
				}
				_, reset := f.(*http2.RSTStreamFrame)
				_, away := f.(*http2.GoAwayFrame)
				return refused != "" || reset || away
			})
			runtime.ReadMemStats(&after)
			if called.Load() != 0 || refused != "" && refused != "431" {
				t.Errorf("the handler was called %d times, status %q, %v; want a refusal", called.Load(), refused, err)
			}
			const most = 100 << 20
			if took := after.TotalAlloc - before.TotalAlloc; took > most {
				t.Errorf("the block took %d MB of memory in all, want at most %d", took>>20, most>>20)
			}
			t.Logf("%d bytes sent: status %q, %v; %d kB of memory in all", len(block), refused, err, (after.TotalAlloc-before.TotalAlloc)>>10)
		})
	}
}
