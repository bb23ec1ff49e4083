package reporttest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"

	"eidetic/internal/lab"
)

// Options of the artifacts.
type Options struct {
	Requests int    // lines of a replay log; default 62
	VPXEnc   string // path of vpxenc; no video without it
}

// Files writes the artifacts of all trials into dir/trials/NNN and names them
// in the trials.
func Files(dir string, run *lab.Run, o Options) error {
	if o.Requests == 0 {
		o.Requests = 62
	}
	for _, t := range run.Trials {
		if err := files(filepath.Join(dir, "trials", fmt.Sprintf("%03d", t.Number)), t, o); err != nil {
			return err
		}
	}
	return nil
}

func files(dir string, t *lab.Trial, o Options) error {
	if err := os.MkdirAll(filepath.Join(dir, "strip"), 0o755); err != nil {
		return err
	}
	var thumbs []map[string]any
	last := -1.0
	for i, v := range t.VisualProgress {
		if v == last && i != len(t.VisualProgress)-1 || len(thumbs) > 11 {
			continue
		}
		last = v
		name := fmt.Sprintf("strip-%03d.jpg", len(thumbs))
		var b bytes.Buffer
		if err := jpeg.Encode(&b, Screen(240, 135, v), nil); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "strip", name), b.Bytes(), 0o644); err != nil {
			return err
		}
		thumbs = append(thumbs, map[string]any{"frame": t.StartFrame + i, "time_ms": t.FrameTimes[i], "file": name})
	}
	strip, err := json.Marshal(thumbs)
	if err != nil {
		return err
	}
	var heat, replay, events bytes.Buffer
	if err := png.Encode(&heat, heatMap(640, 360)); err != nil {
		return err
	}
	for _, s := range Requests(t, o.Requests) {
		if err := json.NewEncoder(&replay).Encode(s); err != nil {
			return err
		}
	}
	for _, e := range t.Events {
		if err := json.NewEncoder(&events).Encode(e); err != nil {
			return err
		}
	}
	for name, content := range map[string][]byte{
		"strip/strip.json": strip, "heatmap.png": heat.Bytes(), "replay.jsonl": replay.Bytes(), "events.jsonl": events.Bytes(),
		"screen.reel": []byte("reel"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	t.Files = map[string]string{"filmstrip": "strip/strip.json", "heatmap": "heatmap.png", "replay": "replay.jsonl",
		"events": "events.jsonl", "reel": "screen.reel"}
	if o.VPXEnc != "" {
		t.Files["video"] = "evidence.webm"
		return video(o.VPXEnc, filepath.Join(dir, "evidence.webm"), t)
	}
	return nil
}

// video encodes every fourth frame with vpxenc.
func video(program, path string, t *lab.Trial) error {
	const w, h = 320, 180
	var y4m bytes.Buffer
	in := bufio.NewWriter(&y4m)
	fmt.Fprintf(in, "YUV4MPEG2 W%d H%d F15:1 Ip A1:1 C420jpeg\n", w, h)
	for i := 0; i < len(t.VisualProgress); i += 4 {
		img := Screen(w, h, t.VisualProgress[i])
		yuv := image.NewYCbCr(img.Bounds(), image.YCbCrSubsampleRatio420)
		for y := range h {
			for x := range w {
				p := img.RGBAAt(x, y)
				yuv.Y[yuv.YOffset(x, y)], yuv.Cb[yuv.COffset(x, y)], yuv.Cr[yuv.COffset(x, y)] = color.RGBToYCbCr(p.R, p.G, p.B)
			}
		}
		fmt.Fprint(in, "FRAME\n")
		for _, plane := range [][]byte{yuv.Y, yuv.Cb, yuv.Cr} {
			if _, err := in.Write(plane); err != nil {
				return err
			}
		}
	}
	if err := in.Flush(); err != nil {
		return err
	}
	cmd := exec.Command(program, "--codec=vp8", "--rt", "--cpu-used=8", "--quiet", "-o", path, "-")
	cmd.Stdin = &y4m
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("vpxenc: %w: %s", err, out)
	}
	return nil
}

// Screen draws a shop page as it looks at a visual progress in per cent.
func Screen(w, h int, progress float64) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	fill := func(x0, y0, x1, y1 float64, c color.RGBA) {
		r := image.Rect(int(x0*float64(w)), int(y0*float64(h)), int(x1*float64(w)), int(y1*float64(h)))
		draw.Draw(img, r, image.NewUniform(c), image.Point{}, draw.Src)
	}
	if progress == 0 {
		fill(0, 0, 1, 1, color.RGBA{G: 255, A: 255})
		return img
	}
	fill(0, 0, 1, 1, color.RGBA{250, 250, 248, 255})
	fill(0, 0, 1, .1, color.RGBA{26, 40, 58, 255})
	fill(.03, .035, .16, .065, color.RGBA{240, 240, 240, 255})
	fill(.04, .15, .5, .19, color.RGBA{40, 48, 58, 255})
	if progress > 50 {
		for i := range 4 {
			fill(.04, .23+float64(i)*.045, .46-.05*float64(i%3), .25+float64(i)*.045, color.RGBA{140, 148, 156, 255})
		}
		fill(.04, .43, .18, .49, color.RGBA{214, 73, 51, 255})
	}
	if progress > 95 {
		for y := int(.14 * float64(h)); y < int(.52*float64(h)); y++ {
			for x := int(.55 * float64(w)); x < int(.97*float64(w)); x++ {
				img.SetRGBA(x, y, color.RGBA{uint8(60 + 160*x/w), uint8(90 + 90*y/h), uint8(190 - 100*x/w), 255})
			}
		}
	} else {
		fill(.55, .14, .97, .52, color.RGBA{232, 233, 230, 255})
	}
	for i := range 4 {
		x := .04 + float64(i)*.235
		c := color.RGBA{232, 233, 230, 255}
		if progress > 60+float64(i)*7 {
			c = color.RGBA{uint8(90 + 35*i), uint8(150 - 20*i), uint8(120 + 25*i), 255}
		}
		fill(x, .58, x+.21, .84, c)
		if progress > 70 {
			fill(x, .87, x+.15, .89, color.RGBA{120, 128, 136, 255})
		}
	}
	return img
}

func heatMap(w, h int) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.RGBA{38, 70, 120, 255}
			switch {
			case y < h/10:
				c = color.RGBA{30, 50, 90, 255}
			case x > w*55/100 && x < w*97/100 && y > h*14/100 && y < h*52/100:
				c = color.RGBA{240, 120, 60, 255}
			case y > h*58/100 && y < h*84/100 && x%(w/4) > w/25:
				c = color.RGBA{uint8(90 + 120*x/w), 130, 110, 255}
			}
			img.SetRGBA(x, y, c)
		}
	}
	return img
}
