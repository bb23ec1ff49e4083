package service

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jezek/xgb/xproto"

	"eidetic/analysis/stats"
	"eidetic/control/controltest"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

// BenchmarkLiveView measures how soon a picture of a device's screen is in a person's page, and how many come a second:
// a number is drawn on the screen 60 times a second, which a script reads on the page at each of the page's own frames.
func BenchmarkLiveView(b *testing.B) {
	for _, program := range [][]string{{"chromium"}, {"firefox-esr", "firefox"}} {
		for _, c := range []struct {
			name          string
			width, height int
			scrolls       bool
		}{
			{"number", 1280, 720, false}, {"scrolls", 1280, 720, true}, {"scrolls", 1920, 1080, true},
		} {
			b.Run(fmt.Sprintf("%s/%s-%dx%d", program[0], c.name, c.width, c.height), func(b *testing.B) {
				seeLive(b, testlab.NeedProgram(b, program...), c.width, c.height, c.scrolls)
			})
		}
	}
}

// The number: its bits are squares.
const (
	liveBits   = 12
	liveSquare = 16
	liveRate   = 60
)

// sighting is a number that a page shows, and since when, in ms since 1970.
type sighting struct {
	N  int
	At float64
}

func seeLive(b *testing.B, program string, width, height int, scrolls bool) {
	if b.N == 1 { // the trial of a benchmark, which tells nothing
		return
	}
	xvfb := testlab.NeedProgram(b, "Xvfb")
	device := xtest.Start(b, xvfb, "-screen", "0", fmt.Sprintf("%dx%dx24", width, height))
	person := xtest.Start(b, xvfb, "-screen", "0", "800x600x24")
	d := newLiveDrawing(b, controltest.NewWindow(b, device.Display), width, height, scrolls)
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
	const second = liveRate
	d.draw(second) // the page settles
	from := len(d.drawn)
	b.ResetTimer()
	d.draw(b.N)
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
	b.ReportMetric(float64(len(waits))/(float64(b.N)/liveRate), "pictures/s")
	for _, q := range []float64{0.5, 0.9, 0.99} {
		b.ReportMetric(stats.Quantile(waits, q), fmt.Sprintf("ms-p%g", 100*q))
	}
	b.Log("ms from the screen to the page:" + histogram(waits))
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

// liveDrawing draws numbers on a screen, over a still or a moving ground.
type liveDrawing struct {
	b             testing.TB
	window        *controltest.Window
	width, height int
	scrolls       bool
	ground        xproto.Pixmap // twice as high as the screen
	gc            xproto.Gcontext
	drawn         []time.Time // of each number
}

func newLiveDrawing(b testing.TB, window *controltest.Window, width, height int, scrolls bool) *liveDrawing {
	d := &liveDrawing{b: b, window: window, width: width, height: height, scrolls: scrolls}
	c := window.Conn
	var err error
	if d.ground, err = xproto.NewPixmapId(c); err != nil {
		b.Fatal(err)
	}
	if d.gc, err = xproto.NewGcontextId(c); err != nil {
		b.Fatal(err)
	}
	xproto.CreatePixmap(c, 24, d.ground, xproto.Drawable(window.ID), uint16(width), uint16(2*height))
	xproto.CreateGC(c, d.gc, xproto.Drawable(window.ID), 0, nil)
	d.fill(d.ground, 0xf8f8f8, xproto.Rectangle{Width: uint16(width), Height: uint16(2 * height)})
	random := rand.New(rand.NewPCG(1, 2))
	for y := 0; y < 2*height; y += 18 { // lines of words, and a picture of many colours among them
		for x := 20; x < width*2/3; {
			w := 20 + random.IntN(60)
			d.fill(d.ground, 0x303030, xproto.Rectangle{X: int16(x), Y: int16(y), Width: uint16(w), Height: 9})
			x += w + 6
		}
		for x := width * 2 / 3; x < width; x += 6 {
			for dy := 0; dy < 18; dy += 6 {
				d.fill(d.ground, random.Uint32()&0x3f3f3f+uint32(x*255/width)<<16, xproto.Rectangle{X: int16(x), Y: int16(y + dy), Width: 6, Height: 6})
			}
		}
	}
	d.draw(1)
	return d
}

func (d *liveDrawing) fill(on xproto.Pixmap, colour uint32, r ...xproto.Rectangle) {
	xproto.ChangeGC(d.window.Conn, d.gc, xproto.GcForeground, []uint32{colour})
	xproto.PolyFillRectangle(d.window.Conn, xproto.Drawable(on), d.gc, r)
}

// draw draws so many numbers, liveRate a second.
func (d *liveDrawing) draw(numbers int) {
	tick := time.NewTicker(time.Second / liveRate)
	defer tick.Stop()
	for range numbers {
		<-tick.C
		n, to := len(d.drawn), xproto.Drawable(d.window.ID)
		at := time.Now()
		offset := 0
		if d.scrolls {
			offset = n * 12 % d.height
		}
		if d.scrolls || n == 0 {
			xproto.CopyArea(d.window.Conn, xproto.Drawable(d.ground), to, d.gc, 0, int16(offset), 0, 0, uint16(d.width), uint16(d.height))
		}
		for bit := range liveBits {
			d.fill(xproto.Pixmap(to), uint32(n>>bit&1)*0xffffff, xproto.Rectangle{X: int16(bit * liveSquare), Width: liveSquare, Height: liveSquare})
		}
		if _, err := xproto.GetInputFocus(d.window.Conn).Reply(); err != nil {
			d.b.Fatal(err)
		}
		d.drawn = append(d.drawn, at)
	}
}
