package export

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"os"
	"strconv"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report"
)

// The measures of the picture, in pixels.
const (
	mostShots  = 8
	shotWidth  = 150
	gap        = 10
	textHeight = 22
	textSize   = 14
	mostHigh   = 400 // of a shot, whatever shape its file has
)

// Bounds on a shot's file.
const (
	mostShotBytes  = 8 << 20
	mostShotPixels = 16 << 20
)

// pictured is the run, or of a run of many the first page that is as the verdict says.
func pictured(run *lab.Run) *lab.Run {
	views := run.Views()
	for _, view := range views {
		if c := view.Comparison; c != nil && run.Comparison != nil && c.Verdict == run.Comparison.Verdict {
			return view
		}
	}
	return views[0]
}

// Picture draws the typical trial of each arm as a strip of what its screen showed, the arms
// one below the other on one axis of time, as PNG.
func Picture(w io.Writer, s *Source) error {
	arms := report.ShotsOf(pictured(s.Run), s.Files)
	if len(arms) == 0 {
		return errors.New("the run has no pictures of a valid trial")
	}
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return err
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: textSize, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return err
	}
	defer face.Close()
	var strips []strip
	width, height := 0, gap
	for _, a := range arms {
		one, err := stripOf(s.Files, a)
		if err != nil {
			return err
		}
		width = max(width, gap+len(one.shots)*(shotWidth+gap))
		height += one.height()
		strips = append(strips, one)
	}
	all := image.NewRGBA(image.Rect(0, 0, max(width, 480), height))
	draw.Draw(all, all.Bounds(), image.White, image.Point{}, draw.Src)
	y := gap
	for _, one := range strips {
		one.draw(all, face, y)
		y += one.height()
	}
	return png.Encode(w, all)
}

// strip is an arm with its pictures, scaled.
type strip struct {
	title string
	times []float64
	shots []image.Image
	tall  int
}

func (s *strip) height() int { return textHeight + s.tall + textHeight + gap }

func stripOf(files *os.Root, a report.Shots) (strip, error) {
	s := strip{title: a.Name}
	if a.Differs != "" {
		s.title += ": " + clip(oneLine(a.Differs), 120)
	}
	for _, i := range spread(len(a.All), mostShots) {
		shot, err := openShot(files, a.All[i].File)
		if err != nil {
			return s, fmt.Errorf("picture %s: %w", a.All[i].File, err)
		}
		high := shotWidth * shot.Bounds().Dy() / max(shot.Bounds().Dx(), 1)
		small := image.NewRGBA(image.Rect(0, 0, shotWidth, min(max(high, 1), mostHigh)))
		draw.CatmullRom.Scale(small, small.Bounds(), shot, shot.Bounds(), draw.Src, nil)
		s.shots, s.times, s.tall = append(s.shots, small), append(s.times, a.All[i].TimeMS), max(s.tall, small.Bounds().Dy())
	}
	return s, nil
}

// spread chooses at most so many of n places, the first and the last among them.
func spread(n, most int) (places []int) {
	count := min(n, most)
	for i := range count {
		places = append(places, int(math.Round(float64(i)*float64(n-1)/float64(max(count-1, 1)))))
	}
	return places
}

// openShot reads a picture whose size is within bounds.
func openShot(files *os.Root, name string) (image.Image, error) {
	f, _, err := store.OpenFile(files, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := jpeg.DecodeConfig(io.LimitReader(f, mostShotBytes))
	if err != nil {
		return nil, err
	}
	if c.Width < 1 || c.Height < 1 || c.Width > mostShotPixels/c.Height {
		return nil, fmt.Errorf("%d×%d pixels are too many", c.Width, c.Height)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return jpeg.Decode(io.LimitReader(f, mostShotBytes))
}

func (s *strip) draw(on *image.RGBA, face font.Face, y int) {
	ink, soft := color.RGBA{0x1f, 0x23, 0x28, 0xff}, color.RGBA{0x59, 0x63, 0x6e, 0xff}
	write(on, face, gap, y+textSize, s.title, ink)
	y += textHeight
	for i, shot := range s.shots {
		x := gap + i*(shotWidth+gap)
		at := shot.Bounds().Add(image.Pt(x, y))
		draw.Draw(on, at.Inset(-1), image.NewUniform(color.RGBA{0xd0, 0xd7, 0xde, 0xff}), image.Point{}, draw.Src)
		draw.Draw(on, at, shot, image.Point{}, draw.Src)
		write(on, face, x, y+s.tall+textSize, strconv.FormatFloat(s.times[i]/1e3, 'f', 1, 64)+" s", soft)
	}
}

func write(on *image.RGBA, face font.Face, x, y int, text string, ink color.Color) {
	d := font.Drawer{Dst: on, Src: image.NewUniform(ink), Face: face, Dot: fixed.P(x, y)}
	d.DrawString(text)
}
