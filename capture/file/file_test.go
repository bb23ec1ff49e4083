package file_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/capture/file"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// frames reads a source to its end.
func frames(s *file.Source) ([]lab.Frame, error) {
	defer s.Close()
	var all []lab.Frame
	for {
		f, err := s.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		f.Pix = bytes.Clone(f.Pix)
		all = append(all, f)
	}
}

func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestY4M(t *testing.T) {
	for _, c := range []struct {
		header string
		frame  []byte
		format lab.Format
		pix    []byte
	}{
		{"W4 H2 F30:1 Ip C420jpeg", []byte("abcdefghUuVv"), lab.Format{Pixels: lab.NV12, Width: 4, Height: 2, Rate: 30},
			[]byte("abcdefghUVuv")},
		{"W4 H1 F60000:1001 C422", []byte("abcdUuVv"), lab.Format{Pixels: lab.YUYV, Width: 4, Height: 1, Rate: 60000.0 / 1001},
			[]byte("aUbVcudv")},
		{"W2 H2 F60:1 Cmono XCOLORRANGE=FULL", []byte("abcd"),
			lab.Format{Pixels: lab.Grey, Width: 2, Height: 2, Rate: 60, Range: lab.FullRange}, []byte("abcd")},
		{"W2 H2 F60:1 Cmono", []byte("abcd"), lab.Format{Pixels: lab.Grey, Width: 2, Height: 2, Rate: 60}, []byte("abcd")},
	} {
		film := "YUV4MPEG2 " + c.header + "\nFRAME\n" + string(c.frame) + "FRAME Ix\n" + string(c.frame)
		s, err := file.Open(context.Background(), write(t, "film.y4m", []byte(film)), file.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Format() != c.format {
			t.Errorf("%s: Format() = %+v, want %+v", c.header, s.Format(), c.format)
		}
		got, err := frames(s)
		if err != nil || len(got) != 2 || !bytes.Equal(got[1].Pix, c.pix) {
			t.Errorf("%s: frames %v, %v; want two, the second with the pixels %v", c.header, got, err, c.pix)
		}
	}
}

func TestRaw(t *testing.T) {
	f := lab.Format{Pixels: lab.BGR24, Width: 2, Height: 1, Rate: 50}
	path := write(t, "frames.raw", []byte("abcdefABCDEF"))
	s, err := file.Open(context.Background(), path, file.Options{Format: f})
	if err != nil {
		t.Fatal(err)
	}
	got, err := frames(s)
	if err != nil || len(got) != 2 || string(got[1].Pix) != "ABCDEF" || got[1].Time != 20e6 {
		t.Errorf("raw frames: %v, %v; want two, the second ABCDEF after 20 ms", got, err)
	}
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name, data, want string
	}{
		{"cut.y4m", "YUV4MPEG2 W4 H2 F30:1\nFRAME\nabc", "frame 0: the last frame is cut off: 3 bytes of 12"},
		{"big.y4m", "YUV4MPEG2 W99999 H2 F30:1\n", "frame size 99999×2 is outside"},
		{"rate.y4m", "YUV4MPEG2 W4 H2 F0:1\n", "not a rate"},
		{"bad.y4m", "YUV4MPEG2 W4 H2 F30:1\nNONSENSE\n", "stands where FRAME should"},
	} {
		s, err := file.Open(context.Background(), write(t, c.name, []byte(c.data)), file.Options{})
		if err == nil {
			_, err = frames(s)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	f := lab.Format{Pixels: "RGB", Width: 2, Height: 2}
	if _, err := file.Open(context.Background(), write(t, "raw", []byte("abc")), file.Options{Format: f}); err == nil ||
		!strings.Contains(err.Error(), `raw frames: pixel format "RGB"`) {
		t.Errorf("raw frames: %v", err)
	}
	if _, err := file.Open(context.Background(), t.TempDir(), file.Options{}); err == nil ||
		!strings.Contains(err.Error(), "no PNG, JPEG or WebP") {
		t.Errorf("empty folder: %v", err)
	}
}

func FuzzY4M(f *testing.F) {
	f.Add([]byte("YUV4MPEG2 W4 H2 F30:1 Ip C420jpeg\nFRAME\nabcdefghUuVv"))
	f.Add([]byte("YUV4MPEG2 W4 H1 F60000:1001 C422\nFRAME\nabcdUuVv"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer testlab.Input(t)()
		if !bytes.HasPrefix(data, []byte("YUV4MPEG2 ")) {
			return // anything else is ffmpeg's to read
		}
		t.Setenv("PATH", "") // what other films are is ffmpeg's to say
		s, err := file.Open(context.Background(), write(t, "film.y4m", data), file.Options{})
		if err != nil {
			return
		}
		if s.Format().FrameSize() > 1<<20 {
			s.Close()
			return
		}
		_, _ = frames(s)
	})
}
