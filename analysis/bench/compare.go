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
	"eidetic/internal/rigs/benchtable"
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
	// The last browsertime on npm with visualmetrics.py, which is WPO's script as browsertime changed it: what is
	// called here, histograms, visual progress with its slop of 5 and SpeedIndex, is WPO's.
	wpo       = "browsertime@16.2.0"
	wpoScript = "wpo/package/browsertime/visualmetrics.py"
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
	Decoded    float64  `json:"decoded_seconds"` // without reading files: the pictures are in memory
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
func compare(dir, cache string, loads int) ([]benchtable.Result, error) {
	if err := fetch(cache); err != nil {
		return nil, err
	}
	var folders []string
	var raws []raw
	ways := map[string]*sides{}
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
		film := filepath.Join(dir, fmt.Sprintf("load-%02d.reel", seed))
		if err := record(film, f, lab.Time(time.Millisecond)); err != nil {
			return nil, err
		}
		decoded, err := pictures.decoded()
		if err != nil {
			return nil, err
		}
		for _, how := range peersOptions() {
			if ways[how.peer] == nil {
				ways[how.peer] = &sides{}
			}
			if err := ways[how.peer].measure(how, pictures, decoded, film); err != nil {
				return nil, err
			}
		}
	}
	driver := filepath.Join(dir, "peers.py")
	if err := os.WriteFile(driver, portableDriver, 0o600); err != nil {
		return nil, err
	}
	var rows []benchtable.Result
	for _, script := range []struct{ peer, path, contentful string }{
		{portableName, portable, "1"},
		{wpoName, wpoScript, "0"},
	} {
		args := append([]string{driver, filepath.Join(cache, script.path), script.contentful}, folders...)
		theirs, err := lines(exec.Command("/usr/bin/python3", args...))
		if err != nil {
			return nil, err
		}
		more, err := ways[script.peer].judge(script.peer, theirs, 0)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
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
	theirs, err := lines(exec.Command("node", driver, modules, input))
	if err != nil {
		return nil, err
	}
	more, err := ways[speedlineName].judge(speedlineName, theirs, 1e-6)
	return append(rows, more...), err
}

// fetch has npm fetch the peers: speedline with what it needs, of browsertime the package
// alone, whose Python script is what is run.
func fetch(cache string) error {
	if _, err := os.Stat(filepath.Join(cache, wpoScript)); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(cache, "wpo"), 0o755); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"npm", "install", "--prefix", cache, "--ignore-scripts", "--no-audit", "--no-fund", speedline},
		{"npm", "pack", "--pack-destination", cache, browsertime},
		{"npm", "pack", "--pack-destination", cache, wpo},
		{"tar", "-xzf", filepath.Join(cache, strings.Replace(browsertime, "@", "-", 1)+".tgz"), "-C", cache},
		{"tar", "-xzf", filepath.Join(cache, strings.Replace(wpo, "@", "-", 1)+".tgz"), "-C", filepath.Join(cache, "wpo")},
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

// decoded has all of a folder's pictures in memory.
func (f *folder) decoded() (*memory, error) {
	m := &memory{folder: f}
	for i := range f.files {
		pix, err := f.Pixels(i)
		if err != nil {
			return nil, err
		}
		m.all = append(m.all, pix)
	}
	return m, nil
}

type memory struct {
	*folder
	all [][]byte
}

func (m *memory) Pixels(i int) ([]byte, error) { return m.all[i], nil }

// The peers' names in the table.
const (
	portableName  = "browsertime's visualmetrics-portable.py"
	wpoName       = "WPO's visualmetrics.py"
	speedlineName = "speedline"
)

// asked is what is measured beside a peer.
type asked struct {
	peer     string
	options  visual.Options
	progress func(*visual.Result) []float64
	numbers  func(*visual.Result) numbers
}

