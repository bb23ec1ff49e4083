// Command render draws the sample shop's pictures: a small path tracer over
// signed distance fields, so that the shop looks like a shop and every picture
// is free of anybody's rights. Nothing flows in; files flow out into the folder
// that is named:
//
//	go run ./internal/samplesite/render -out internal/samplesite/assets/img
//
// WebP needs cwebp (Debian package webp, 1.2.4). The pictures are committed, so
// that neither the build nor a test runs this.
package main

import (
	"flag"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

func main() {
	out := flag.String("out", ".", "folder for the pictures")
	only := flag.String("only", ".", "regular expression of the names to draw")
	spp := flag.Int("spp", 24, "rays a pixel")
	scale := flag.Float64("scale", 1, "size, for quick looks")
	flag.Parse()
	if err := draw(*out, *only, *spp, *scale); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func draw(out, only string, spp int, scale float64) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	for i, p := range pictures() {
		if !match.MatchString(p.name) {
			continue
		}
		start := time.Now()
		s := p.make()
		img := smooth(s.render(int(float64(p.w)*scale), int(float64(p.h)*scale), spp, uint64(i+1)), 3, 17)
		size, err := write(filepath.Join(out, p.name), img, p.quality)
		if err != nil {
			return fmt.Errorf("write %s: %w", p.name, err)
		}
		fmt.Printf("%-24s %4d×%-4d %7d bytes %6.1f s\n", p.name, img.Rect.Dx(), img.Rect.Dy(), size, time.Since(start).Seconds())
	}
	return nil
}

// write encodes by the name's ending and returns the file's size.
func write(name string, img image.Image, quality int) (int64, error) {
	target := name
	if filepath.Ext(name) == ".webp" {
		target = name + ".png"
	}
	f, err := os.Create(target)
	if err != nil {
		return 0, err
	}
	if filepath.Ext(name) == ".jpg" {
		err = jpeg.Encode(f, img, &jpeg.Options{Quality: quality})
	} else {
		err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(f, img)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil && target != name {
		err = exec.Command("cwebp", "-quiet", "-m", "6", "-q", strconv.Itoa(quality), target, "-o", name).Run()
		if rerr := os.Remove(target); err == nil {
			err = rerr
		}
	}
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
