package scrcpy

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/base/scrcpyserver"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func unhex(text string) []byte {
	b, _ := hex.DecodeString(text)
	return b
}

// Parameter sets of libx264, by ffmpeg -f lavfi -i color=gray:s=1080x2400 -c:v libx264 and others.
const (
	spsHigh = "67640032acd94044012de5f016a02020280000030008000003019078c18cb0" // -profile:v high -colorspace bt709
	spsMain = "674d400ad9028be688c05a81010320000003002000000641e244c9"         // -profile:v main -colorspace smpte170m
	sps444  = "67f4000a919b2884d808800000030080000019078912cb"                 // -pix_fmt yuv444p
)

func TestParseSPS(t *testing.T) {
	for text, want := range map[string]sps{
		spsHigh: {width: 1080, height: 2400, matrix: lab.BT709, frameNumberBits: 4},
		spsMain: {width: 150, height: 66, matrix: lab.BT601, frameNumberBits: 4},
	} {
		if got, err := parseSPS(unhex(text)); err != nil || got != want {
			t.Errorf("parseSPS(%s) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, says := range map[string]string{sps444: "not 4:2:0", spsHigh[:20]: "cut off", "67": "cut off"} {
		if got, err := parseSPS(unhex(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("parseSPS(%s) = %+v, %v; want an error with %q", text, got, err, says)
		}
	}
}

func TestDialects(t *testing.T) {
	old, now := dialectOf(scrcpyserver.File{Major: 1}), dialectOf(scrcpyserver.File{Major: 4})
	if words := old.options(Options{MaxSize: 1280, MaxRate: 30}); !slices.Contains(words, "bit_rate=20000000") ||
		!slices.Contains(words, "max_size=1280") || !slices.Contains(words, "max_fps=30") || slices.Contains(words, "audio=false") {
		t.Errorf("of 1.x: options %q", words)
	}
	if words := now.options(Options{}); !slices.Contains(words, "video_bit_rate=20000000") || !slices.Contains(words, "audio=false") ||
		!slices.Contains(words, "control=false") {
		t.Errorf("of 4.x: options %q", words)
	}
	if old.sessions || old.meta != 68 || !now.sessions || now.meta != 64 {
		t.Errorf("of 1.x and 4.x: %+v and %+v", old, now)
	}
}

// The least difference counts; in a pause the clocks drift apart, which is told, until pictures come in a row again.
func TestClocks(t *testing.T) {
	var c clocks
	const ms, ahead = time.Millisecond, time.Hour
	add := func(drawn, took time.Duration) {
		t.Helper()
		if err := c.add(drawn+ahead, lab.Time(drawn+took)); err != nil {
			t.Error(err)
		}
	}
	check := func(drawn, late, uncertain time.Duration) {
		t.Helper()
		at, u := c.at(drawn + ahead)
		if d := time.Duration(at) - drawn - late; d < -ms/20 || d > ms/20 || u < uncertain-ms/20 || u > uncertain+ms/20 {
			t.Errorf("at %v: late by %v, uncertain by %v; want %v and %v", drawn, time.Duration(at)-drawn, u, late, uncertain)
		}
	}
	for n := range 20 {
		took := 30 * ms
		if n == 5 {
			took = 8 * ms
		}
		add(time.Duration(n)*16*ms, took)
	}
	check(320*ms, 8*ms, 0)
	add(100*time.Second, 200*ms) // a slow one after a pause of 99.7 s
	check(100*time.Second, 8*ms+10*ms, 20*ms)
	for n := range 12 {
		add(101*time.Second+time.Duration(n)*16*ms, 9*ms)
	}
	check(102*time.Second, 9*ms, 0)
	for _, took := range []time.Duration{20 * time.Second, -20 * time.Second} {
		if err := c.add(103*time.Second+ahead, lab.Time(103*time.Second+took)); err == nil {
			t.Errorf("add() of a picture that took %v = nil; want an error", took)
		}
	}
}

// FuzzStream: whatever a phone sends is read in bounded memory, up to the pictures for the decoder.
func FuzzStream(f *testing.F) {
	hello := append(make([]byte, 65), "h264\x00\x00\x04\x38\x00\x00\x09\x60"...)
	config := append([]byte("\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x23\x00\x00\x00\x01"), unhex(spsHigh)...)
	picture := []byte("\x40\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x08\x00\x00\x00\x01\x65\x88\x84\x04")
	f.Add(2, slices.Concat(hello, config, picture))
	f.Add(4, slices.Concat(hello[:69], []byte("\x80\x00\x00\x00\x00\x00\x04\x38\x00\x00\x09\x60"), config, picture))
	f.Add(1, slices.Concat(hello[:65], []byte("\x04\x38\x09\x60"), picture))
	f.Add(3, append(slices.Clone(hello), "\x00\x00\x00\x00\x00\x00\x00\x01\x00\xff\xff\xff"...))
	f.Fuzz(func(t *testing.T, major int, stream []byte) {
		defer testlab.Input(t)()
		d := dialectOf(scrcpyserver.File{Major: major&3 + 1})
		r := bytes.NewReader(stream)
		if h, err := readHello(r, d); err != nil {
			return
		} else if h.width*h.height > maxPixels || len(h.phone) > 64 {
			t.Errorf("hello %+v", h)
		}
		var o order
		var s sps
		for {
			p, err := readPacket(r, d, lab.Monotonic)
			if err != nil {
				return
			}
			if p.pts < 0 || len(p.data) > maxPacket || p.width*p.height > maxPixels {
				t.Fatalf("a packet of %v, %d bytes, %d × %d", p.pts, len(p.data), p.width, p.height)
			}
			if now, err := parametersIn(p.data); err == nil {
				if s = now; s.width < 1 || s.height < 1 || s.width*s.height > maxPixels || s.frameNumberBits > 16 {
					t.Fatalf("parameters %+v", s)
				}
			}
			_, _, _ = o.add(p.data, s)
		}
	})
}