func peersOptions() []asked {
	return []asked{
		{portableName, visual.Options{Also: visual.Contentful, Baseline: visual.BaselineStart},
			func(r *visual.Result) []float64 { return r.Progress },
			func(r *visual.Result) numbers { return numbers{Index: r.SpeedIndex, Contentful: r.ContentfulIndex} }},
		{wpoName, visual.Options{Also: visual.WPT, Baseline: visual.BaselineStart},
			func(r *visual.Result) []float64 { return r.ProgressWPT },
			func(r *visual.Result) numbers { return numbers{Index: r.SpeedIndexWPT} }},
		{speedlineName, visual.Options{Also: visual.Speedline, Baseline: visual.BaselineWhite},
			func(*visual.Result) []float64 { return nil },
			func(r *visual.Result) numbers {
				return numbers{Index: r.SpeedlineIndex, Perceptual: r.SpeedlinePerceptual}
			}},
	}
}

// sides are our numbers of the loads: from reels, from the peers' files, and from pictures in memory.
type sides struct{ reels, files, decoded []numbers }

// measure adds a load.
func (s *sides) measure(how asked, pictures *folder, decoded *memory, film string) error {
	for _, side := range []struct {
		to   *[]numbers
		open func() (visual.Frames, func() error, error)
	}{
		{&s.reels, func() (visual.Frames, func() error, error) {
			r, err := reel.Open(film)
			return r, r.Close, err
		}},
		{&s.files, func() (visual.Frames, func() error, error) {
			pictures.pix = nil
			return pictures, func() error { return nil }, nil
		}},
		{&s.decoded, func() (visual.Frames, func() error, error) { return decoded, func() error { return nil }, nil }},
	} {
		began := processor()
		f, done, err := side.open()
		if err != nil {
			return err
		}
		r, err := visual.Analyze(f, how.options)
		if e := done(); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
		n := how.numbers(r)
		n.Seconds, n.Frames = processor()-began, pictures.Len()
		for i, p := range how.progress(r) {
			if i == 0 || r.Changed[i] > 0 { // the peers do not get the others
				n.Progress = append(n.Progress, [2]int{int(math.Floor(r.Times[i])), int(p)})
			}
		}
		*side.to = append(*side.to, n)
	}
	return nil
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
// recording, a reel and a folder of PNG files; from those files on both sides; and from pictures in memory on both.
func (s *sides) judge(peer string, theirs []numbers, slack float64) ([]benchtable.Result, error) {
	if len(s.reels) != len(theirs) {
		return nil, fmt.Errorf("%s answered for %d of %d loads", peer, len(theirs), len(s.reels))
	}
	var frames int
	var reels, files, decoded, their, theirDecoded float64
	var equal [3]int
	for i, b := range theirs {
		for k, a := range []numbers{s.reels[i], s.files[i], s.decoded[i]} {
			if math.Abs(a.Index-b.Index) <= slack && math.Abs(a.Contentful-b.Contentful) <= slack &&
				math.Abs(a.Perceptual-b.Perceptual) <= slack && slices.Equal(a.Progress, b.Progress) {
				equal[k]++
			} else {
				fmt.Printf("load %d: ours from %s %+v, %s %+v\n", i, [3]string{"its reel", "files", "memory"}[k], a, peer, b)
			}
		}
		frames += s.files[i].Frames
		reels, files, decoded = reels+s.reels[i].Seconds, files+s.files[i].Seconds, decoded+s.decoded[i].Seconds
		their, theirDecoded = their+b.Seconds, theirDecoded+b.Decoded
	}
	perFrame := func(s float64) float64 { return 1e3 * s / float64(frames) }
	n := len(theirs)
	rows := []benchtable.Result{
		benchtable.More(fmt.Sprintf("loads of %d whose numbers, from reels, equal those of %s", n, peer), float64(equal[0]), "loads").Aim(float64(n)),
		benchtable.More("the same from its files", float64(equal[1]), "loads").Aim(float64(n)),
		benchtable.Less("processor time of a frame, the metrics of "+peer+", reel against its files", perFrame(reels), "ms").
			Against(peer, perFrame(their)).Aim(20),
		benchtable.Less("the same, its files on both sides", perFrame(files), "ms").Against(peer, perFrame(their)),
	}
	if theirDecoded > 0 {
		rows = append(rows, benchtable.Less("the same, decoded pictures on both sides", perFrame(decoded), "ms").Against(peer, perFrame(theirDecoded)))
	}
	return rows, nil
}
