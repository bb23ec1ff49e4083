package visual

import (
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var peerDir = flag.String("peer", "", "write the films of the peer test as PNG files below this folder (see testdata/peers.md)")

// TestWriteForPeers writes what the peers are to be run on.
func TestWriteForPeers(t *testing.T) {
	if *peerDir == "" {
		return
	}
	for _, p := range peerFilms() {
		dir := filepath.Join(*peerDir, p.name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		m := p.film()
		for i := range m.pix {
			if i > 0 && len(m.infos[i].Changed) == 0 {
				continue
			}
			img := image.NewRGBA(m.format.Bounds())
			for k, c := range codes(m.format, m.pix[i]) {
				img.SetRGBA(k%m.format.Width, k/m.format.Width, color.RGBA{uint8(c >> 16), uint8(c >> 8), uint8(c), 255})
			}
			ms := m.infos[i].Time.Sub(m.infos[0].Time).Milliseconds()
			f, err := os.Create(filepath.Join(dir, fmt.Sprintf("ms_%06d.png", ms)))
			if err != nil {
				t.Fatal(err)
			}
			if err := png.Encode(f, opaque{img}); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPeers: the same frames, the same numbers.
func TestPeers(t *testing.T) {
	type numbers struct {
		Name       string
		First      float64   `json:"bt First Visual Change"`
		Last       float64   `json:"bt Last Visual Change"`
		SI         float64   `json:"bt Speed Index"`
		Perceptual float64   `json:"bt Perceptual Speed Index"`
		Contentful float64   `json:"bt Contentful Speed Index"`
		Progress   string    `json:"bt Visual Progress"`
		WPT        float64   `json:"wpo Speed Index"`
		WPTProg    string    `json:"wpo Visual Progress"`
		SSIM       []float64 `json:"ssim"`
		Edges      []int     `json:"edges"`
	}
	text, err := os.ReadFile("testdata/peers.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []numbers
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	want := map[string]numbers{}
	for _, n := range all {
		want[n.Name] = n
	}
	for _, p := range peerFilms() {
		t.Run(p.name, func(t *testing.T) {
			m := p.film()
			r, err := Analyze(m, Options{Also: WPT | Perceptual | Contentful})
			if err != nil {
				t.Fatal(err)
			}
			got := numbers{Name: p.name, SI: r.SpeedIndex, WPT: r.SpeedIndexWPT, Perceptual: r.PerceptualIndex,
				Contentful: r.ContentfulIndex,
				First:      math.Floor(r.Times[r.FirstChange]), Last: math.Floor(r.Times[r.LastChange])}
			var progress, wpt []string
			var similar *ssim
			size := m.format.Bounds().Size()
			e := newEdges(size)
			similar = newSSIM(codes(m.format, m.pix[len(m.pix)-1]), size)
			all := make([]span, size.Y)
			everything(all, size.X)
			for i := range r.Times {
				if i > 0 && r.Changed[i] == 0 {
					continue
				}
				progress = append(progress, fmt.Sprintf("%.0f=%.0f", math.Floor(r.Times[i]), r.Progress[i]))
				wpt = append(wpt, fmt.Sprint(r.ProgressWPT[i]))
				picture := codes(m.format, m.pix[i])
				got.SSIM = append(got.SSIM, similar.index(picture, all))
				got.Edges = append(got.Edges, e.count(picture, all))
			}
			got.Progress, got.WPTProg = strings.Join(progress, ", "), strings.Join(wpt, " ")
			if d := cmp.Diff(want[p.name], got, cmpopts.EquateApprox(0, 1e-12)); d != "" {
				t.Error("-peers +ours\n", d)
			}
		})
	}
}

// opaque lets the encoder write RGB without alpha.
type opaque struct{ *image.RGBA }

func (opaque) Opaque() bool { return true }

type peerFilm struct {
	name string
	film func() *film
}

func peerFilms() []peerFilm {
	return []peerFilm{
		{"small", func() *film { return pageLoad(bgrx(64, 48), 40, 1) }},
		{"wide", func() *film { return pageLoad(bgrx(400, 225), 60, 2) }},
		{"tall", func() *film { return pageLoad(bgrx(150, 333), 90, 3) }},
		{"tiny", func() *film { return pageLoad(bgrx(9, 7), 30, 4) }},
	}
}
