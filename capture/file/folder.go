package file

import (
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/image/webp"

	"eidetic/internal/lab"
)

// Folder holds the frames in a folder of PNG, JPEG and WebP pictures of one size, in
// the order of their times. A picture is decoded when it is asked for. It has
// the methods of a recording, as a reel's reader has.
type Folder struct {
	format lab.Format
	files  []picture
	lossy  []string // kinds of pictures that may not be what the screen showed
	pix    []byte   // of frame last
	last   int
}

// otherPictures are the endings of pictures that are not read.
var otherPictures = []string{".bmp", ".gif", ".tif", ".tiff", ".avif", ".heic", ".heif", ".jxl", ".jp2", ".ppm", ".pnm", ".pgm", ".tga"} // constant

// picture is one file of a folder.
type picture struct {
	path string
	time lab.Time
}

// maxPictures bounds what a folder may hold: an hour at 60 Hz is 216,000.
const maxPictures = 1 << 20

// The last number in a picture's name says when it is from, unless that is a date with a time of day. One that is marked
// as ms (ms_001234.png as visualmetrics and browsertime write it, shot-1234ms.jpg) or s (1.25s.png) is
// a time; another is a time too, or counts frames when a rate is given.
var (
	lastNumber = regexp.MustCompile(`(\d+(?:\.\d+)?)\D*$`)
	marked     = regexp.MustCompile(`^ms_\d+(?:\.\d+)?$|[-_ ]\d+(?:\.\d+)?ms$`)
	inSeconds  = regexp.MustCompile(`(?:^|[-_ =])(\d+(?:[.,]\d+)?) ?s(?:ec(?:onds?)?)?$`)
	// sinceEpoch is a time in s since 1970 with a fraction, as scripts print it.
	sinceEpoch = regexp.MustCompile(`(?:^|\D)(1\d{9}\.\d+)$`)
	// copied is what desktops and browsers add to the name of a second file of that name.
	copied = regexp.MustCompile(`(?: \(\d+\)| - copy(?: \(\d+\))?| copy(?: \d+)?)$`)
	// dated is how the programs that make screenshots name them, and no number may follow: a frame's, perhaps. The name of
	// an app may (com.example.app2).
	dated = regexp.MustCompile(`(?:^|\D)(20\d\d)[-_.]?(\d\d)[-_.]?(\d\d)[-_ t]*(?:at|um|à)?[-_ ]*(\d\d?)[-_:. h]?(\d\d)[-_:. m]?(\d\d)` +
		`(?:[.,s](\d{1,9})|s)?(?:[ \x{202f}]?([ap])\.?m\.?)?(?:\D*|` + appName + `)$`)
	// dashed is how Xiaomi's phones name them, with ms; without the name of an app the last number may count frames.
	dashed = regexp.MustCompile(`(?:^|\D)(20\d\d)-(\d\d)-(\d\d)-(\d\d)-(\d\d)-(\d\d)-(\d{3})(` + appName + `)?$`)
)

const appName = `_[a-z]\w*(?:\.\w+)+`

// dateOf is the time, in ms since 1970, that a name in lower case says as a date. counted says that its last number may
// be a count.
func dateOf(name string, rate float64) (ms float64, counted, ok bool) {
	m := dated.FindStringSubmatch(name)
	if m == nil {
		if m = dashed.FindStringSubmatch(name); m == nil || m[8] == "" && rate > 0 {
			return 0, false, false
		}
		counted, m[8] = m[8] == "", ""
	}
	var n [6]int
	for i := range n {
		n[i], _ = strconv.Atoi(m[1+i]) // they are digits
	}
	if m[8] != "" { // of twelve hours
		if n[3] = n[3] % 12; m[8] == "p" {
			n[3] += 12
		}
	}
	at := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, time.UTC)
	if n[1] != int(at.Month()) || n[2] != at.Day() || n[3] != at.Hour() || n[4] != at.Minute() || n[5] != at.Second() {
		return 0, false, false
	}
	part, _ := strconv.ParseFloat("0."+m[7]+"0", 64)
	return float64(at.UnixMilli()) + part*1e3, counted, true
}

// maxMillis is the latest time of a picture: names may hold ms since 1970, and this is in 2255.
const maxMillis = 9e12

