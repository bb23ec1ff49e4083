package reel

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A frame is lost with its head, and the index. Those behind it, up to the next key frame, are not
// decoded onto another one, in whatever order they are asked for; what changed
// since a frame that is not there is not known.
func TestNothingIsDecodedOverAHole(t *testing.T) {
	s := newSample(t)
	for n, b := range s.blocks {
		if b.kind != blockFrame {
			continue
		}
		bad := bytes.Clone(s.data[:s.blocks[len(s.blocks)-2].at])
		bad[b.at] ^= 0xff
		lost := s.frame(n)
		for _, backwards := range []bool{false, true} {
			r, err := NewReader(bytes.NewReader(bad), int64(len(bad)))
			if err != nil {
				t.Fatal(err)
			}
			if r.Len() != len(s.pix)-1 || len(r.Recovered()) == 0 {
				t.Fatalf("frame %d is lost: %d frames, damage %v", lost, r.Len(), r.Recovered())
			}
			whole := 0
			for i := range r.Len() {
				if backwards {
					i = r.Len() - 1 - i
				}
				pix, err := r.Pixels(i)
				if seq := r.Info(i).Seq; err == nil && !bytes.Equal(pix, s.pix[seq]) {
					t.Errorf("frame %d is lost: frame %d has wrong pixels", lost, seq)
				} else if err == nil {
					whole++
				}
			}
			if whole < r.Len()-5 {
				t.Errorf("frame %d is lost: only %d of %d can be had", lost, whole, r.Len())
			}
			if lost < r.Len() {
				if c := r.Info(lost).Changed; len(c) != 1 || c[0] != r.Format().Bounds() {
					t.Errorf("frame %d is lost: the next one has %v as changed", lost, c)
				}
			}
		}
	}
}

// A reel that was closed is on the disk.
func TestCloseFlushes(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "a.reel"), Header{Format: sampleFormat, Source: "sample"})
	if err != nil {
		t.Fatal(err)
	}
	// The kernel refuses to flush a pipe.
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer w.file.Close()
	w.file, w.out = out, &bytes.Buffer{}
	if err := w.Close(); err == nil {
		t.Error("nothing was flushed")
	}
}
