package tape_test

import (
	"errors"
	"image"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"eidetic/capture/reel"
	"eidetic/capture/tape"
	"eidetic/internal/lab"
)

func header() reel.Header {
	return reel.Header{Format: lab.Format{Pixels: lab.BGRX, Width: 8, Height: 8, Rate: 60}, Source: "test", Wall: time.Unix(1, 0)}
}

// write puts n frames on the tape.
func write(t *testing.T, to *tape.Tape, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		pix := make([]byte, 8*8*4)
		pix[0] = byte(i)
		info := lab.FrameInfo{
			Seq:     uint64(i),
			Time:    lab.Time(i) * lab.Time(16*time.Millisecond),
			Changed: []image.Rectangle{image.Rect(0, 0, 8, 8)},
		}
		if err := to.Sink().WriteFrame(lab.Frame{FrameInfo: info, Pix: pix}); err != nil {
			t.Fatal(err)
		}
	}
}

// A reel is the same whether it is written at once or from memory; a pre-roll keeps
// what came before its trigger.
func TestTapes(t *testing.T) {
	for name, o := range map[string]tape.Options{
		"file": {}, "memory": {Memory: 1 << 20}, "pre-roll": {PreRoll: time.Minute}, "pre-roll in memory": {PreRoll: time.Minute, Memory: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			o.File, o.Header = filepath.Join(t.TempDir(), "x.reel"), header()
			to, err := tape.Create(o)
			if err != nil {
				t.Fatal(err)
			}
			write(t, to, 0, 3)
			if waits := o.PreRoll > 0; to.Waits() != waits || to.Begun() == waits {
				t.Errorf("Waits() = %v, Begun() = %v before the trigger; want %v, %v", to.Waits(), to.Begun(), waits, !waits)
			}
			to.Trigger()
			write(t, to, 3, 2)
			if err := to.Close(); err != nil {
				t.Fatal(err)
			}
			r, err := reel.Open(o.File)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if r.Len() != 5 || !to.Begun() || to.Frames() != 5 {
				t.Errorf("the reel has %d frames, Frames() = %d, Begun() = %v; want 5, 5, true", r.Len(), to.Frames(), to.Begun())
			}
			if _, err := tape.Create(o); !errors.Is(err, fs.ErrExist) {
				t.Errorf("Create() over a file = %v; want fs.ErrExist", err)
			}
		})
	}
}

// What cannot be made leaves no file.
func TestCreateRefuses(t *testing.T) {
	for name, o := range map[string]tape.Options{
		"memory": {Header: header(), Memory: -1}, "format": {Header: reel.Header{}, PreRoll: time.Second},
	} {
		o.File = filepath.Join(t.TempDir(), "x.reel")
		if _, err := tape.Create(o); err == nil {
			t.Errorf("%s: Create() = nil; want an error", name)
		}
		if _, err := os.Stat(o.File); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the file is there (%v); want none", name, err)
		}
	}
}
