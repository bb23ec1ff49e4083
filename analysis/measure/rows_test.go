package measure

import (
	"bytes"
	"image"
	"reflect"
	"slices"
	"testing"

	"eidetic/analysis/filmtest"
	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// rowFilm gives a film's frames as rows, and tells which rows stood in the frame before, scrolled by a multiple of
// step.
type rowFilm struct {
	*filmtest.Film
	step int
}

// Rows implements visual.RowFrames.
func (f rowFilm) Rows(i int) (rows [][]byte, moves []lab.Move, err error) {
	read := func(i int) [][]byte {
		pix, e := f.Film.Pixels(i)
		if e != nil {
			err = e
		}
		return slices.Collect(slices.Chunk(bytes.Clone(pix), f.Format().Stride()))
	}
	rows = read(i)
	if i == 0 {
		return rows, nil, err
	}
	old := read(i - 1)
	for y := range rows {
		for _, by := range []int{f.step, 0, 2 * f.step} {
			if from := y + by; from < len(old) && bytes.Equal(rows[y], old[from]) {
				moves = append(moves, lab.Move{R: image.Rect(0, y, f.Format().Width, y+1), DY: by})
				rows[y] = old[from]
				break
			}
		}
	}
	return rows, moves, err
}

// TestRowsAreEqual: everything that is measured of a recording with rows is what is measured of it in one piece, of a
// page that scrolls under a header, by even and by uneven steps, with torn frames, repeated ones, and a part that is
// blank before it is drawn; one group alone, and all together.
func TestRowsAreEqual(t *testing.T) {
	const w, h, step = 160, 128, 4
	page := filmtest.NewPage(w, 2000, 5)
	scene := func(pix []byte, n int) {
		page.Show(pix, w, h, 0, n*step)
		if n%30 < 3 {
			filmtest.Fill(pix, w, image.Rect(40, 80, 140, 112), 255, 255, 255)
		}
		filmtest.Fill(pix, w, image.Rect(0, 0, w, 16), 20, 60, 120)
	}
	shots := filmtest.Beat(70, 60, 50, 0.3)
	for i := 20; i < len(shots)-3; i += 17 {
		shots[i].Bands = []filmtest.Band{{Row: 60, State: shots[i].State + 1}}
	}
	plain := filmtest.New(w, h, 60, scene, shots)
	groups := []string{metric.Rate, metric.Motion, metric.Blank, metric.Tearing, metric.Stable, metric.Window, metric.Shift, metric.Colours}
	for _, asked := range [][]string{{metric.Motion}, groups} {
		for _, o := range []Options{
			{}, {Curves: true, Tolerance: visual.Tolerance{2, 2, 2}}, {Start: 30, End: 60, Content: image.Rect(16, 8, 152, 120)},
		} {
			o.Groups = asked
			want, err := Run(plain, o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Run(rowFilm{plain, step}, o)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%v from frame %d on: of rows %+v\nin one piece %+v", asked, o.Start, got.Numbers, want.Numbers)
			}
			if slices.Equal(asked, []string{metric.Motion}) && o.Start == 0 && len(got.Numbers) == 0 {
				t.Error("nothing was measured")
			}
		}
	}
}

// TestStripIsNoMovement: a strip at the edge that is ignored, as that of frame codes, is no movement, and hides none; a
// large area is not cut off for it.
func TestStripIsNoMovement(t *testing.T) {
	const w, h = 240, 200
	page := filmtest.NewPage(w, 2000, 5)
	strip := image.Rect(0, 0, 160, 4)
	film := filmtest.New(w, h, 60, func(pix []byte, n int) {
		page.Show(pix, w, h, 0, 5*min(n, 20))
		filmtest.Fill(pix, w, strip, uint8(n*97), uint8(n*61), uint8(n*29))
	}, filmtest.Beat(60, 60, 60, 0))
	r, err := Run(film, Options{Groups: []string{metric.Motion, metric.Tearing}, Ignore: []image.Rectangle{strip, image.Rect(100, 0, w, 90)}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Settings["area of movement and tears"], "240x196+0+4"; got != want {
		t.Errorf("looked at %q, want %q", got, want)
	}
	for _, n := range r.Numbers {
		if want, ok := map[string]float64{"movement_frames": 20, "movement_y_px": -100, "torn_frames": 0}[n.Name]; ok && n.Value != want {
			t.Errorf("%s is %v, want %v", n.Name, n.Value, want)
		}
	}
	if len(r.Notes) > 0 {
		t.Errorf("notes: %q", r.Notes)
	}
}
