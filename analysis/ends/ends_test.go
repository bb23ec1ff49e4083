package ends

import (
	"image"
	"image/color"
	"strings"
	"testing"
	"time"

	"eidetic/analysis/find"
	"eidetic/analysis/visual"
	"eidetic/internal/lab"
)

var content = image.Rect(0, 10, 40, 30) // constant

// shot is a picture of the content with boxes of a colour on white.
func shot(colour uint32, boxes ...image.Rectangle) *visual.Picture {
	p := &visual.Picture{Area: content, Pix: make([]uint32, content.Dx()*content.Dy())}
	for i := range p.Pix {
		p.Pix[i] = 0xffffff
	}
	for _, b := range boxes {
		for y := b.Min.Y; y < b.Max.Y; y++ {
			for x := b.Min.X; x < b.Max.X; x++ {
				p.Pix[(y-content.Min.Y)*content.Dx()+x] = colour
			}
		}
	}
	return p
}

// seen is a picture at a time in ms.
type seen struct {
	at int
	p  *visual.Picture
}

func TestMet(t *testing.T) {
	button, caret := image.Rect(20, 15, 30, 25), image.Rect(2, 12, 3, 16)
	img := image.NewNRGBA(image.Rect(0, 0, 12, 12))
	for y := range 12 {
		for x := range 12 {
			c := color.NRGBA{255, 255, 255, 255}
			if image.Pt(x, y).In(image.Rect(1, 1, 11, 11)) {
				c = color.NRGBA{0, 0, 128, 255}
			}
			img.SetNRGBA(x, y, c)
		}
	}
	template, err := find.New(img)
	if err != nil {
		t.Fatal(err)
	}
	blue, white := shot(0x000080, button), shot(0)
	on := shot(0x000080, caret)
	film := []seen{{1020, blue}, {1040, white}, {1060, blue}}
	for _, c := range []struct {
		name, end string
		film      []seen
		masks     []image.Rectangle
		now       int
		network   Network
		done      []lab.Event
		since     int // 0 is not met
	}{
		{"still", "still 100ms", film, nil, 1160, Network{}, nil, 1060},
		{"not yet still", "still 100ms", film, nil, 1159, Network{}, nil, 0},
		{"still in frames", "still 6 frames", film, nil, 1160, Network{}, nil, 1060},
		{"still elsewhere", "still 100ms in 0,0,10,10", film, nil, 1100, Network{}, nil, 1000},
		{"changed", "changed", film, nil, 1070, Network{}, nil, 1060},
		{"changed and back", "changed", film[:2], nil, 1070, Network{}, nil, 0},
		{"picture", "picture b.png", film, nil, 1061, Network{}, nil, 1060},
		{"picture gone", "picture b.png", film[:2], nil, 1061, Network{}, nil, 0},
		{"picture not there", "picture b.png in 0,0,15,20", film, nil, 1061, Network{}, nil, 0},
		{"colour", "colour #000080 in 20,5,10,10", film[:1], nil, 1030, Network{}, nil, 1020},
		{"caret", "still 100ms", []seen{{1050, on}, {1100, white}, {1150, on}}, nil, 1200, Network{}, nil, 0},
		{"caret masked", "still 100ms", []seen{{1050, on}, {1100, white}, {1150, on}}, []image.Rectangle{caret}, 1200, Network{}, nil, 1000},
		{"network", "network 50ms", nil, nil, 1100, Network{Last: ms(1040)}, nil, 1040},
		{"network busy", "network 50ms", nil, nil, 1100, Network{InFlight: 1, Last: ms(1040)}, nil, 0},
		{"done", "done pay", nil, nil, 1100, Network{}, []lab.Event{{Detail: "pay", Earliest: ms(900), Latest: ms(900)}, {Detail: "pay", Earliest: ms(1080), Latest: ms(1080)}}, 1080},
		{"done of another", "done pay", nil, nil, 1100, Network{}, []lab.Event{{Detail: "cart", Earliest: ms(1080), Latest: ms(1080)}}, 0},
		{"both", "changed and network 20ms", film, nil, 1120, Network{Last: ms(1090)}, nil, 1090},
	} {
		ending, err := lab.ParseEnd(c.end)
		if err != nil {
			t.Fatal(err)
		}
		j, err := New(Config{Ending: ending, Content: content, Masks: c.masks, Templates: map[string]*find.Template{"b.png": template},
			Rate: 60, Since: ms(1000), First: white})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range c.film {
			j.Look(ms(s.at), s.p)
		}
		since, met := j.Met(ms(c.now), c.network, c.done)
		if met != (c.since > 0) || met && since != ms(c.since) {
			t.Errorf("%s: Met() = %v, %v; want %v", c.name, since, met, c.since)
		}
		if missing := j.Missing(ms(c.now), c.network, c.done); (missing == "") != met {
			t.Errorf("%s: Missing() = %q", c.name, missing)
		}
	}
}

func ms(v int) lab.Time { return lab.Time(time.Duration(v) * time.Millisecond) }

func TestNewRefuses(t *testing.T) {
	for end, say := range map[string]string{"picture x.png": "was not read", "still 1s in 0,0,5,5": "left by the masks"} {
		ending, err := lab.ParseEnd(end)
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(Config{Ending: ending, Content: content, Masks: []image.Rectangle{image.Rect(0, 10, 10, 20)}, Rate: 60, First: shot(0)})
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("New(%s) = %v; want %q", end, err, say)
		}
	}
}
