package mjpeg

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestEncode: pictures of any size and content are as near to what they show as those of image/jpeg, and take about as
// many bytes.
func TestEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quality := rapid.SampledFrom([]int{30, 75, 85, 100}).Draw(t, "quality")
		width, height := rapid.IntRange(1, 70).Draw(t, "width"), rapid.IntRange(1, 70).Draw(t, "height")
		content := rapid.SampledFrom([]string{"flat", "smooth", "text", "noise"}).Draw(t, "content")
		pix := drawn(content, width, height, rapid.Uint64().Draw(t, "seed"))
		e, err := NewEncoder(quality)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := e.Encode(pix, width)
		if err != nil {
			t.Fatal(err)
		}
		var theirs bytes.Buffer
		if err := jpeg.Encode(&theirs, rgba(pix, width), &jpeg.Options{Quality: quality}); err != nil {
			t.Fatal(err)
		}
		near, far := distance(t, ours, pix, width), distance(t, theirs.Bytes(), pix, width)
		if near > 1.1*far+2.5 { // a coefficient between two steps may go either way
			t.Errorf("the picture is %.2f from what it shows, that of image/jpeg %.2f", near, far)
		}
		if len(ours) > theirs.Len()*11/10+20 {
			t.Errorf("%d bytes; image/jpeg takes %d", len(ours), theirs.Len())
		}
	})
}

// TestEncodeRefuses: what is no picture is an error.
func TestEncodeRefuses(t *testing.T) {
	e, err := NewEncoder(85)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ pixels, width int }{{0, 1}, {4, 0}, {4, 3}, {4, -2}, {1 << 16, 1}, {1 << 16, 1 << 16}} {
		if _, err := e.Encode(make([]uint32, c.pixels), c.width); err == nil {
			t.Errorf("%d pixels in rows of %d have a JPEG", c.pixels, c.width)
		}
	}
}

func rgba(pix []uint32, width int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, width, len(pix)/width))
	for i, c := range pix {
		m.SetRGBA(i%width, i/width, color.RGBA{byte(c >> 16), byte(c >> 8), byte(c), 255})
	}
	return m
}

// distance is the root of the mean square by which a JPEG's pixels differ from those it shows.
func distance(t *rapid.T, code []byte, pix []uint32, width int) float64 {
	img, err := jpeg.Decode(bytes.NewReader(code))
	if err != nil {
		t.Fatal(err)
	}
	if want := image.Rect(0, 0, width, len(pix)/width); img.Bounds() != want {
		t.Fatalf("the JPEG's size is %v; want %v", img.Bounds(), want)
	}
	sum := 0.
	for i, c := range pix {
		r, g, b, _ := img.At(i%width, i/width).RGBA()
		for shift, v := range map[int]uint32{16: r, 8: g, 0: b} {
			d := float64(v>>8) - float64(c>>shift&0xff)
			sum += d * d
		}
	}
	return math.Sqrt(sum / float64(3*len(pix)))
}

// drawn is a picture of a kind.
func drawn(content string, width, height int, seed uint64) []uint32 {
	random := rand.New(rand.NewPCG(seed, 1))
	pix, first := make([]uint32, width*height), random.Uint32()&0xffffff
	for i := range pix {
		x, y := float64(i%width), float64(i/width)
		switch content {
		case "flat":
			pix[i] = first
		case "smooth":
			pix[i] = uint32(128+100*math.Sin(x/19))<<16 | uint32(128+100*math.Sin(y/23))<<8 | uint32(128+100*math.Sin((x+y)/31))
		case "text":
			pix[i] = 0xf8f8f8
			if random.IntN(3) == 0 {
				pix[i] = first
			}
		default:
			pix[i] = random.Uint32() & 0xffffff
		}
	}
	return pix
}

func BenchmarkEncode(b *testing.B) {
	const width, height = 1280, 720
	e, err := NewEncoder(85)
	if err != nil {
		b.Fatal(err)
	}
	for _, content := range []string{"smooth", "text", "noise"} {
		pix := drawn(content, width, height, 1)
		img := rgba(pix, width)
		b.Run(fmt.Sprintf("%s/ours", content), func(b *testing.B) {
			b.SetBytes(4 * width * height)
			for b.Loop() {
				if _, err := e.Encode(pix, width); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%s/image-jpeg", content), func(b *testing.B) {
			b.SetBytes(4 * width * height)
			for b.Loop() {
				var out bytes.Buffer
				if err := jpeg.Encode(&out, img, &jpeg.Options{Quality: 85}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
