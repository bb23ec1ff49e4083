// Command bench measures the reel's codec against what ffmpeg offers, on the
// content classes of package scene. It prints a table and writes
// out/bench/capture.json and a plot of speed against ratio, out/bench/capture.svg.
//
//	go run ./capture/reel/bench [-size 1920x1080] [-frames 90] [-scenes scroll,camera] [-peers=false]
//
// On one thread we and the peers are measured in processor time, theirs less
// that of a run that only reads; on two threads we are measured by the clock.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"

	"eidetic/capture/synthetic/scene"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/benchtable"
)

// measured is the result of one codec for one class.
type measured struct {
	codec   string
	threads int
	speed   float64 // MB of pixels a second
	ratio   float64 // pixels over file
	seek    float64 // ms to reach a frame from anywhere, the worst of some
}

// class is one content in one pixel format, with the results of every codec.
type class struct {
	scene  string
	format lab.Format
	all    []measured
}

// goals are the project's: MB/s for BGRX on one and on two threads, and ratios.
var goals = map[string]struct{ one, two, ratio float64 }{
	scene.Static:   {one: 8000},
	scene.PageLoad: {one: 4000},
	scene.Scroll:   {one: 3000, ratio: 200},
	scene.Camera:   {one: 300, two: 500, ratio: 2.7},
	scene.Video:    {two: 700},
}

const goalSeek = 50 // ms

// options of a run.
type options struct {
	width, height, frames, runs int
	scenes, pixels              []string
	peers                       bool
}

func main() { benchtable.Exit("bench", run()) }

func run() error {
	var o options
	size := flag.String("size", "1920x1080", "of the picture")
	flag.IntVar(&o.frames, "frames", 90, "of each class of drawn content; natural pictures get half")
	scenes := flag.String("scenes", strings.Join(scene.Names(), ","), "classes")
	pixels := flag.String("pixels", "BGRX,YUYV", "pixel formats")
	flag.BoolVar(&o.peers, "peers", true, "measure ffmpeg's codecs too")
	flag.IntVar(&o.runs, "runs", 3, "of each of our measurements; the median counts")
	out := flag.String("out", "out/bench", "folder to write capture.json and capture.svg to")
	profile := flag.String("cpuprofile", "", "write a processor profile of our part to this file")
	flag.Parse()
	if n, err := fmt.Sscanf(*size, "%dx%d", &o.width, &o.height); n != 2 || err != nil {
		return fmt.Errorf("-size %q is not of the form WIDTHxHEIGHT", *size)
	}
	o.scenes, o.pixels = strings.Split(*scenes, ","), strings.Split(*pixels, ",")
	if *profile != "" {
		file, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	classes, err := measure(o, os.Stdout)
	if err != nil {
		return err
	}
	if err := benchtable.Write(filepath.Join(*out, "capture.json"), results(classes)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*out, "capture.svg"), plot(classes), 0o644)
}

// measure runs every codec on every class, and prints as it goes.
func measure(o options, w io.Writer) ([]class, error) {
	var classes []class
	fmt.Fprintf(w, line, "class", "pixels", "codec", "threads", "MB/s", "ratio", "seek (ms)", "goal")
	for _, name := range o.scenes {
		frames := o.frames
		if name == scene.Video || name == scene.Camera {
			frames = max(1, frames/2)
		}
		for _, p := range o.pixels {
			c := class{scene: name, format: lab.Format{Pixels: lab.PixelFormat(p), Width: o.width, Height: o.height, Rate: 60}}
			pix, err := drawAll(name, c.format, frames)
			if err != nil {
				return nil, err
			}
			if o.peers {
				if c.all, err = ffmpeg(c.format, pix); err != nil {
					return nil, err
				}
			}
			for threads := 1; threads <= 2; threads++ {
				m, err := ours(c.format, pix, threads, o.runs)
				if err != nil {
					return nil, err
				}
				c.all = append(c.all, m)
			}
			c.print(w)
			classes = append(classes, c)
		}
	}
	return classes, nil
}

// drawAll draws the frames of a class.
func drawAll(name string, f lab.Format, n int) ([][]byte, error) {
	s, err := scene.New(name, f.Width, f.Height)
	if err != nil {
		return nil, err
	}
	bgrx := make([]byte, 4*f.Width*f.Height)
	pix := make([][]byte, n)
	for i := range pix {
		s.Draw(bgrx, i)
		pix[i] = make([]byte, f.FrameSize())
		switch f.Pixels {
		case lab.BGRX:
			copy(pix[i], bgrx)
		case lab.YUYV:
			scene.Convert(pix[i], bgrx, f.Width, f.Height)
		default:
			return nil, fmt.Errorf("no scene in %s", f.Pixels)
		}
	}
	return pix, nil
}
