package scene

import (
	"image"
	"image/color"
	"math/rand/v2"
	"strings"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

const words = "the page that was asked for begins to show when its first bytes have come and been laid out so a reader sees " +
	"a heading then a paragraph and at last the pictures which need the most time on a slow link of a telephone in a train"

// newPage draws a page of a shop or a newspaper as BGRX: a dark header,
// columns of anti-aliased text, cards with pictures, and much white.
func newPage(width, height int) []byte {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(img, img.Rect, image.White, image.Point{}, draw.Src)
	text, title := face(goregular.TTF, 16), face(gobold.TTF, 26)
	random := rand.New(rand.NewPCG(7, 8))
	vocabulary := strings.Fields(words)
	sentence := func(n int) string {
		s := make([]string, n)
		for i := range s {
			s[i] = vocabulary[random.IntN(len(vocabulary))]
		}
		return strings.Join(s, " ")
	}
	draw.Draw(img, image.Rect(0, 0, width, 80), image.NewUniform(color.RGBA{30, 40, 70, 255}), image.Point{}, draw.Src)
	write(img, title, 40, 50, color.White, sentence(6))
	ink := color.RGBA{30, 30, 30, 255}
	for y := 120; y < height; y += 420 {
		write(img, title, 40, y, ink, sentence(7))
		for line := range 14 {
			write(img, text, 40, y+36+24*line, ink, sentence(8))
		}
		for card := range 3 {
			x := width*2/5 + card*width/5
			r := image.Rect(x, y, x+width/6, y+240)
			photo(img, r, random.Uint64())
			write(img, text, x, y+270, color.RGBA{0, 90, 180, 255}, sentence(4))
			draw.Draw(img, image.Rect(x, y+290, x+120, y+326), image.NewUniform(color.RGBA{220, 60, 40, 255}), image.Point{}, draw.Src)
			write(img, text, x+16, y+314, color.White, sentence(1))
		}
	}
	for i := 0; i < len(img.Pix); i += 4 {
		p := img.Pix[i : i+4]
		p[0], p[2], p[3] = p[2], p[0], 0
	}
	return img.Pix
}

// face loads one of the Go fonts, which are part of the module.
func face(ttf []byte, size float64) font.Face {
	f, err := opentype.Parse(ttf)
	if err != nil {
		panic("scene: a font of the module cannot be read: " + err.Error())
	}
	made, err := opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72})
	if err != nil {
		panic("scene: a font of the module cannot be used: " + err.Error())
	}
	return made
}

func write(img *image.RGBA, f font.Face, x, y int, c color.Color, s string) {
	d := font.Drawer{Dst: img, Src: image.NewUniform(c), Face: f, Dot: fixed.P(x, y)}
	d.DrawString(s)
}

// photo draws a smooth picture with some texture.
func photo(img *image.RGBA, r image.Rectangle, seed uint64) {
	n := newNoise(seed)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			red, green, blue := n.colour(float64(x-r.Min.X), float64(y-r.Min.Y))
			img.SetRGBA(x, y, color.RGBA{red, green, blue, 255})
		}
	}
}