// timeOf reads a picture's name, without its ending; counted says that the
// number was taken as a count of frames, or could have been one.
func timeOf(name string, rate float64) (at lab.Time, counted bool, err error) {
	name = strings.ToLower(name)
	first := copied.ReplaceAllString(name, "")
	_, _, isDate := dateOf(first, rate)
	if isDate && rate == 0 || marked.MatchString(first) || inSeconds.MatchString(first) || sinceEpoch.MatchString(first) {
		name = first // else the number in "Screenshot (2)" is all that there is
	}
	if ms, counted, ok := dateOf(name, rate); ok && !marked.MatchString(name) {
		return millis(ms), counted, nil
	}
	m := inSeconds.FindStringSubmatch(name)
	if m == nil {
		m = sinceEpoch.FindStringSubmatch(name)
	}
	if m != nil {
		if s, err := strconv.ParseFloat(strings.Replace(m[1], ",", ".", 1), 64); err == nil && s*1e3 <= maxMillis {
			return millis(s * 1e3), false, nil
		}
	}
	if m = lastNumber.FindStringSubmatch(name); m == nil {
		return 0, false, errors.New("the name holds no number to take the frame's time from")
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil || n > maxMillis {
		return 0, false, fmt.Errorf("%s is no time in ms", m[1])
	}
	if marked.MatchString(name) {
		return millis(n), false, nil
	}
	if rate > 0 {
		if n/rate*1e3 > maxMillis {
			return 0, true, fmt.Errorf("frame %s is at an impossible time", m[1])
		}
		return lab.Time(n / rate * float64(time.Second)), true, nil
	}
	return millis(n), true, nil
}

// millis keeps whole ms exact, which a product in floating point would not for ms since 1970.
func millis(n float64) lab.Time {
	whole, rest := math.Modf(n)
	return lab.Time(whole)*lab.Time(time.Millisecond) + lab.Time(math.Round(rest*1e6))
}

// OpenFolder reads the names in dir. The rate is that of names that count
// frames; 0 when numbers are times in ms.
func OpenFolder(dir string, rate float64) (*Folder, error) {
	if !(rate >= 0 && rate <= 1000) {
		return nil, fmt.Errorf("a rate of %v is outside 0 … 1000 frames per second", rate)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	p := &Folder{last: -1}
	counted := true
	var others []string // pictures that are not read
	for _, e := range entries {
		name, ext := strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())), strings.ToLower(filepath.Ext(e.Name()))
		if strings.HasPrefix(name, ".") { // hidden, such as the notes that macOS writes beside each file (._frame1.png)
			continue
		}
		if !e.IsDir() && slices.Contains(otherPictures, ext) {
			others = append(others, e.Name())
		}
		if e.IsDir() || !slices.Contains([]string{".png", ".jpg", ".jpeg", ".jfif", ".webp"}, ext) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if len(p.files) == maxPictures {
			return nil, fmt.Errorf("%s: more than %d pictures", dir, maxPictures)
		}
		at, count, err := timeOf(name, rate)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		counted = counted && count
		if kind := map[string]string{".jpg": "JPEG", ".jpeg": "JPEG", ".jfif": "JPEG", ".webp": "WebP"}[ext]; kind != "" && !slices.Contains(p.lossy, kind) {
			p.lossy = append(p.lossy, kind)
		}
		p.files = append(p.files, picture{path, at})
	}
	if len(others) > 1 || len(others) == 1 && len(p.files) == 0 { // one may be a thumbnail
		return nil, fmt.Errorf("%s: pictures such as %s are not read: make PNG files of them (magick mogrify -format png '*%s')",
			dir, others[0], filepath.Ext(others[0]))
	}
	if len(p.files) == 0 {
		return nil, fmt.Errorf("%s: no PNG, JPEG or WebP files", dir)
	}
	slices.SortFunc(p.files, func(a, b picture) int { return int(min(max(a.time-b.time, -1), 1)) })
	steps := 0 // neighbours one number apart, or less
	for i := 1; i < len(p.files); i++ {
		switch step := p.files[i].time - p.files[i-1].time; {
		case step == 0:
			return nil, fmt.Errorf("%s and %s have the same time", p.files[i-1].path, p.files[i].path)
		case step <= lab.Time(time.Millisecond):
			steps++
		}
	}
	// Frames that a tool left out leave gaps. No screen shows a picture each ms.
	if n := len(p.files); rate == 0 && counted && n > 2 && 2*steps >= n-1 {
		first := filepath.Base(p.files[0].path)
		ext := filepath.Ext(first)
		number := lastNumber.FindStringSubmatch(strings.TrimSuffix(first, ext))[1]
		return nil, fmt.Errorf("%s: most numbers in the names follow each other one by one, or more closely: if they count frames, say "+
			"their rate (--rate 60), if they are ms, mark them (%s as ms_%s%s), and if they are seconds, too (%s as %ss%s)",
			dir, first, number, ext, first, number, ext)
	}
	kind, size, err := pictureOf(p.files[0].path)
	if err != nil {
		return nil, err
	}
	if lossy := codecs[kind].lossy; lossy != "" && !slices.Contains(p.lossy, lossy) { // whatever it is named
		p.lossy = append(p.lossy, lossy)
	}
	p.format = lab.Format{Pixels: lab.BGRX, Width: size.X, Height: size.Y, Rate: 60}
	if rate > 0 {
		p.format.Rate = rate
	}
	return p, nil
}

