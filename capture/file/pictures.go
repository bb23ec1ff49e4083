package file

import (
	"fmt"
	"image"
	"image/draw"
	_ "image/jpeg" // pictures may be JPEG
	_ "image/png"  // or PNG
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// picture is one file of a folder.
type picture struct {
	path string
	ms   float64 // −1: the name does not say
}

// Names say their time as visualmetrics writes it (ms_001234.png), or with the
// unit behind the number (frame-001234ms.jpg).
var timed = regexp.MustCompile(`(?:^ms_|[-_])(\d+(?:\.\d+)?)(ms)?\.[a-z]+$`)

// timeOf returns the milliseconds in a picture's name, −1 when there are none.
func timeOf(name string) float64 {
	m := timed.FindStringSubmatch(strings.ToLower(name))
	if m == nil || m[2] == "" && !strings.HasPrefix(strings.ToLower(name), "ms_") {
		return -1
	}
	ms, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return -1
	}
	return ms
}

// openPictures lists a folder's pictures: by their times if all have one, else by name.
func openPictures(dir string, o Options) (*Source, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []picture
	all := true
	for _, e := range entries {
		switch strings.ToLower(filepath.Ext(e.Name())) {
		case ".png", ".jpg", ".jpeg":
			p := picture{filepath.Join(dir, e.Name()), timeOf(e.Name())}
			all = all && p.ms >= 0
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the folder holds no PNG or JPEG pictures")
	}
	if all {
		slices.SortStableFunc(list, func(a, b picture) int { return int(a.ms*1e3) - int(b.ms*1e3) })
	}
	first, err := decode(list[0].path, image.Point{})
	if err != nil {
		return nil, err
	}
	rate := o.Format.Rate
	if rate == 0 {
		rate = 60
	}
	f := lab.Format{Pixels: lab.BGRX, Width: first.Rect.Dx(), Height: first.Rect.Dy(), Rate: rate}
	n := 0
	return &Source{format: f, next: func(fr *lab.Frame) error {
		if n == len(list) {
			return io.EOF
		}
		img, err := decode(list[n].path, image.Pt(f.Width, f.Height))
		if err != nil {
			return err
		}
		for i := 0; i < len(img.Pix); i += 4 {
			p := img.Pix[i : i+4 : i+4]
			p[0], p[2], p[3] = p[2], p[0], 0
		}
		fr.Pix = img.Pix
		if all {
			fr.Time = lab.Time(list[n].ms * float64(time.Millisecond))
		}
		n++
		return nil
	}}, nil
}

// decode reads a picture, which must have the given size unless that is zero.
// Its size is checked before its pixels are made room for.
func decode(path string, size image.Point) (*image.RGBA, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, _, err := image.DecodeConfig(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if c.Width > lab.MaxSide || c.Height > lab.MaxSide || c.Width*c.Height > 1<<26 {
		return nil, fmt.Errorf("%s: a picture of %d × %d is too large", path, c.Width, c.Height)
	}
	if (size != image.Point{}) && (image.Point{X: c.Width, Y: c.Height}) != size {
		return nil, fmt.Errorf("%s: %d × %d pixels, the first picture has %d × %d", path, c.Width, c.Height, size.X, size.Y)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	img, _, err := image.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := image.NewRGBA(image.Rect(0, 0, c.Width, c.Height))
	draw.Draw(out, out.Rect, img, img.Bounds().Min, draw.Src)
	return out, nil
}
