package visual

import (
	"crypto/sha256"
	"encoding/hex"
	"image"
	"image/color"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"eidetic/internal/lab"
)

var approx = cmpopts.EquateApprox(0, 1e-5)

// TestByHand follows a load of 4×4 pixels with pencil and paper.
//
//	frame   0      1      2          3          4
//	shows   white  white  top black  all black  all black
func TestByHand(t *testing.T) {
	f := bgrx(4, 4)
	w := canvas(f, white)
	half := paint(f, canvas(f, white), image.Rect(0, 0, 4, 2), black)
	b := canvas(f, black)
	r, err := Analyze(newFilm(f, w, w, half, b, b), Options{})
	if err != nil {
		t.Fatal(err)
	}
	tick := 1000.0 / 60
	sum := sha256.Sum256(b)
	want := &Result{
		Format: f, Content: f.Bounds(), Start: 0, End: 5, Baseline: BaselineStart,
		Origin:        lab.Event{Name: "start frame", Earliest: lab.Time(time.Second), Latest: lab.Time(time.Second)},
		Times:         []float64{0, tick, 2 * tick, 3 * tick, 4 * tick},
		LoadHistogram: []float64{0, 0, 50, 100, 100},
		Progress:      []float64{0, 0, 50, 100, 100},
		Changed:       []int{0, 0, 8, 8, 0},
		LumaChanged:   []int{0, 0, 8, 8, 0},
		Heat: Heat{f.Bounds(), []uint16{
			1, 1, 1, 1,
			1, 1, 1, 1,
			1, 1, 1, 1,
			1, 1, 1, 1}},
		FinalSHA256: hex.EncodeToString(sum[:]),
		Ground:      0,
		FirstChange: 2, FirstContent: 2, LastChange: 3, Stable: 0, Unique: 2,
		// Times floored are 0 16 33 49 66: 16 + 17 + 16 · ½ = 41.
		SpeedIndex: 41,
		Complete:   map[int]int{85: 3, 95: 3, 99: 3},
	}
	if d := cmp.Diff(want, r, approx, cmpopts.IgnoreUnexported(Result{})); d != "" {
		t.Error("-want +got\n", d)
	}
}

// TestRules takes each rule where it tips over.
func TestRules(t *testing.T) {
	f := bgrx(100, 100)
	base := canvas(f, grey)
	with := func(r image.Rectangle, c color.RGBA) []byte { return paint(f, append([]byte(nil), base...), r, c) }
	dimmer := color.RGBA{96, 96, 96, 255} // luma 4 below grey
	darker := color.RGBA{95, 95, 95, 255} // luma 5 below
	tests := []struct {
		name   string
		frames [][]byte
		o      Options
		stable int
		unique int
		first  int
		last   int
	}{
		{"4096 pixels leave a frame stable", [][]byte{base, with(image.Rect(0, 0, 64, 64), black), base}, Options{}, 0, 2, 1, 2},
		{"4097 do not", [][]byte{base, base, paint(f, with(image.Rect(0, 0, 64, 64), black), image.Rect(90, 90, 91, 91), black),
			with(image.Rect(0, 0, 64, 64), black)}, Options{}, 3, 2, 2, 3},
		{"a step of 4 is no change of luma", [][]byte{base, canvas(f, dimmer), canvas(f, dimmer)}, Options{}, 0, 1, 1, 1},
		{"a step of 5 is one", [][]byte{base, canvas(f, darker), canvas(f, darker)}, Options{}, 2, 1, 1, 1},
		{"never stable", [][]byte{base, canvas(f, black)}, Options{}, -1, 1, 1, 1},
		{"nothing happens", [][]byte{base, base, base}, Options{}, 0, 0, -1, -1},
		{"Eideticker's threshold of uniqueness", [][]byte{base, with(image.Rect(0, 0, 2, 1), black),
			with(image.Rect(0, 0, 64, 64), black)}, Options{UniquePixels: 2048}, 0, 1, 1, 2},
		{"one frame", [][]byte{base}, Options{}, 0, 0, -1, -1},
		{"what is ignored does not count", [][]byte{base, with(image.Rect(10, 10, 12, 20), black), base},
			Options{Ignore: []image.Rectangle{image.Rect(5, 5, 30, 30)}}, 0, 0, -1, -1},
		{"start and end", [][]byte{canvas(f, white), base, base, with(image.Rect(0, 0, 1, 1), black), canvas(f, white)},
			Options{Start: 1, End: 4}, 1, 1, 3, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Analyze(newFilm(f, tt.frames...), tt.o)
			if err != nil {
				t.Fatal(err)
			}
			got := [4]int{r.Stable, r.Unique, r.FirstChange, r.LastChange}
			if want := [4]int{tt.stable, tt.unique, tt.first, tt.last}; got != want {
				t.Errorf("stable, unique, first, last = %v, want %v", got, want)
			}
			if got := r.LoadHistogram[len(r.LoadHistogram)-1]; got != 100 {
				t.Errorf("the load histogram ends at %v %%", got)
			}
		})
	}
}

