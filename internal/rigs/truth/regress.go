package truth

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// Regression is a known cause of a slower page: two copies of a recording of the sample page, and what must be named.
type Regression struct {
	Name string
	// Make returns what the arms replay.
	Make func(a *archive.Archive, page string) (control, treatment *archive.Archive, err error)
	// Kind, Group and What are those of the first row of lab.Causes; Kind is "" where nothing is to be named.
	Kind, Group, What string
}

const (
	scriptAt = "greet();\n" // in js/app.js, a module
	picture  = "https://cdn.shop.test/img/hero.jpg"
	sheet    = "https://cdn.shop.test/css/shop.css"
	font     = "https://cdn.shop.test/font/manrope-bold.woff2"
)

// Regressions lists one of each sort, and equal arms.
func Regressions() []Regression {
	script := func(work string) func(*archive.Archive, string) (*archive.Archive, *archive.Archive, error) {
		return func(a *archive.Archive, page string) (*archive.Archive, *archive.Archive, error) {
			return both(a, strings.TrimSuffix(page, "/")+"/js/app.js", scriptAt, scriptAt+strings.Repeat(" ", len(work))+"\n", scriptAt+work+"\n")
		}
	}
	return []Regression{
		{"equal", func(a *archive.Archive, _ string) (*archive.Archive, *archive.Archive, error) { return a, a, nil }, "", "", ""},
		{"script", script("{ let n = 0; for (let i = 0; i < 4e6; i++) n = (n * 31 + i) | 0; window.n = n; }"), lab.CauseThread, "run scripts", "/js/app.js"},
		{"style", script("for (let i = 0; i < 60; i++) { document.body.style.fontSize = 15 + i % 2 + 'px'; document.body.offsetHeight; } document.body.style.fontSize = '';"),
			lab.CauseThread, "style and layout", "/js/app.js"},
		{"decode", largerPicture, lab.CauseThread, "paint and composite", picture},
		{"server", slowerAnswer, lab.CauseWait, "", "GET " + sheet},
		{"preload", lostPreload, lab.CauseStart, "", "GET " + font},
	}
}

// both returns two copies in which one answer has other text in place of old.
func both(a *archive.Archive, url, old, control, treatment string) (*archive.Archive, *archive.Archive, error) {
	var out [2]*archive.Archive
	for i, now := range []string{control, treatment} {
		var err error
		out[i], err = with(a, url, func(e *lab.Exchange) (*lab.Exchange, error) { return rewrite(e, old, now) })
		if err != nil {
			return nil, nil, err
		}
	}
	return out[0], out[1], nil
}

// with returns a copy in which the first answer of a URL is edited.
func with(a *archive.Archive, url string, edit func(*lab.Exchange) (*lab.Exchange, error)) (*archive.Archive, error) {
	list := append([]*lab.Exchange(nil), a.Exchanges()...)
	for i, e := range list {
		if e.Method != "GET" || e.URL != url {
			continue
		}
		edited, err := edit(e)
		if err != nil {
			return nil, fmt.Errorf("editing %s: %w", url, err)
		}
		list[i] = edited
		return a.With(list), nil
	}
	return nil, fmt.Errorf("editing %s: the recording has no such answer", url)
}

// slower is by how much an answer comes later.
const slower = 150 * time.Millisecond

// slowerAnswer makes the server of a style sheet slower.
func slowerAnswer(a *archive.Archive, _ string) (*archive.Archive, *archive.Archive, error) {
	treatment, err := with(a, sheet, func(e *lab.Exchange) (*lab.Exchange, error) {
		out := *e
		out.FirstByte += slower
		out.Chunks = append([]lab.Chunk(nil), e.Chunks...)
		for i := range out.Chunks {
			out.Chunks[i].At += slower
		}
		return &out, nil
	})
	return a, treatment, err
}

// lostPreload gives the control a hint to a font that only the style sheet names.
func lostPreload(a *archive.Archive, page string) (*archive.Archive, *archive.Archive, error) {
	const before = `<link rel="stylesheet" href="https://cdn.shop.test/css/base.css">`
	hint := `<link rel="preload" as="font" type="font/woff2" crossorigin href="` + font + `">`
	return both(a, page, before, hint+before, "<!--"+strings.Repeat("x", len(hint)-7)+"-->"+before)
}

// largerPicture gives the treatment a picture of more pixels in as many bytes.
func largerPicture(a *archive.Archive, _ string) (*archive.Archive, *archive.Archive, error) {
	var large bytes.Buffer
	size := image.Rect(0, 0, 3360, 2376) // nine times the page's
	img := image.NewYCbCr(size, image.YCbCrSubsampleRatio420)
	for y := range size.Dy() {
		for x := range size.Dx() {
			img.Y[img.YOffset(x, y)] = uint8(60 + 120*x/size.Dx())
		}
	}
	for i := range img.Cb {
		c := color.YCbCrModel.Convert(color.RGBA{200, 120, 60, 255}).(color.YCbCr)
		img.Cb[i], img.Cr[i] = c.Cb, c.Cr
	}
	if err := jpeg.Encode(&large, img, &jpeg.Options{Quality: 50}); err != nil {
		return nil, nil, err
	}
	var out [2]*archive.Archive
	for i := range out {
		var err error
		out[i], err = with(a, picture, func(e *lab.Exchange) (*lab.Exchange, error) {
			body := e.Response.Body
			most := max(len(body), large.Len())
			if i == 1 {
				body = large.Bytes()
			}
			if len(e.Chunks) == 0 || e.Response.Get("Content-Encoding") != "" {
				return nil, errors.New("the picture has no body, or a coding")
			}
			return padded(e, body, most), nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return out[0], out[1], nil
}

// padded is an answer with another body, as many bytes long as asked for; what follows a picture's end is not read. Its
// last piece has what the others leave.
func padded(e *lab.Exchange, body []byte, length int) *lab.Exchange {
	out := *e
	out.Response.Body = append(append([]byte(nil), body...), make([]byte, length-len(body))...)
	out.Response.Header = append([]lab.HeaderField(nil), e.Response.Header...)
	for i, f := range out.Response.Header {
		if strings.EqualFold(f.Name, "Content-Length") {
			out.Response.Header[i].Value = strconv.Itoa(length)
		}
	}
	out.Chunks = append([]lab.Chunk(nil), e.Chunks...)
	sent := 0
	for i := range out.Chunks {
		if i == len(out.Chunks)-1 {
			out.Chunks[i].Bytes = length - sent
		}
		sent += out.Chunks[i].Bytes
	}
	return &out
}
