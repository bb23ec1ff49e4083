package video

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// stream is what an encoder writes: a header and packets.
func stream(codec string, packets ...[]byte) []byte {
	b := append([]byte("DKIF\x00\x00\x20\x00"+codec), make([]byte, 20)...)
	for n, p := range packets {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p)))
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
		b = append(b, p...)
	}
	return b
}

func TestIVF(t *testing.T) {
	whole := stream("VP80", []byte{0, 1, 2}, []byte{1})
	in, err := newIVF(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]byte{{0, 1, 2}, {1}} {
		if got, err := in.next(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("next() = %v, %v; want %v, nil", got, err, want)
		}
	}
	if _, err := in.next(); !errors.Is(err, io.EOF) {
		t.Errorf("next() after the last packet: %v, want EOF", err)
	}
	if _, err := newIVF(bytes.NewReader(stream("VP90"))); err == nil {
		t.Error("another codec is taken")
	}
	in, err = newIVF(bytes.NewReader(whole[:len(whole)-1]))
	for err == nil {
		_, err = in.next()
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a stream that is cut off: %v, want unexpected EOF", err)
	}
}

func FuzzIVF(f *testing.F) {
	f.Add(stream("VP80", []byte{0, 1, 2}, []byte{1}))
	f.Add(stream("VP80")[:31])
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		in, err := newIVF(bytes.NewReader(b))
		for read := 0; err == nil; {
			var p []byte
			p, err = in.next()
			if read += len(p); read > len(b) {
				t.Fatalf("%d bytes were read of %d", read, len(b))
			}
		}
	})
}

// TestMuxerRefuses: what would make a film that players stumble over is an error.
func TestMuxerRefuses(t *testing.T) {
	key, other := []byte{0}, []byte{1}
	for _, test := range []struct {
		name    string
		packets [][]byte
		times   []int64
		want    string
	}{
		{"a first picture that rests on another", [][]byte{other}, []int64{0}, "key frame at 0"},
		{"a late beginning", [][]byte{key}, []int64{5}, "key frame at 0"},
		{"two pictures at one time", [][]byte{key, other}, []int64{0, 0}, "0 ms follows one at 0 ms"},
	} {
		out, err := os.Create(filepath.Join(t.TempDir(), "film.webm"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := newMuxer(out, 64, 48)
		for i, p := range test.packets {
			if err == nil {
				err = m.add(p, test.times[i], 1)
			}
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want an error with %q", test.name, err, test.want)
		}
		out.Close()
	}
}