// TestGreenStart: blanking the green page is a visual change, but no progress.
func TestGreenStart(t *testing.T) {
	f := bgrx(40, 40)
	green := canvas(f, lab.SyncGreen())
	page := paint(f, canvas(f, white), image.Rect(0, 0, 40, 10), grey)
	m := newFilm(f, green, green, canvas(f, white), page, page)
	r, err := Analyze(m, Options{Start: 1})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]float64{0, 0, 100, 100}, r.Progress); d != "" {
		t.Error("progress\n", d)
	}
	if r.Baseline != BaselineWhite || r.FirstChange != 2 || r.FirstContent != 3 {
		t.Errorf("baseline %v, first change %d, first content %d", r.Baseline, r.FirstChange, r.FirstContent)
	}
	r, err = Analyze(m, Options{Start: 1, Baseline: BaselineStart})
	if err != nil {
		t.Fatal(err)
	}
	if r.Progress[1] < 50 {
		t.Errorf("from the green page itself blanking is %v %%, at least half was expected", r.Progress[1])
	}
}

// TestBounds: a number says between which instants its change happened.
func TestBounds(t *testing.T) {
	f := bgrx(8, 8)
	m := newFilm(f, canvas(f, white), canvas(f, white), canvas(f, black), canvas(f, black))
	for i := range m.infos {
		m.infos[i].Uncertainty = 2 * time.Millisecond
	}
	start := m.infos[0].Time
	r, err := Analyze(m, Options{Origin: lab.Event{Name: "key", Earliest: start.Add(3e6), Latest: start.Add(5e6)}})
	if err != nil {
		t.Fatal(err)
	}
	tick := 1000.0 / 60
	for _, got := range r.Measurements() {
		if got.Method == "" || got.Unit == "" || len(got.Frames) == 0 {
			t.Errorf("%s: method %q, unit %q, frames %v", got.Name, got.Method, got.Unit, got.Frames)
		}
		if got.Name != "first_visual_change_ms" {
			continue
		}
		want := []float64{2*tick - 4, tick - 2 - 5, 2*tick - 3}
		if d := cmp.Diff(want, []float64{got.Value, *got.Low, *got.High}, cmpopts.EquateApprox(0, 1e-5)); d != "" {
			t.Error("value, low, high\n", d)
		}
		if d := cmp.Diff([]int{1, 2}, got.Frames); d != "" {
			t.Error("frames\n", d)
		}
	}
}

