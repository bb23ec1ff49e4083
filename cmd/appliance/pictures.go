package main

import (
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"
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

// pictures are frames in a folder, decoded when they are asked for.
type pictures struct {
	format lab.Format
	files  []picture
	pix    []byte // of frame last
	last   int
}

type picture struct {
	path string
	time lab.Time
}

// maxPictures bounds what a folder may hold: an hour at 60 Hz is 216,000.
const maxPictures = 1 << 20

var lastNumber = regexp.MustCompile(`(\d+)\D*$`)

// openFrames reads the names in dir. The last number of each is its time in
// ms, or with a rate its count of frames.
func openFrames(dir string, rate float64) (*pictures, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if rate < 0 || rate > 1000 {
		return nil, fmt.Errorf("--rate %v is outside 0 … 1000 frames per second", rate)
	}
	p := &pictures{last: -1}
	for _, e := range entries {
		ext := strings.ToLower(filepath.Ext(e.Name()))
		if e.IsDir() || !slices.Contains([]string{".png", ".jpg", ".jpeg"}, ext) {
			continue
		}
		if len(p.files) == maxPictures {
			return nil, fmt.Errorf("%s: more than %d pictures", dir, maxPictures)
		}
		m := lastNumber.FindStringSubmatch(strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())))
		if m == nil {
			return nil, fmt.Errorf("%s: the name holds no number to take the frame's time from", filepath.Join(dir, e.Name()))
		}
		n, err := strconv.ParseInt(m[1], 10, 40)
		if err != nil {
			return nil, fmt.Errorf("%s: %s is no time in ms: %w", filepath.Join(dir, e.Name()), m[1], err)
		}
		at := lab.Time(n) * lab.Time(time.Millisecond)
		if rate > 0 {
			at = lab.Time(float64(n) / rate * 1e9)
		}
		p.files = append(p.files, picture{filepath.Join(dir, e.Name()), at})
	}
	if len(p.files) == 0 {
		return nil, fmt.Errorf("%s: no PNG or JPEG files", dir)
	}
	slices.SortFunc(p.files, func(a, b picture) int { return int(min(max(a.time-b.time, -1), 1)) })
	for i := 1; i < len(p.files); i++ {
		if p.files[i].time == p.files[i-1].time {
			return nil, fmt.Errorf("%s and %s have the same time", p.files[i-1].path, p.files[i].path)
		}
	}
	f, err := os.Open(p.files[0].path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := decoder(f.Name()).size(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.files[0].path, err)
	}
	p.format = lab.Format{Pixels: lab.BGRX, Width: c.Width, Height: c.Height, Rate: 60}
	if rate > 0 {
		p.format.Rate = rate
	}
	if err := p.format.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.files[0].path, err)
	}
	return p, nil
}

// codec reads one kind of picture file.
type codec struct {
	size   func(io.Reader) (image.Config, error)
	pixels func(io.Reader) (image.Image, error)
}

// decoder chooses by the name's ending; openFrames let only these through.
func decoder(name string) codec {
	if strings.EqualFold(filepath.Ext(name), ".png") {
		return codec{png.DecodeConfig, png.Decode}
	}
	return codec{jpeg.DecodeConfig, jpeg.Decode}
}

// Format describes the frames.
func (p *pictures) Format() lab.Format { return p.format }

// Len is the number of frames.
func (p *pictures) Len() int { return len(p.files) }

// Info says when a frame is from; of what changed nothing is known.
func (p *pictures) Info(i int) lab.FrameInfo {
	return lab.FrameInfo{Seq: uint64(i), Time: p.files[i].time, Changed: []image.Rectangle{p.format.Bounds()}}
}

// Pixels decodes a frame.
func (p *pictures) Pixels(i int) ([]byte, error) {
	if i == p.last {
		return p.pix, nil
	}
	f, err := os.Open(p.files[i].path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := decoder(f.Name()).size(f)
	if err == nil && (c.Width != p.format.Width || c.Height != p.format.Height) {
		err = fmt.Errorf("it is %d×%d, the first frame is %d×%d", c.Width, c.Height, p.format.Width, p.format.Height)
	}
	if err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.files[i].path, err)
	}
	img, err := decoder(f.Name()).pixels(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.files[i].path, err)
	}
	if img.Bounds().Size() != p.format.Bounds().Size() {
		return nil, errors.New(p.files[i].path + ": its header and its pixels differ in size")
	}
	rgba := image.NewNRGBA(p.format.Bounds())
	draw.Draw(rgba, rgba.Rect, img, img.Bounds().Min, draw.Src)
	p.pix = rgba.Pix
	for k := 0; k < len(p.pix); k += 4 {
		p.pix[k], p.pix[k+2], p.pix[k+3] = p.pix[k+2], p.pix[k], 0
	}
	p.last = i
	return p.pix, nil
}
