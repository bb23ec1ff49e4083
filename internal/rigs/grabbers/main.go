// Command grabbers shows what noise, compression and scaling do to what is measured on a recording: it takes exact
// reels, makes of each what grabbers would have delivered, measures both, and prints by how many frames and per cent
// they differ.
//
//	grabbers screen.reel …
//
// With -trials it measures pages of the sample site behind each of them before, in a folder from which a call goes on:
//
//	grabbers -trials 12 [-dir out/bench/grabbers]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"eidetic/analysis/visual"
	"eidetic/capture/diff"
	"eidetic/capture/mjpeg"
	"eidetic/capture/reel"
	"eidetic/capture/steady"
	"eidetic/capture/through"
	"eidetic/internal/lab"
)

// ways are the rows of the table.
func ways() []string {
	return []string{
		"noise=1", "noise=3", "dither=4", "420", "mjpeg=80", "rotate=90", "scale=1920x1080", "mjpeg=95", "mjpeg=60",
		"noise=1,mjpeg=80", "noise=1,mjpeg=60", "noise=3,420", "scale=1920x1080,noise=1",
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	count := flag.Int("trials", 0, "measure the pages in so many trials behind each")
	dir := flag.String("dir", "out/bench/grabbers", "folder for these trials")
	flag.Parse()
	var err error
	switch {
	case *count > 0:
		err = trials(ctx, *dir, *count, os.Stdout)
	case flag.NArg() > 0:
		err = degrade(flag.Args(), os.Stdout)
	default:
		err = errors.New("name the reels of trials, or say -trials 12")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "grabbers:", err)
		os.Exit(1)
	}
}

// row is what a way did to one reel, or to all: by how many frames and milliseconds.
type row struct {
	frames [6]int // first change, first content, 85 %, 95 %, 99 %, last change
	index  float64
}

// beyond is the farthest of two rows in each number.
func (r row) beyond(other row) row {
	for i, v := range other.frames {
		if v*v > r.frames[i]*r.frames[i] {
			r.frames[i] = v
		}
	}
	if math.Abs(other.index) > math.Abs(r.index) {
		r.index = other.index
	}
	return r
}

func (r row) String() string {
	var b strings.Builder
	for _, v := range r.frames {
		fmt.Fprintf(&b, "%+d | ", v)
	}
	return b.String() + fmt.Sprintf("%+.0f", r.index)
}

// degrade prints what each way does to what is measured on each of the reels.
func degrade(files []string, out io.Writer) error {
	const head = "first change | first content | 85 % | 95 % | 99 % | last change | SpeedIndex ms"
	fmt.Fprintln(out, "reel | way | noise | "+head+" | s")
	worst, within := map[string]row{}, map[string]int{}
	for _, file := range files {
		exact, _, err := worn(file, "")
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		fmt.Fprintf(out, "%s: SpeedIndex %.0f ms, last change %d frames after the start\n", file, exact.SpeedIndex, exact.LastChange-exact.Start)
		for _, way := range ways() {
			begun := time.Now()
			r, noise, err := worn(file, way)
			if err != nil {
				fmt.Fprintf(out, "%s | %s | %v\n", file, way, err)
				continue
			}
			one := row{[6]int{
				r.FirstChange - exact.FirstChange, r.FirstContent - exact.FirstContent, r.Complete[85] - exact.Complete[85],
				r.Complete[95] - exact.Complete[95], r.Complete[99] - exact.Complete[99], r.LastChange - exact.LastChange,
			}, r.SpeedIndex - exact.SpeedIndex}
			fmt.Fprintf(out, "%s | %s | %d %.2f %.2f | %v | %.1f\n", file, way, noise.Pixel, noise.Mean, noise.Texture, one,
				time.Since(begun).Seconds())
			worst[way] = worst[way].beyond(one)
			if most := (row{[6]int{1, 1, 1, 1, 1, 1}, 17}); most.beyond(one) == most {
				within[way]++
			}
		}
	}
	fmt.Fprintf(out, "\nThe worst of %d reels:\nway | within 1 frame, SpeedIndex too | %s\n", len(files), head)
	for _, way := range ways() {
		fmt.Fprintf(out, "%s | %d | %v\n", way, within[way], worst[way])
	}
	return nil
}

// worn measures a reel as it would have come through a grabber.
func worn(file, way string) (*visual.Result, lab.ScreenNoise, error) {
	var none lab.ScreenNoise
	r, err := reel.Open(file)
	if err != nil {
		return nil, none, err
	}
	defer r.Close()
	src := steady.Play(r)
	memory := &steady.Memory{}
	if way != "" {
		w, err := through.Parse(way)
		if err != nil {
			return nil, none, err
		}
		if src, err = through.New(src, w, 1); err != nil {
			return nil, none, err
		}
		src = steady.New(mjpeg.New(src), memory)
		// Once for the noise of the whole film, as the trials before this one have met it.
		for {
			if _, err := src.Next(context.Background()); err != nil {
				break
			}
		}
		if src, err = through.New(steady.Play(r), w, 2); err != nil {
			return nil, none, err
		}
		src = steady.New(mjpeg.New(src), memory)
	}
	kept := reel.NewMemory(8 << 30)
	w, err := reel.NewWriter(kept, reel.Header{Format: src.Format(), Source: "reel", Wall: time.Unix(0, 0)})
	if err != nil {
		return nil, none, err
	}
	var find diff.Finder
	var last []byte
	for {
		f, err := src.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, none, err
		}
		if last != nil {
			f.Changed = find.Frame(nil, src.Format(), last, f.Pix, f.Changed)
		}
		last = append(last[:0], f.Pix...)
		if err := w.WriteFrame(f); err != nil {
			return nil, none, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, none, err
	}
	tmp, err := os.CreateTemp("", "worn")
	if err != nil {
		return nil, none, err
	}
	defer os.Remove(tmp.Name())
	if _, err := kept.WriteTo(tmp); err != nil {
		return nil, none, err
	}
	tmp.Close()
	film, err := reel.Open(tmp.Name())
	if err != nil {
		return nil, none, err
	}
	defer film.Close()
	area, _, start, err := visual.FindContent(film, visual.SyncOptions{})
	if err != nil {
		return nil, none, err
	}
	result, err := visual.Analyze(film, visual.Options{Start: start, Content: area, EndPage: lab.SyncRed()})
	return result, memory.Noise(), err
}
