package visual

import (
	"errors"
	"image"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"eidetic/internal/lab"
)

// TestEndPage: a load that ends on the red page is measured as the same load
// without it.
func TestEndPage(t *testing.T) {
	f := bgrx(40, 40)
	green, red := canvas(f, lab.SyncGreen()), canvas(f, lab.SyncRed())
	head := paint(f, canvas(f, white), image.Rect(0, 0, 40, 10), grey)
	page := paint(f, append([]byte(nil), head...), image.Rect(0, 20, 40, 40), black)
	sale := paint(f, append([]byte(nil), page...), image.Rect(0, 20, 40, 22), lab.SyncRed()) // a red banner, 1/20 of the page
	torn := paint(f, append([]byte(nil), page...), image.Rect(0, 0, 40, 15), lab.SyncRed())  // half painted
	pointer := paint(f, append([]byte(nil), red...), image.Rect(20, 20, 22, 24), black)
	load := [][]byte{green, green, canvas(f, white), head, page, page}
	for _, tt := range []struct {
		name string
		page [][]byte // what the screen shows before the end page
		end  [][]byte
	}{
		{"one frame", load, [][]byte{red}},
		{"many frames", load, [][]byte{red, red, red}},
		{"a pointer on it", load, [][]byte{red, pointer, red}},
		{"filmed while it was painted", load, [][]byte{torn, red}},
		{"red in the page itself", append(load[:len(load):len(load)], sale), [][]byte{red, red}},
		{"red earlier in the load", [][]byte{green, green, red, head, page}, [][]byte{red}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			frames := append(tt.page[:len(tt.page):len(tt.page)], tt.end...)
			o := Options{Start: 1, EndPage: lab.SyncRed(), Also: WPT | Perceptual | Contentful}
			got, err := Analyze(newFilm(f, frames...), o)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Analyze(newFilm(f, tt.page...), Options{Start: 1, Also: o.Also})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Result{})); d != "" {
				t.Error("-without the end page, +with it\n", d)
			}
		})
	}
}

// TestEndPageIsLookedForWhereAsked: without the option, or inside an area that is
// ignored, red is a colour like any other.
func TestEndPageIsLookedForWhereAsked(t *testing.T) {
	f := bgrx(40, 40)
	page, red := canvas(f, grey), canvas(f, lab.SyncRed())
	corner := paint(f, append([]byte(nil), red...), image.Rect(0, 0, 40, 4), black) // a clock that ticks
	for _, tt := range []struct {
		name   string
		frames [][]byte
		o      Options
		end    int
	}{
		{"not asked for", [][]byte{canvas(f, white), page, red}, Options{}, 3},
		{"asked for", [][]byte{canvas(f, white), page, red}, Options{EndPage: lab.SyncRed()}, 2},
		{"another final frame is named", [][]byte{canvas(f, white), page, red, page, red}, Options{End: 4, EndPage: lab.SyncRed()}, 4},
		{"a tenth is not red", [][]byte{canvas(f, white), page, corner}, Options{EndPage: lab.SyncRed()}, 3},
		{"that tenth is ignored", [][]byte{canvas(f, white), page, corner},
			Options{EndPage: lab.SyncRed(), Ignore: []image.Rectangle{image.Rect(0, 0, 40, 4)}}, 2},
		{"the content area alone is red", [][]byte{canvas(f, white), page, corner},
			Options{EndPage: lab.SyncRed(), Content: image.Rect(0, 4, 40, 40)}, 2},
		{"nothing changes", [][]byte{page, page, page}, Options{EndPage: lab.SyncRed()}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Analyze(newFilm(f, tt.frames...), tt.o)
			if err != nil || r.End != tt.end {
				t.Errorf("Analyze() ends at frame %d, %v; want %d", r.End, err, tt.end)
			}
		})
	}
	_, err := Analyze(newFilm(f, canvas(f, lab.SyncGreen()), red, red), Options{EndPage: lab.SyncRed()})
	if !errors.Is(err, ErrNoContent) {
		t.Errorf("a load of nothing but the end page: error %v, want %v", err, ErrNoContent)
	}
}

// TestShows: a picture is of one colour in every format, but for a pointer.
func TestShows(t *testing.T) {
	f := bgrx(320, 240)
	green := canvas(f, lab.SyncGreen())
	pointer := paint(f, append([]byte(nil), green...), image.Rect(100, 100, 112, 119), black)
	strip := paint(f, append([]byte(nil), green...), image.Rect(0, 0, 320, 16), black)
	yuyv := lab.Format{Pixels: lab.YUYV, Width: 320, Height: 240, Rate: 60}
	greenYUYV := make([]byte, 0, yuyv.FrameSize())
	for len(greenYUYV) < yuyv.FrameSize() {
		greenYUYV = append(greenYUYV, 145, 54, 145, 34) // BT.601, limited range
	}
	for _, tt := range []struct {
		name string
		f    lab.Format
		pix  []byte
		want bool
	}{
		{"green", f, green, true},
		{"a pointer", f, pointer, true},
		{"a strip of another colour", f, strip, false},
		{"red", f, canvas(f, lab.SyncRed()), false},
		{"a grabber's green", yuyv, greenYUYV, true},
		{"a picture that was cut off", f, green[:1000], false},
		{"compressed", lab.Format{Pixels: lab.MJPEG, Width: 320, Height: 240, Rate: 60}, green, false},
	} {
		if got := ShowsIn(tt.f, tt.pix, tt.f.Bounds(), lab.SyncGreen()); got != tt.want {
			t.Errorf("%s: ShowsIn() = %v, want %v", tt.name, got, tt.want)
		}
	}
}
