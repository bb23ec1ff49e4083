package service

import (
	"encoding/json"
	"fmt"
	"image"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jezek/xgb/xproto"
	"golang.org/x/sys/unix"

	"eidetic/analysis/stats"
	"eidetic/control/controltest"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

// BenchmarkLiveView measures how soon a picture of a device's screen is in a person's page, how many come a second, and
// what that costs the service: a number is drawn on the screen again and again, which a script reads on the page at each
// of the page's own frames.
func BenchmarkLiveView(b *testing.B) {
	for _, program := range [][]string{{"chromium"}, {"firefox-esr", "firefox"}} {
		for _, size := range []image.Point{{1280, 720}, {1920, 1080}} {
			for _, content := range []liveContent{{"typing", 12}, {"scrolls", 60}, {"video", 60}} {
				b.Run(fmt.Sprintf("%s/%s-%dx%d", program[0], content.name, size.X, size.Y), func(b *testing.B) {
					seeLive(b, testlab.NeedProgram(b, program...), size, content)
				})
			}
		}
	}
}

// liveContent is what a screen shows: a still page on which somebody types, one that scrolls, or a film; how often a
// second it changes.
type liveContent struct {
	name string
	rate int
}

// The number: its bits are squares.
const (
	liveBits   = 12
	liveSquare = 16
)

// sighting is a number that a page shows, and since when, in ms since 1970.
type sighting struct {
	N  int
	At float64
}

func seeLive(b *testing.B, program string, size image.Point, content liveContent) {
	if b.N == 1 { // the trial of a benchmark, which tells nothing
		return
	}
	xvfb := testlab.NeedProgram(b, "Xvfb")
	device := xtest.Start(b, xvfb, "-screen", "0", fmt.Sprintf("%dx%dx24", size.X, size.Y))
	person := xtest.Start(b, xvfb, "-screen", "0", "800x600x24")
	d := newLiveDrawing(b, controltest.NewWindow(b, device.Display), size, content)
	began, over, seen := make(chan bool, 1), make(chan bool), make(chan []sighting, 1)
	address, _ := probed(b, device.Display, fmt.Sprintf(`
		const bits = %d, square = %d, screen = $("screen"), seen = [];
		await until(() => screen.checkVisibility());
		const context = screen.getContext("2d");
		await say("began");
		let last = -1, over = false;
		say("wait").then(() => over = true);
		while (!over) {
			await frame();
			const { data } = context.getImageData(0, square / 2, bits * square, 1);
			let n = 0;
			for (let i = 0; i < bits; i++) n += (data[4 * (i * square + square / 2)] > 127) * 2 ** i;
			if (n !== last) seen.push({ N: last = n, At: performance.timeOrigin + performance.now() });
		}
		await say(JSON.stringify(seen));`, liveBits, liveSquare), func(text string) string {
		switch text {
		case "began":
			began <- true
		case "wait":
			<-over
		default:
			var all []sighting
			if err := json.Unmarshal([]byte(text), &all); err != nil {
				b.Errorf("the page says %q", text)
			}
			seen <- all
		}
		return ""
	})
	xtest.Browser(b, person.Display, program, address+"/device?name=desk")
	await := func(what string, c <-chan bool) {
		select {
		case <-c:
		case <-time.After(testlab.Hang):
			b.Fatal("never: ", what)
		}
	}
	await("the page shows the screen", began)
	d.draw(2 * content.rate) // the page settles
	from := len(d.drawn)
	b.ResetTimer()
	spent, since := processorTime(b), time.Now()
	d.draw(b.N * content.rate / liveMost)
	took := time.Since(since).Seconds()
	b.ReportMetric((processorTime(b)-spent).Seconds()/took, "cpu-s/s")
	b.StopTimer()
	close(over)
	all := <-seen
	var waits []float64
	for _, s := range all {
		if s.N >= from && s.N < len(d.drawn) {
			waits = append(waits, s.At-float64(d.drawn[s.N].UnixNano())/1e6)
		}
	}
	if len(waits) < 2 {
		b.Fatalf("the page showed %d pictures", len(waits))
	}
	slices.Sort(waits)
	b.ReportMetric(float64(len(waits))/took, "pictures/s")
	for _, q := range []float64{0.5, 0.9, 0.99} {
		b.ReportMetric(stats.Quantile(waits, q), fmt.Sprintf("ms-p%g", 100*q))
	}
	b.Log("ms from the screen to the page:" + histogram(waits))
}

// liveMost is how often a second the most lively content changes: the benchmark's time is counted in that.
const liveMost = 60

// processorTime is what this process has used: the service, and what little the drawing takes outside the X server.
func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// histogram counts waits in classes of 20 ms.
func histogram(waits []float64) string {
	counts := [7]int{}
	for _, w := range waits {
		counts[min(max(int(w/20), 0), len(counts)-1)]++
	}
	var text strings.Builder
	for i, n := range counts {
		fmt.Fprintf(&text, " %d… %.1f %%", 20*i, 100*float64(n)/float64(len(waits)))
	}
	return text.String()
}

// liveDrawing draws numbers on a screen, over its content.
type liveDrawing struct {
	b       testing.TB
	window  *controltest.Window
	size    image.Point
	content liveContent
	grounds []xproto.Pixmap // of a film its pictures; otherwise one, twice as high as the screen
	gc      xproto.Gcontext
	drawn   []time.Time // of each number
}

func newLiveDrawing(b testing.TB, window *controltest.Window, size image.Point, content liveContent) *liveDrawing {
	d := &liveDrawing{b: b, window: window, size: size, content: content}
	var err error
	if d.gc, err = xproto.NewGcontextId(window.Conn); err != nil {
		b.Fatal(err)
	}
	xproto.CreateGC(window.Conn, d.gc, xproto.Drawable(window.ID), 0, nil)
	if content.name == "video" {
		d.film()
	} else {
		d.page()
	}
	d.draw(1)
	return d
}

// ground adds a ground.
func (d *liveDrawing) ground(height int) xproto.Drawable {
	id, err := xproto.NewPixmapId(d.window.Conn)
	if err != nil {
		d.b.Fatal(err)
	}
	xproto.CreatePixmap(d.window.Conn, 24, id, xproto.Drawable(d.window.ID), uint16(d.size.X), uint16(height))
	d.grounds = append(d.grounds, id)
	return xproto.Drawable(id)
}

// page is lines of words, and a picture of many colours among them.
func (d *liveDrawing) page() {
	width, height := d.size.X, 2*d.size.Y
	on := d.ground(height)
	d.fill(on, 0xf8f8f8, xproto.Rectangle{Width: uint16(width), Height: uint16(height)})
	random := rand.New(rand.NewPCG(1, 2))
	for y := 0; y < height; y += 18 {
		for x := 20; x < width*2/3; {
			w := 20 + random.IntN(60)
			d.fill(on, 0x303030, xproto.Rectangle{X: int16(x), Y: int16(y), Width: uint16(w), Height: 9})
			x += w + 6
		}
		for x := width * 2 / 3; x < width; x += 6 {
			for dy := 0; dy < 18; dy += 6 {
				d.fill(on, random.Uint32()&0x3f3f3f+uint32(x*255/width)<<16, xproto.Rectangle{X: int16(x), Y: int16(y + dy), Width: 6, Height: 6})
			}
		}
	}
}

// film is a soft texture that passes aslant, with light that changes, and a camera's grain.
func (d *liveDrawing) film() {
	const pictures, cell, rows = 12, 8, 24
	random := rand.New(rand.NewPCG(3, 4))
	var knots [64][64]float64
	for y := range knots {
		for x := range knots[y] {
			knots[y][x] = random.Float64()
		}
	}
	texture := func(x, y float64) float64 {
		i, j := int(x), int(y)
		u, v := x-float64(i), y-float64(j)
		a, b := &knots[j%64], &knots[(j+1)%64]
		return (a[i%64]*(1-u)+a[(i+1)%64]*u)*(1-v) + (b[i%64]*(1-u)+b[(i+1)%64]*u)*v
	}
	for n := range pictures {
		on := d.ground(d.size.Y)
		for top := 0; top < d.size.Y; top += rows {
			band := make([]byte, 0, 4*rows*d.size.X)
			for y := top; y < top+rows; y++ {
				for x := range d.size.X {
					light := 90 + 50*math.Sin(float64(x+4*n)/170) + 30*math.Sin(float64(n)) + 3*random.Float64()
					light += 70 * texture(float64(x+5*n)/cell, float64(y+3*n)/cell)
					band = append(band, byte(light*0.8), byte(light*0.9), byte(light), 0)
				}
			}
			xproto.PutImage(d.window.Conn, xproto.ImageFormatZPixmap, on, d.gc, uint16(d.size.X), rows, 0, int16(top), 0, 24, band)
		}
	}
}

func (d *liveDrawing) fill(on xproto.Drawable, colour uint32, r ...xproto.Rectangle) {
	xproto.ChangeGC(d.window.Conn, d.gc, xproto.GcForeground, []uint32{colour})
	xproto.PolyFillRectangle(d.window.Conn, on, d.gc, r)
}

// draw draws so many numbers.
func (d *liveDrawing) draw(numbers int) {
	tick := time.NewTicker(time.Second / time.Duration(d.content.rate))
	defer tick.Stop()
	for range numbers {
		<-tick.C
		n, to := len(d.drawn), xproto.Drawable(d.window.ID)
		at := time.Now()
		ground, offset := d.grounds[n%len(d.grounds)], 0
		if d.content.name == "scrolls" {
			offset = n * 12 % d.size.Y
		}
		if n == 0 || d.content.name != "typing" {
			xproto.CopyArea(d.window.Conn, xproto.Drawable(ground), to, d.gc, 0, int16(offset), 0, 0, uint16(d.size.X), uint16(d.size.Y))
		} else { // a letter of three strokes
			x, y := 40+n*9%(d.size.X/2), 100+n*9/(d.size.X/2)*18
			for _, r := range []image.Rectangle{image.Rect(0, 0, 2, 12), image.Rect(0, 0, 6, 2), image.Rect(0, 5, 3+n%4, 7)} {
				d.fill(to, 0x303030, xproto.Rectangle{
					X: int16(x + r.Min.X), Y: int16(y + r.Min.Y), Width: uint16(r.Dx()), Height: uint16(r.Dy()),
				})
			}
		}
		for bit := range liveBits {
			d.fill(to, uint32(n>>bit&1)*0xffffff, xproto.Rectangle{X: int16(bit * liveSquare), Width: liveSquare, Height: liveSquare})
		}
		if _, err := xproto.GetInputFocus(d.window.Conn).Reply(); err != nil {
			d.b.Fatal(err)
		}
		d.drawn = append(d.drawn, at)
	}
}
