package file

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// picturesIn writes one small picture for each name, whose first pixel is its place in the list.
func picturesIn(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, name := range names {
		img := image.NewNRGBA(image.Rect(0, 0, 3, 2))
		img.SetNRGBA(0, 0, color.NRGBA{byte(i), 2, 3, 255})
		var b bytes.Buffer
		err := png.Encode(&b, img)
		if strings.HasSuffix(name, ".jpg") {
			b.Reset()
			err = jpeg.Encode(&b, img, nil)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestNamesSayTheTime(t *testing.T) {
	const ms = lab.Time(time.Millisecond)
	for _, c := range []struct {
		names []string // in the order of their times
		rate  float64
		times []lab.Time
	}{
		{[]string{"ms_0.png", "ms_350.png", "ms_2000.png"}, 0, []lab.Time{0, 350 * ms, 2000 * ms}}, // not by name
		{[]string{"ms_000000.png", "ms_000016.7.PNG"}, 0, []lab.Time{0, lab.Time(16.7 * 1e6)}},
		{[]string{"shot-0ms.png", "shot-100ms.png"}, 25, []lab.Time{0, 100 * ms}}, // marked: the rate counts no frames
		{[]string{"run2-00.png", "run2-17.png"}, 0, []lab.Time{0, 17 * ms}},
		{[]string{"shot-1763841234567.png", "shot-1763841234667.png"}, 0, []lab.Time{1763841234567 * ms, 1763841234667 * ms}},
		{[]string{"Screenshot from 2025-11-22 20-53-54.png", "Screenshot from 2025-11-22 20-53-55.png"}, 0,
			[]lab.Time{1763844834000 * ms, 1763844835000 * ms}}, // GNOME
		{[]string{"Screenshot_20251122-205354.png", "Screenshot_20251122-205359.png"}, 60, []lab.Time{1763844834000 * ms, 1763844839000 * ms}}, // Android
		{[]string{"Screenshot 2025-11-22 at 8.53.54\u202fPM.png", "Screenshot 2025-11-22 at 11.00.00\u202fPM.png"}, 0,
			[]lab.Time{1763844834000 * ms, 1763852400000 * ms}}, // macOS
		{[]string{"2025-11-22T20:53:54.250Z.png", "2025-11-22T20:53:54.500Z.png"}, 0, []lab.Time{1763844834250 * ms, 1763844834500 * ms}},
		{[]string{"vlcsnap-2025-11-22-20h53m54s250.png", "vlcsnap-2025-11-22-20h53m54s500.png"}, 0,
			[]lab.Time{1763844834250 * ms, 1763844834500 * ms}},
		{[]string{"Screenshot_2025-11-22-20-53-54-250_com.example.app2.png", "Screenshot_2025-11-22-20-53-55-001_com.example.app2.png"}, 60,
			[]lab.Time{1763844834250 * ms, 1763844835001 * ms}}, // Xiaomi
		{[]string{"2025-11-22-20-53-54-250.png", "2025-11-22-20-53-54-500.png"}, 0, []lab.Time{1763844834250 * ms, 1763844834500 * ms}},
		{[]string{"2025-11-22-20-53-54-001.png", "2025-11-22-20-53-54-002.png"}, 25, []lab.Time{40 * ms, 80 * ms}},
		{[]string{"Screenshot_20251122-205354_com.example.app2.png", "Screenshot_20251122-205359_com.example.app2.png"}, 0,
			[]lab.Time{1763844834000 * ms, 1763844839000 * ms}},
		{[]string{"0s.png", "0.25s.png", "shot-1.5sec.png", "t=12s.png"}, 25, []lab.Time{0, 250 * ms, 1500 * ms, 12000 * ms}},
		{[]string{"0s.png", "0,25s.png", "shot-1,5s.png"}, 0, []lab.Time{0, 250 * ms, 1500 * ms}},
		{[]string{"1763844834.25.png", "shot_1763844834.5000.png"}, 25, []lab.Time{1763844834250 * ms, 1763844834500 * ms}}, // time.time()
		{[]string{"Screenshot (1).png", "Screenshot (40).png"}, 0, []lab.Time{ms, 40 * ms}},
		{[]string{"ms_900 (1).png", "ms_950 copy 2.png", "shot-1000ms - Copy (3).png"}, 0, []lab.Time{900 * ms, 950 * ms, 1000 * ms}},
		{[]string{"20251122-205354-0.png", "20251122-205354-40.png"}, 0, []lab.Time{0, 40 * ms}}, // the last number counts
		{[]string{"frame-1.png", "frame-2.png", "frame-10.png"}, 25, []lab.Time{40 * ms, 80 * ms, 400 * ms}},
	} {
		f, err := OpenFolder(picturesIn(t, c.names...), c.rate)
		if err != nil {
			t.Errorf("OpenFolder(%v) = %v", c.names, err)
			continue
		}
		for i, want := range c.times {
			pix, err := f.Pixels(i)
			if err != nil || f.Info(i).Time != want || !bytes.Equal(pix[:4], []byte{3, 2, byte(i), 0}) {
				t.Errorf("%v at %v: frame %d is of %v, want %v (%v)", c.names, c.rate, i, f.Info(i).Time, want, err)
			}
		}
	}
	f, err := OpenFolder(picturesIn(t, "1.png"), 0) // its other pixels are transparent
	if err != nil {
		t.Fatal(err)
	}
	if pix, err := f.Pixels(0); err != nil || !bytes.Equal(pix[:8], []byte{3, 2, 0, 0, 255, 255, 255, 0}) {
		t.Errorf("a picture with a transparent pixel is % x, %v; want it white", pix, err)
	}
	jpegs := picturesIn(t, "1.jpg", "5.png")
	f, err = OpenFolder(jpegs, 0)
	if err != nil || f.NotLossless() != "JPEG pictures" || f.Len() != 2 {
		t.Errorf("a folder with a JPEG: %+v, %v; want two frames, not lossless because of JPEG pictures", f, err)
	}
	if err := os.Rename(filepath.Join(jpegs, "1.jpg"), filepath.Join(jpegs, "1.png")); err != nil {
		t.Fatal(err)
	}
	if f, err = OpenFolder(jpegs, 0); err != nil || f.NotLossless() != "JPEG pictures" {
		t.Errorf("a JPEG that is named .png: %+v, %v; want it not lossless because of JPEG pictures", f, err)
	}
}

// TestWebP: pictures as browsers' remote control makes them are read; that they may have lost something is told.
func TestWebP(t *testing.T) {
	dir := t.TempDir()
	const one = "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00/\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00" // a pixel
	for _, name := range []string{"0.webp", "500.webp"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(one), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := OpenFolder(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if f.Len() != 2 || f.Format().Width != 1 || f.NotLossless() != "WebP pictures" {
		t.Errorf("%d frames of %+v, not lossless because of %q; want 2 of one pixel, WebP pictures", f.Len(), f.Format(), f.NotLossless())
	}
	if pix, err := f.Pixels(1); len(pix) != 4 || err != nil {
		t.Errorf("Pixels(1) has %d bytes, %v; want 4", len(pix), err)
	}
}

func TestFoldersThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		names []string
		rate  float64
		want  string
	}{
		{[]string{"notes.txt"}, 0, "no PNG, JPEG or WebP files"},
		{[]string{"frame1.bmp", "frame2.bmp", "overview1.png"}, 0, "frame1.bmp are not read: make PNG files of them (magick mogrify -format png '*.bmp')"},
		{[]string{"1.gif"}, 0, "1.gif are not read"},
		{[]string{"2025-11-22-20-53-54-001.png", "2025-11-22-20-53-54-002.png", "2025-11-22-20-53-54-003.png"}, 0, "if they count frames, say their rate"},
		{[]string{"a.png"}, 0, "no number"},
		{[]string{"a1.png", "b1.png"}, 0, "same time"},
		{[]string{"ms_1.png", "ms_1 (1).png"}, 0, "same time"},
		{[]string{"Screenshot 2025-11-22 205354.png", "Screenshot 2025-11-22 205354 (1).png"}, 0, "same time"},
		{[]string{"0.0.png", "0.4.png", "0.9.png"}, 0, "if they are seconds, too (0.0.png as 0.0s.png)"},
		{[]string{"00-00-00.000.png", "00-00-00.400.png", "00-00-01.900.png"}, 0, "or more closely"},
		{[]string{"1.png"}, -1, "outside 0"},
		{[]string{"1.png"}, math.NaN(), "outside 0"},
		{[]string{"1.png", "2.png", "3.png"}, 0, "if they count frames, say their rate"},
		{[]string{"shot-1.png", "shot-2.png", "shot-3.png", "shot-5.png"}, 0, "mark them (shot-1.png as ms_1.png)"}, // one was left out
		{[]string{"ms_1b.png", "ms_2b.png", "ms_3b.png"}, 0, "(ms_1b.png as ms_1.png)"},
		{[]string{"1.png", "9000000000000.png"}, 0.001, "impossible time"},
		{[]string{strings.Repeat("9", 200) + ".png"}, 0, "no time in ms"},
	} {
		if _, err := OpenFolder(picturesIn(t, c.names...), c.rate); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.names, err, c.want)
		}
	}
	dir := picturesIn(t, "1.png", "5.png", "9.png")
	if err := os.WriteFile(filepath.Join(dir, "5.png"), []byte("no picture"), 0o644); err != nil {
		t.Fatal(err)
	}
	var large bytes.Buffer
	if err := png.Encode(&large, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "9.png"), large.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"._1.png": "of macOS", "20.jfif": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := OpenFolder(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if f.Len() != 4 {
		t.Errorf("%d pictures; want 4, as one is hidden", f.Len())
	}
	if _, err := f.Pixels(3); err == nil || !strings.Contains(err.Error(), "the file is empty") {
		t.Error(err)
	}
	if _, err := decodePicture(strings.NewReader(large.String()[:large.Len()-20]), image.Pt(4, 4)); err == nil || !strings.Contains(err.Error(), "it is cut off or damaged (") {
		t.Error(err)
	}
	if _, err := f.Pixels(1); err == nil || !strings.Contains(err.Error(), "neither PNG, JPEG nor WebP") {
		t.Error(err)
	}
	if _, err := f.Pixels(2); err == nil || !strings.Contains(err.Error(), "it is 4×4, the first picture is 3×2") {
		t.Error(err)
	}
}

// FuzzName checks that a name's time is one that can be sorted and shown.
func FuzzName(f *testing.F) {
	f.Add("ms_001234", 0.0)
	f.Add("shot-12.5ms", 60.0)
	f.Add("Screenshot 2025-11-22 at 8.53.54 PM", 0.0)
	f.Add("Screenshot_2025-11-22-20-53-54-250_com.example.app2", 60.0)
	f.Add("vlcsnap-2025-11-22-20h53m54s250", 0.0)
	f.Add("frame 99999999999999999999999999", 1.0)
	f.Fuzz(func(t *testing.T, name string, rate float64) {
		defer testlab.Input(t)()
		if !(rate >= 0 && rate <= 1000) {
			return
		}
		if at, _, err := timeOf(name, rate); err == nil && at < 0 {
			t.Errorf("%q at %v is of %v", name, rate, at)
		}
	})
}

// FuzzPicture feeds picture files; what their headers claim must not be
// allocated, and what is decoded has the size that was asked for.
func FuzzPicture(f *testing.F) {
	img := image.NewNRGBA(image.Rect(0, 0, 3, 2))
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.Clone(b.Bytes()))
	b.Reset()
	if err := jpeg.Encode(&b, img, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00/\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer testlab.Input(t)()
		in := bytes.NewReader(data)
		_, size, err := pictureHeader(in)
		if err != nil || size.X*size.Y > 1<<16 {
			return
		}
		if _, err := in.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
		if pix, err := decodePicture(in, size); err == nil && len(pix) != 4*size.X*size.Y {
			t.Errorf("%d bytes of %v", len(pix), size)
		}
	})
}
