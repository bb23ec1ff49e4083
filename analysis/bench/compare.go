package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"eidetic/analysis/filmtest"
	"eidetic/analysis/visual"
	"eidetic/capture/reel"
	"eidetic/internal/lab"
)

//go:embed peers.py
var portableDriver []byte

//go:embed speedline.js
var speedlineDriver []byte

// The peers' versions.
const (
	browsertime = "browsertime@27.5.0"
	speedline   = "speedline-core@1.4.3"
	portable    = "package/visualmetrics/visualmetrics-portable.py"
)

func frameOf(f *filmtest.Film, i int) (lab.Frame, error) {
	info := f.Info(i)
	if i > 0 && len(info.Changed) == 0 {
		info.Flags |= lab.FrameRepeat
		return lab.Frame{FrameInfo: info}, nil
	}
	pix, err := f.Pixels(i)
	return lab.Frame{FrameInfo: info, Pix: pix}, err
}

// load makes a page load of a size that needs no scaling, drawn by lot.
func load(seed uint64) *filmtest.Film {
	r := rand.New(rand.NewPCG(seed, 9))
	w, h := 240+r.IntN(160), 150+r.IntN(150)
	page := filmtest.NewPage(w, h, seed)
	type part struct {
		box image.Rectangle
		at  int
	}
	var parts []part
	for y := 0; y < h; y += 24 {
		for x := 0; x < w; x += 60 {
			parts = append(parts, part{image.Rect(x, y, min(x+60, w), min(y+24, h)), 2 + r.IntN(60)})
		}
	}
	scene := func(pix []byte, n int) {
		page.Show(pix, w, h, 0, 0)
		for _, p := range parts {
			if n < p.at {
				filmtest.Fill(pix, w, p.box, 255, 255, 255)
			}
		}
	}
	return filmtest.New(w, h, 60, scene, filmtest.Beat(70, 60, 60, 0))
}

// numbers of one load, ours or a peer's.
type numbers struct {
	Seconds    float64  `json:"seconds"`
	Frames     int      `json:"frames"`
	Index      float64  `json:"index"`
	Contentful float64  `json:"contentful"`
	Perceptual float64  `json:"perceptual"`
	Progress   [][2]int `json:"progress"`
}

// raw is a load as speedline's driver reads it.
type raw struct {
	Width  int       `json:"width"`
	Height int       `json:"height"`
	Times  []float64 `json:"times"`
	Frames [][]byte  `json:"frames"`
}

// compare runs the peers and ours on the same loads.
func compare(dir, cache string, loads int) ([]row, error) {
	if err := fetch(cache); err != nil {
		return nil, err
	}
	var folders []string
	var raws []raw
	var ours, files []numbers         // against browsertime: from the reel, and from the same files
	var shared, sharedFiles []numbers // against speedline
	for seed := range uint64(loads) {
		folder := filepath.Join(dir, fmt.Sprintf("load-%02d", seed))
		f := load(seed)
		one, err := write(f, folder)
		if err != nil {
			return nil, err
		}
		folders, raws = append(folders, folder), append(raws, one)
		pictures, err := openFolder(f.Format(), folder)
		if err != nil {
			return nil, err
		}
		a, b, err := own(pictures.Len(), func() (visual.Frames, func() error, error) {
			pictures.pix = nil
			return pictures, func() error { return nil }, nil
		})
		if err != nil {
			return nil, err
		}
		files, sharedFiles = append(files, a), append(sharedFiles, b)
		film := filepath.Join(dir, fmt.Sprintf("load-%02d.reel", seed))
		if err := record(film, f, lab.Time(time.Millisecond)); err != nil {
			return nil, err
		}
		if a, b, err = own(pictures.Len(), func() (visual.Frames, func() error, error) {
			r, err := reel.Open(film)
			return r, r.Close, err
		}); err != nil {
			return nil, err
		}
		ours, shared = append(ours, a), append(shared, b)
	}
	driver := filepath.Join(dir, "peers.py")
	if err := os.WriteFile(driver, portableDriver, 0o600); err != nil {
		return nil, err
	}
	script := filepath.Join(cache, portable)
	theirs, err := lines(exec.Command("/usr/bin/python3", append([]string{driver, script}, folders...)...))
	if err != nil {
		return nil, err
	}
	rows, err := judge("browsertime's visualmetrics-portable.py", ours, files, theirs, 0)
	if err != nil {
		return nil, err
	}
	driver, input := filepath.Join(dir, "speedline.js"), filepath.Join(dir, "loads.json")
	text, err := json.Marshal(raws)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(driver, speedlineDriver, 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(input, text, 0o600); err != nil {
		return nil, err
	}
	modules, err := filepath.Abs(filepath.Join(cache, "node_modules"))
	if err != nil {
		return nil, err
	}
	if theirs, err = lines(exec.Command("node", driver, modules, input)); err != nil {
		return nil, err
	}
	more, err := judge("speedline", shared, sharedFiles, theirs, 1e-6)
	return append(rows, more...), err
}

// fetch has npm fetch the peers: speedline with what it needs, of browsertime the package
// alone, whose Python script is what is run.
func fetch(cache string) error {
	if _, err := os.Stat(filepath.Join(cache, portable)); err == nil {
		return nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"npm", "install", "--prefix", cache, "--ignore-scripts", "--no-audit", "--no-fund", speedline},
		{"npm", "pack", "--pack-destination", cache, browsertime},
		{"tar", "-xzf", filepath.Join(cache, strings.Replace(browsertime, "@", "-", 1)+".tgz"), "-C", cache},
	} {
		if text, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s (-peers=false leaves the peers out): %w: %s", strings.Join(args, " "), err, text)
		}
	}
	return nil
}

