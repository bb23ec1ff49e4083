// Command render draws the sample shop's pictures from shop.txt, so that nobody else holds rights to them:
//
//	go run ./internal/rigs/samplesite/render -out internal/rigs/samplesite/assets/img
//
// A thing is a stack of turned shapes, rods and hoops, lit from the upper left. Grain like that of a photograph is
// added until a file has the size that shop.txt lists, so that the page has the weight of a real shop's. WebP needs
// cwebp.
package main

import (
	"bytes"
	_ "embed" // shop.txt
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

//go:embed shop.txt
var shop string

func main() {
	out := flag.String("out", ".", "folder for the pictures")
	flag.Parse()
	things := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(shop), "\n") {
		head, rest, _ := strings.Cut(line, ":")
		p := picture{}
		if n, _ := fmt.Sscan(head, &p.name, &p.w, &p.h, &p.size, &p.tall); n < 5 {
			things[p.name] = rest
			continue
		}
		for _, text := range strings.Split(rest, "|") {
			var name string
			var given part
			fmt.Sscanf(text, "%s %x %g %g %g", &name, &given.colour, &given.x, &given.y, &given.scale)
			p.add(given, things[name])
		}
		if err := os.WriteFile(filepath.Join(*out, p.name), p.file(), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

type picture struct {
	name       string
	w, h, size int     // pixels, pixels, bytes
	tall       float64 // height of the visible area, in the units of the things
	parts      []part  // from back to front; the first is the wall, of which only the colour is used
}

type part struct {
	kind        string
	colour      int
	x, y, scale float64
	n           []float64
}

// add adds a thing's parts to the picture; parts without a colour get the given one.
func (p *picture) add(given part, parts string) {
	for _, text := range strings.Split(parts, ",") {
		q, words := given, strings.Fields(text)
		q.kind = words[0]
		if words[1] != "-" {
			fmt.Sscanf(words[1], "%x", &q.colour)
		}
		for _, word := range words[2:] {
			var v float64
			fmt.Sscan(word, &v)
			q.n = append(q.n, v)
		}
		p.parts = append(p.parts, q)
	}
}

// outline returns how far a point is from the edge, negative inside; how far it is from the side, which bends away from
// the viewer; and how far from the side the surface faces the viewer.
func (p part) outline(x, y float64) (edge, side, bend float64) {
	n, x, y := p.n, (x-p.x)/p.scale, (y-p.y)/p.scale
	low, high := math.Inf(-1), math.Inf(1) // bounds of a thing with flat ends
	switch p.kind {
	case "turned": // bottom, top, radii at even steps between, joined by a Catmull-Rom spline
		low, high = n[0], n[1]
		radii := n[2:]
		at := min(max((y-low)/(high-low), 0), 0.9999) * float64(len(radii)-1)
		i, t := int(at), at-math.Floor(at)
		a, b, c, d := radii[max(i-1, 0)], radii[i], radii[i+1], radii[min(i+2, len(radii)-1)]
		bend = b + t/2*(c-a+t*(2*a-5*b+4*c-d+t*(3*b-a-3*c+d)))
		side = math.Abs(x) - bend
	case "rod": // from, to, radius, bend
		dx, dy := n[2]-n[0], n[3]-n[1]
		t := min(max(((x-n[0])*dx+(y-n[1])*dy)/(dx*dx+dy*dy+1e-9), 0), 1)
		side, bend = math.Hypot(x-n[0]-t*dx, y-n[1]-t*dy)-n[4], n[5]
	case "hoop": // middle, radius, half its width
		side, bend = math.Abs(math.Hypot(x-n[0], y-n[1])-n[2])-n[3], n[3]
	}
	return max(side, low-y, y-high) * p.scale, side * p.scale, bend * p.scale
}

// draw returns red, green and blue of 0 … 255, rows from the top.
func (p picture) draw() (light [][3]float64) {
	unit := p.tall / float64(p.h)
	for i := range p.w * p.h {
		x, y := (float64(i%p.w-p.w/2)+0.5)*unit, 0.84*p.tall-(float64(i/p.w)+0.5)*unit
		shade := 1.08 - 0.16*math.Hypot(x+p.tall/2, y-p.tall)/p.tall - 0.1/(1+math.Exp(30*y/p.tall))
		for _, q := range p.parts[1:] { // a soft shadow on the floor
			d, _, _ := q.outline(x-0.1*p.tall, max(4*y, y)+0.1*p.tall)
			shade = min(shade, 1.02-0.3/(1+math.Exp(26*d/p.tall)))
		}
		c := [3]float64{}
		paint(&c, p.parts[0].colour, 1, shade, 0)
		for _, q := range p.parts[1:] {
			d, side, bend := q.outline(x, y)
			_, right, _ := q.outline(x+unit, y)
			_, above, _ := q.outline(x, y+unit)
			nx, ny := (right-side)/unit, (above-side)/unit
			tilt := min(max(1+side/bend, 0), 1) / max(math.Hypot(nx, ny), 1) // 0 in the middle of a thing, 1 at its side
			nx, ny = nx*tilt, ny*tilt
			facing := max(0.67*math.Sqrt(max(1-nx*nx-ny*ny, 0))-0.5*nx+0.5*ny, 0)
			paint(&c, q.colour, min(max(0.5-d/unit, 0), 1), 0.45+0.7*facing, 150*math.Pow(facing, 50))
		}
		light = append(light, c)
	}
	return light
}

func paint(c *[3]float64, colour int, cover, bright, shine float64) {
	for k := range c {
		c[k] += cover * (float64(colour>>(16-8*k)&255)*bright + shine - c[k])
	}
}

// file encodes the picture with the least grain that reaches its size.
func (p picture) file() (content []byte) {
	light := p.draw()
	grained := func(grain int) bool {
		random, img := rand.New(rand.NewPCG(1, 2)), image.NewRGBA(image.Rect(0, 0, p.w, p.h))
		for i, c := range light {
			n := float64(grain) / 16 * (random.Float64() + random.Float64() - 1)
			level := func(v float64) uint8 { return uint8(min(max(v+n, 0), 255)) }
			img.SetRGBA(i%p.w, i/p.w, color.RGBA{level(c[0]), level(c[1]), level(c[2]), 255})
		}
		content = encode(filepath.Ext(p.name), img)
		return len(content) >= p.size
	}
	grained(sort.Search(1<<10, grained))
	return content
}

func encode(ext string, img image.Image) []byte {
	var out bytes.Buffer
	err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, img)
	switch ext {
	case ".jpg":
		out.Reset()
		err = jpeg.Encode(&out, img, &jpeg.Options{Quality: 88})
	case ".webp":
		cwebp := exec.Command("cwebp", "-quiet", "-q", "86", "-o", "-", "--", "-")
		cwebp.Stdin = bytes.NewReader(out.Bytes())
		out.Reset()
		cwebp.Stdout = &out
		err = cwebp.Run()
	}
	if err != nil {
		log.Fatalf("encode as %s: %v (WebP needs Debian's package webp)", ext, err)
	}
	return out.Bytes()
}