// Format describes the frames.
func (p *Folder) Format() lab.Format { return p.format }

// Len is the number of frames.
func (p *Folder) Len() int { return len(p.files) }

// Info returns a frame's time. What changed is not known.
func (p *Folder) Info(i int) lab.FrameInfo {
	return lab.FrameInfo{Seq: uint64(i), Time: p.files[i].time, Changed: []image.Rectangle{p.format.Bounds()}}
}

// NotLossless says why the pixels are not what the screen showed, "" if they may be.
func (p *Folder) NotLossless() string {
	if len(p.lossy) > 0 {
		return strings.Join(p.lossy, " and ") + " pictures"
	}
	return ""
}

// Pixels decodes a frame; it is valid until the next call.
func (p *Folder) Pixels(i int) ([]byte, error) {
	if i == p.last {
		return p.pix, nil
	}
	f, err := os.Open(p.files[i].path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	img, err := decodePicture(f, image.Pt(p.format.Width, p.format.Height))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.files[i].path, err)
	}
	p.pix, p.last = img, i
	return p.pix, nil
}

// codec reads one kind of picture, which is told by how it starts.
type codec struct {
	magic  string
	lossy  string // its name, if its pictures may not be what the screen showed
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

var codecs = []codec{
	{"\x89PNG", "", png.DecodeConfig, png.Decode},
	{"\xff\xd8", "JPEG", jpeg.DecodeConfig, jpeg.Decode},
	{"RIFF", "WebP", webp.DecodeConfig, webp.Decode},
}

// pictureOf reads a picture's header.
func pictureOf(path string) (kind int, size image.Point, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, size, err
	}
	defer f.Close()
	if kind, size, err = pictureHeader(f); err != nil {
		return 0, size, fmt.Errorf("%s: %w", path, err)
	}
	return kind, size, nil
}

// pictureHeader tells a picture's kind and size, which is checked before
// anything is allocated for its pixels.
func pictureHeader(in io.ReadSeeker) (kind int, size image.Point, err error) {
	start := make([]byte, 4)
	if n, err := io.ReadFull(in, start); n == 0 {
		return 0, size, errEmpty
	} else if err != nil {
		return 0, size, errors.New("neither PNG, JPEG nor WebP")
	}
	kind = slices.IndexFunc(codecs, func(c codec) bool { return strings.HasPrefix(string(start), c.magic) })
	if kind < 0 {
		return 0, size, errors.New("neither PNG, JPEG nor WebP")
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return 0, size, err
	}
	c, err := codecs[kind].config(in)
	if err != nil {
		return 0, size, err
	}
	f := lab.Format{Pixels: lab.BGRX, Width: c.Width, Height: c.Height, Rate: 60}
	if err := f.Validate(); err != nil {
		return 0, size, err
	}
	if c.Width*c.Height > 1<<26 {
		return 0, size, fmt.Errorf("a picture of %d × %d is too large", c.Width, c.Height)
	}
	return kind, image.Pt(c.Width, c.Height), nil
}

// decodePicture reads a picture of the given size as BGRX.
func decodePicture(in io.ReadSeeker, size image.Point) ([]byte, error) {
	kind, got, err := pictureHeader(in)
	if err != nil {
		return nil, err
	}
	if got != size {
		return nil, fmt.Errorf("it is %d×%d, the first picture is %d×%d", got.X, got.Y, size.X, size.Y)
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	img, err := codecs[kind].decode(in)
	if err != nil {
		return nil, fmt.Errorf("it is cut off or damaged (%w): write it again, or take it away", err)
	}
	if img.Bounds().Size() != size {
		return nil, errors.New("its header and its pixels differ in size")
	}
	out := image.NewNRGBA(image.Rectangle{Max: size})
	if o, ok := img.(interface{ Opaque() bool }); ok && !o.Opaque() { // a browser's screenshot without the page's white background
		draw.Draw(out, out.Rect, image.White, image.Point{}, draw.Src)
		draw.Draw(out, out.Rect, img, img.Bounds().Min, draw.Over)
	} else {
		draw.Draw(out, out.Rect, img, img.Bounds().Min, draw.Src)
	}
	for k := 0; k < len(out.Pix); k += 4 {
		px := out.Pix[k : k+4 : k+4]
		px[0], px[2], px[3] = px[2], px[0], 0
	}
	return out.Pix, nil
}
