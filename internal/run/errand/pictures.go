package errand

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"strconv"
	"sync"
	"time"

	"eidetic/capture/qualify"
	"eidetic/internal/lab"
)

// PicturesPath is the page of the box that shows a qualification's pictures in the browser of a device.
const PicturesPath = "/pictures"

const (
	// pictureRate is how many numbers a second a browser shows for certain.
	pictureRate = 10
	// pictureTime is how long a browser may take to show one.
	pictureTime = 20 * time.Second
	// pictureWait is how long the page's question for the next picture is open.
	pictureWait = 2 * time.Second
	// mostSide bounds what the page says of its size.
	mostSide = 16384
)

// Pictures has a device's own browser show the pictures of a qualification: no display of this machine is needed. The
// zero value shows nothing, and its page says so.
type Pictures struct {
	mu   sync.Mutex
	open *pageScreen
}

// pageScreen is the page, as the screen of a qualification.
type pageScreen struct {
	ctx           context.Context // of the qualification
	width, height int             // that the grabber delivers

	mu      sync.Mutex
	size    image.Point // that the page has said last
	number  int         // that is to be shown, from 1
	picture []byte
	shown   int
	news    chan struct{} // closed when anything of these changes
}

// begin has the page show pictures of a size until the returned function is called.
func (p *Pictures) begin(ctx context.Context, width, height int) (*pageScreen, func()) {
	s := &pageScreen{ctx: ctx, width: width, height: height, news: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = s
	return s, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open = nil
	}
}

// change changes the state, and wakes who waits for that.
func (s *pageScreen) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.news)
	s.news = make(chan struct{})
}

// await waits until the state is as it should be.
func (s *pageScreen) await(ctx context.Context, ok func() bool) error {
	for {
		s.mu.Lock()
		done, news := ok(), s.news
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// fits waits until the page has the grabber's size; says is told of another one.
func (s *pageScreen) fits(ctx context.Context, says func(string)) error {
	want := image.Pt(s.width, s.height)
	return s.await(ctx, func() bool {
		switch s.size {
		case want:
			return true
		case image.Point{}:
			says("open http://box.test" + PicturesPath + " in the device's browser, and make it fill the screen")
		default:
			says(fmt.Sprintf("the page has %d × %d pixels, the grabber delivers %d × %d: make it fill the screen, without zoom",
				s.size.X, s.size.Y, s.width, s.height))
		}
		return false
	})
}

// Size implements [qualify.Screen].
func (s *pageScreen) Size() (width, height int) { return s.width, s.height }

// Show implements [qualify.Screen].
func (s *pageScreen) Show(n uint32) (earliest, latest lab.Time, err error) {
	pix := qualify.Strip(s.width, n)
	if n == 0 {
		pix = qualify.Picture(s.width, s.height, 0)
	}
	img := image.NewNRGBA(image.Rect(0, 0, s.width, len(pix)/4/s.width))
	for i := 0; i < len(pix); i += 4 {
		img.Pix[i], img.Pix[i+1], img.Pix[i+2], img.Pix[i+3] = pix[i+2], pix[i+1], pix[i], 255
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, img); err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeoutCause(s.ctx, pictureTime, errors.New("the device's page shows nothing any more"))
	defer cancel()
	earliest = lab.Monotonic()
	var number int
	s.change(func() { s.number++; number, s.picture = s.number, b.Bytes() })
	err = s.await(ctx, func() bool { return s.shown >= number })
	return earliest, lab.Monotonic(), err
}

// Before serves the page, and another handler's for all other paths.
func (p *Pictures) Before(other http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", other)
	mux.HandleFunc("GET "+PicturesPath, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'")
		_, _ = w.Write([]byte(picturesPage)) // the device went away
	})
	mux.HandleFunc("GET "+PicturesPath+"/next", p.next)
	return mux
}

// next answers the page with the next picture when there is one. The question says which one is shown.
func (p *Pictures) next(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	query := r.URL.Query()
	number := func(name string, most int) int {
		n, err := strconv.Atoi(query.Get(name))
		if err != nil || n < 0 || n > most {
			return -1
		}
		return n
	}
	size, shown := image.Pt(number("width", mostSide), number("height", mostSide)), number("shown", 1<<30)
	if size.X < 0 || size.Y < 0 || shown < 0 {
		http.Error(w, "width, height and shown are numbers", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	s := p.open
	p.mu.Unlock()
	if s == nil {
		http.Error(w, "no qualification of this device is on: begin one on its page of the panel", http.StatusNotFound)
		return
	}
	s.change(func() {
		if s.size = size; shown <= s.number {
			s.shown = max(s.shown, shown)
		}
	})
	ctx, cancel := context.WithTimeout(r.Context(), pictureWait)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	var picture []byte
	if err := s.await(ctx, func() bool { shown, picture = s.number, s.picture; return s.number > s.shown }); err != nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("Picture", strconv.Itoa(shown))
	_, _ = w.Write(picture) // the device went away
}

// picturesPage draws each picture and then asks for the next, once it has been on the screen for a frame.
//
//go:embed pictures.html
var picturesPage string // constant