// write keeps the frames that changed as PNG, as both peers get them, with speedline's
// white page in front.
func write(f *filmtest.Film, folder string) (raw, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return raw{}, err
	}
	format := f.Format()
	out := raw{Width: format.Width, Height: format.Height, Times: []float64{0}}
	white := bytes.Repeat([]byte{255}, 3*format.Width*format.Height)
	out.Frames = append(out.Frames, white)
	var before []byte
	for i := range f.Len() {
		pix, err := f.Pixels(i)
		if err != nil {
			return raw{}, err
		}
		if bytes.Equal(before, pix) {
			continue
		}
		before = bytes.Clone(pix)
		img, rgb := image.NewRGBA(format.Bounds()), make([]byte, 0, len(white))
		for k := 0; k < len(pix); k += 4 {
			img.SetRGBA(k/4%format.Width, k/4/format.Width, color.RGBA{pix[k+2], pix[k+1], pix[k], 255})
			rgb = append(rgb, pix[k+2], pix[k+1], pix[k])
		}
		at := f.Info(i).Time.Sub(f.Info(0).Time)
		if i > 0 {
			out.Times, out.Frames = append(out.Times, float64(at.Milliseconds())), append(out.Frames, rgb)
		}
		file, err := os.Create(filepath.Join(folder, fmt.Sprintf("ms_%06d.png", at.Milliseconds())))
		if err != nil {
			return raw{}, err
		}
		err = png.Encode(file, opaque{img})
		if e := file.Close(); err == nil {
			err = e
		}
		if err != nil {
			return raw{}, err
		}
	}
	return out, nil
}

// opaque lets the encoder write RGB without alpha.
type opaque struct{ *image.RGBA }

func (opaque) Opaque() bool { return true }

// folder reads the pictures back: what the peers are timed with, ours is too.
type folder struct {
	format lab.Format
	files  []string
	times  []lab.Time
	pix    []byte
	at     int
}

func (f *folder) Format() lab.Format { return f.format }
func (f *folder) Len() int           { return len(f.files) }
func (f *folder) Info(i int) lab.FrameInfo {
	return lab.FrameInfo{Seq: uint64(i), Time: f.times[i], Changed: []image.Rectangle{f.format.Bounds()}}
}

func (f *folder) Pixels(i int) ([]byte, error) {
	if f.at == i && f.pix != nil {
		return f.pix, nil
	}
	file, err := os.Open(f.files[i])
	if err != nil {
		return nil, err
	}
	defer file.Close()
	img, err := png.Decode(file)
	if err != nil {
		return nil, err
	}
	rgba, ok := img.(*image.RGBA)
	if !ok {
		return nil, fmt.Errorf("%s: a picture of another kind", f.files[i])
	}
	f.pix, f.at = make([]byte, 0, f.format.FrameSize()), i
	for k := 0; k < len(rgba.Pix); k += 4 {
		f.pix = append(f.pix, rgba.Pix[k+2], rgba.Pix[k+1], rgba.Pix[k], 0)
	}
	return f.pix, nil
}