func TestUniqueRate(t *testing.T) {
	f := bgrx(8, 8)
	frames := [][]byte{canvas(f, white), canvas(f, white)}
	for i := range 31 { // changes at frames 2, 4, … 62: 30 frames a second
		frames = append(frames, canvas(f, color.RGBA{uint8(i), 0, 0, 255}), canvas(f, color.RGBA{uint8(i), 0, 0, 255}))
	}
	frames = append(frames, frames[len(frames)-1], frames[len(frames)-1])
	r, err := Analyze(newFilm(f, frames...), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if rate, ok := r.UniqueRate(); !ok || math.Abs(rate-30) > 1e-4 {
		t.Errorf("unique rate %v, %v: want 30", rate, ok)
	}
}

// TestFrugal: analysis reads the final frame, then forward, and only what changed.
func TestFrugal(t *testing.T) {
	f := bgrx(16, 16)
	frames := [][]byte{}
	for i := range 100 {
		frames = append(frames, canvas(f, color.RGBA{uint8(i / 25), 0, 0, 255}))
	}
	m := newFilm(f, frames...)
	if _, err := Analyze(m, Options{}); err != nil {
		t.Fatal(err)
	}
	// The final frame, the start frame, three changes.
	if m.decoded != 5 || m.back != 1 {
		t.Errorf("%d frames decoded, %d times backwards: want 5 and 1", m.decoded, m.back)
	}
}

func TestErrors(t *testing.T) {
	f := bgrx(8, 8)
	m := newFilm(f, canvas(f, white), canvas(f, black), canvas(f, white))
	lying := newFilm(f, canvas(f, white), canvas(f, black))
	lying.infos[1].Changed = []image.Rectangle{image.Rect(0, 0, 2, 2)}
	short := newFilm(f, canvas(f, white), canvas(f, black))
	short.pix[1] = short.pix[1][:100]
	broken := newFilm(f, canvas(f, white), canvas(f, black), canvas(f, white))
	broken.fail = 1
	jpeg := &film{format: lab.Format{Pixels: lab.MJPEG, Width: 8, Height: 8, Rate: 30}, pix: [][]byte{{1}}, infos: make([]lab.FrameInfo, 1)}
	odd := &film{format: lab.Format{Pixels: lab.YUYV, Width: 7, Height: 8, Rate: 30}, pix: [][]byte{{1}}, infos: make([]lab.FrameInfo, 1)}
	tests := []struct {
		name string
		m    *film
		o    Options
		want string
	}{
		{"no frames", newFilm(f), Options{}, "recording of 0"},
		{"start after end", m, Options{Start: 2, End: 2}, "start must be before end"},
		{"negative start", m, Options{Start: -1}, "start must be before end"},
		{"end outside", m, Options{End: 4}, "recording of 3"},
		{"content outside", m, Options{Content: image.Rect(0, 0, 9, 8)}, "not inside the frame"},
		{"everything ignored", m, Options{Ignore: []image.Rectangle{f.Bounds()}}, "cover the whole"},
		{"origin turned round", m, Options{Origin: lab.Event{Name: "key", Earliest: 2, Latest: 1}}, `origin "key"`},
		{"wrong changed regions", lying, Options{}, "appliance reel verify"},
		{"short frame", short, Options{}, "frame 1: frame holds 100 bytes"},
		{"unreadable frame", broken, Options{}, "frame 1: block 7"},
		{"compressed frames", jpeg, Options{}, "decode them first"},
		{"odd width", odd, Options{}, "must be even"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Analyze(tt.m, tt.o)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestLost(t *testing.T) {
	f := bgrx(8, 8)
	m := newFilm(f, canvas(f, white), canvas(f, black), canvas(f, white))
	m.infos[2].Seq += 3
	r, err := Analyze(m, Options{})
	if err != nil || r.Lost != 3 {
		t.Errorf("lost %d (%v), want 3", r.Lost, err)
	}
}

// TestRemnantOfTheSyncPage: a strip that the browser takes away a frame later is no content, in whatever colour the
// page is.
func TestRemnantOfTheSyncPage(t *testing.T) {
	f := bgrx(40, 40)
	for _, sync := range []color.RGBA{{}, SyncOrange(), {R: 20, G: 40, B: 200, A: 255}} {
		colour := sync
		if colour == (color.RGBA{}) {
			colour = lab.SyncGreen()
		}
		strip := paint(f, canvas(f, white), image.Rect(0, 36, 40, 40), colour)
		page := paint(f, canvas(f, white), image.Rect(0, 0, 40, 10), grey)
		r, err := Analyze(newFilm(f, canvas(f, colour), strip, canvas(f, white), page, page), Options{Sync: sync})
		if err != nil {
			t.Fatal(err)
		}
		if r.Baseline != BaselineWhite || r.FirstContent != 3 {
			t.Errorf("%v: baseline %v, first content in frame %d; want a white page and 3", colour, r.Baseline, r.FirstContent)
		}
		r, err = Analyze(newFilm(f, canvas(f, white), strip, page, page), Options{Sync: sync})
		if err != nil {
			t.Fatal(err)
		}
		if r.FirstContent != 1 {
			t.Errorf("%v: without a page to synchronise, first content in frame %d; want the strip's, 1", colour, r.FirstContent)
		}
	}
}

// TestMeanFirstChange: each pixel counts by when it changed first; what changes again, and what never does, counts for
// nothing. In the mean of the changes each of them counts, over all pixels.
func TestMeanFirstChange(t *testing.T) {
	f := bgrx(10, 10)
	white := canvas(f, color.RGBA{255, 255, 255, 255})
	part := func(pix []byte, r image.Rectangle, c color.RGBA) []byte { return paint(f, slices.Clone(pix), r, c) }
	first := part(white, image.Rect(0, 0, 10, 2), color.RGBA{A: 255})
	second := part(first, image.Rect(0, 2, 10, 8), color.RGBA{B: 255, A: 255})
	third := part(second, image.Rect(0, 0, 10, 2), color.RGBA{G: 255, A: 255})
	r, err := Analyze(newFilm(f, white, first, second, second, third), Options{Also: Completeness})
	if err != nil {
		t.Fatal(err)
	}
	got := lab.Values(r.Measurements())
	for name, want := range map[string]float64{"mean_first_change_ms": (20*1 + 60*2) / 80.0 * 1000 / 60, "mean_changes": (20*2 + 60*1) / 100.0} {
		if v, ok := got[name]; !ok || math.Abs(v-want) > 0.01 {
			t.Errorf("%s = %.3f, %v; want %.3f", name, v, ok, want)
		}
	}
}
