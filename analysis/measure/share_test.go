package measure

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"testing"

	"eidetic/analysis/filmtest"
	"eidetic/analysis/visual"
)

const sharedWidth, sharedHeight = 64, 48

func sharedFilm(frames int) *filmtest.Film {
	return filmtest.New(sharedWidth, sharedHeight, 60, func(pix []byte, n int) {
		filmtest.Fill(pix, sharedWidth, image.Rect(0, 0, sharedWidth, sharedHeight), uint8(n), uint8(n>>8), 7)
	}, filmtest.Beat(frames, 60, 20, 0))
}

// forwards reads every frame once and the one before again, and compares both with what they are to show.
func forwards(frames visual.Frames) error {
	truth := sharedFilm(frames.Len())
	for i := range frames.Len() {
		for _, k := range []int{i, max(i-1, 0), i} {
			got, err := frames.Pixels(k)
			if err != nil {
				return err
			}
			if want, _ := truth.Pixels(k); !bytes.Equal(got, want) {
				return fmt.Errorf("frame %d shows %d, want %d", k, got[2], want[2])
			}
		}
	}
	return nil
}

// TestShared: walks side by side see the frames that they ask for, whether they go forwards, look back, skip
// frames, begin with the last one, or end early.
func TestShared(t *testing.T) {
	errEarly := errors.New("early")
	film := sharedFilm(300)
	walks := []func(visual.Frames) error{
		forwards,
		func(f visual.Frames) error { // begins with the last frame, as the analysis of a load does
			got, err := f.Pixels(f.Len() - 1)
			if err != nil {
				return err
			}
			if want := film.Shot(f.Len() - 1).State; int(got[2])+int(got[1])<<8 != want {
				return fmt.Errorf("the last frame shows %d, want %d", got[2], want)
			}
			return forwards(f)
		},
		func(f visual.Frames) error {
			_, err := f.Pixels(7)
			return err
		},
		func(f visual.Frames) error { return nil },
		func(f visual.Frames) error {
			for i := 0; i < f.Len(); i += 17 {
				if got, err := f.Pixels(i); err != nil || int(got[2])+int(got[1])<<8 != film.Shot(i).State {
					return fmt.Errorf("frame %d shows %d: %v", i, got[2], err)
				}
			}
			return nil
		},
	}
	for _, frames := range []visual.Frames{film, rowFilm{film, 1}} {
		if err := each(frames, 0, film.Len(), walks); err != nil {
			t.Error(err)
		}
	}
	walks = append(walks, func(visual.Frames) error { return errEarly })
	if err := each(film, 0, film.Len(), walks); !errors.Is(err, errEarly) {
		t.Errorf("a walk that fails: %v", err)
	}
	film.Fail = 150
	if err := each(film, 0, film.Len(), []func(visual.Frames) error{walks[0], walks[0]}); err == nil {
		t.Error("a frame that cannot be read: no error")
	}
}