// openFolder lists the pictures of a folder.
func openFolder(format lab.Format, dir string) (*folder, error) {
	files, err := filepath.Glob(filepath.Join(dir, "ms_*.png"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	f := &folder{format: format, files: files}
	for _, name := range files {
		var at int64
		if _, err := fmt.Sscanf(filepath.Base(name), "ms_%d.png", &at); err != nil {
			return nil, err
		}
		f.times = append(f.times, lab.Time(at)*lab.Time(time.Millisecond))
	}
	return f, nil
}

// own measures a load as the peers do; distinct is the number of pictures that the peers get.
func own(distinct int, open func() (visual.Frames, func() error, error)) (browser, speed numbers, err error) {
	measured := func(also visual.Indices, b visual.Baseline) (*visual.Result, float64, error) {
		began := processor()
		f, done, err := open()
		if err != nil {
			return nil, 0, err
		}
		r, err := visual.Analyze(f, visual.Options{Also: also, Baseline: b})
		if e := done(); err == nil {
			err = e
		}
		return r, processor() - began, err
	}
	r, seconds, err := measured(visual.Contentful, visual.BaselineStart)
	if err != nil {
		return browser, speed, err
	}
	browser = numbers{Seconds: seconds, Frames: distinct, Index: r.SpeedIndex, Contentful: r.ContentfulIndex}
	for i, p := range r.Progress {
		if i > 0 && r.Changed[i] == 0 {
			continue // the peers do not get it
		}
		browser.Progress = append(browser.Progress, [2]int{int(math.Floor(r.Times[i])), int(p)})
	}
	if r, seconds, err = measured(visual.Speedline, visual.BaselineWhite); err != nil {
		return browser, speed, err
	}
	return browser, numbers{Seconds: seconds, Frames: distinct, Index: r.SpeedlineIndex, Perceptual: r.SpeedlinePerceptual}, nil
}

// lines runs a driver and reads its answers.
func lines(cmd *exec.Cmd) (out []numbers, err error) {
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd.Path, err)
	}
	s := bufio.NewScanner(bytes.NewReader(text))
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		var n numbers
		if err := json.Unmarshal(s.Bytes(), &n); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", cmd.Path, err, s.Text())
		}
		out = append(out, n)
	}
	return out, s.Err()
}

// judge counts the loads on which both agree, and compares the time of a frame: from the form in which each gets a
// recording, a reel and a folder of PNG files, and from those files on both sides.
func judge(peer string, ours, files, theirs []numbers, slack float64) ([]row, error) {
	if len(ours) != len(theirs) {
		return nil, fmt.Errorf("%s answered for %d of %d loads", peer, len(theirs), len(ours))
	}
	equal, frames := 0, 0
	var mine, slow, their float64
	for i, b := range theirs {
		same := func(a numbers) bool {
			return math.Abs(a.Index-b.Index) <= slack && math.Abs(a.Contentful-b.Contentful) <= slack &&
				math.Abs(a.Perceptual-b.Perceptual) <= slack && slices.Equal(a.Progress, b.Progress)
		}
		if same(ours[i]) && same(files[i]) {
			equal++
		} else {
			fmt.Printf("load %d: ours %+v, from files %+v, %s %+v\n", i, ours[i], files[i], peer, b)
		}
		frames += files[i].Frames
		mine, slow, their = mine+ours[i].Seconds, slow+files[i].Seconds, their+b.Seconds
	}
	perFrame := func(s float64) float64 { return 1e3 * s / float64(frames) }
	return []row{
		{Name: fmt.Sprintf("loads of %d whose numbers equal those of %s", len(theirs), peer), Value: float64(equal), Unit: "loads", Better: "higher",
			Goal: float64(len(theirs))},
		{Name: "processor time of a frame, the metrics of " + peer + ", reel against its files", Value: perFrame(mine), Unit: "ms",
			Better: "lower", Peer: peer, PeerV: perFrame(their), Ratio: their / mine, Goal: 20},
		{Name: "the same from its files", Value: perFrame(slow), Unit: "ms", Better: "lower", Peer: peer, PeerV: perFrame(their),
			Ratio: their / slow},
	}, nil
}
