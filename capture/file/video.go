package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// ErrNoDecoder says that ffmpeg is missing, and how to get it.
var ErrNoDecoder = errors.New("it is no Y4M film and no folder: other videos need the programs ffmpeg and ffprobe " +
	"(apt-get install ffmpeg), raw frames --pixels and --size")

// lossless are ffmpeg's names of codecs that keep every pixel.
var lossless = []string{"ffv1", "ffvhuff", "huffyuv", "utvideo", "magicyuv", "rawvideo", "wrapped_avframe", "png", "apng", "qtrle",
	"v210", "zlib", "zmbv", "flashsv"}

// layouts are ffmpeg's pixel formats that ours hold without a change, and how
// ffmpeg calls ours. Others are converted to BGRX.
var layouts = map[string]struct {
	pixels lab.PixelFormat
	name   string
}{
	"yuv420p": {lab.NV12, "nv12"}, "nv12": {lab.NV12, "nv12"},
	"yuv422p": {lab.YUYV, "yuyv422"}, "yuyv422": {lab.YUYV, "yuyv422"}, "uyvy422": {lab.UYVY, "uyvy422"},
	"gray": {lab.Grey, "gray"}, "bgr24": {lab.BGR24, "bgr24"},
	"bgr0": {lab.BGRX, "bgr0"}, "bgra": {lab.BGRX, "bgr0"}, "rgb24": {lab.BGRX, "bgr0"}, "gbrp": {lab.BGRX, "bgr0"},
	"rgb0": {lab.BGRX, "bgr0"}, "rgba": {lab.BGRX, "bgr0"}, "0rgb": {lab.BGRX, "bgr0"}, "argb": {lab.BGRX, "bgr0"},
}

// matrices are ffmpeg's names of the colour matrices. Phones film in 601 whatever the size.
var matrices = map[string]lab.Matrix{ // constant
	"bt709": lab.BT709, "smpte170m": lab.BT601, "bt470bg": lab.BT601, "bt2020nc": lab.BT2020, "smpte240m": lab.SMPTE240M,
}

// film is what ffprobe says of a video.
type film struct {
	format lab.Format
	layout string // ffmpeg's name of format.Pixels
	lossy  string
	bare   string // ffmpeg's name of the format if it is one of bare
	codec  string // ffmpeg's name
	// isTurned: the container says that the pictures are to be turned or mirrored, which ffmpeg then does.
	isTurned bool
}

// maxAnswer bounds what is read of ffprobe's answer.
const maxAnswer = 1 << 20

// bare are ffmpeg's names of streams without a container. They have no times: ffmpeg assumes 25 frames a second.
var bare = []string{"h264", "hevc", "vvc", "m4v", "mpegvideo", "obu", "evc", "mjpeg", "h263", "vc1"} // constant

// openVideo has ffmpeg decode the video at path. rate is that of a stream without times, 0 if it is unknown.
func openVideo(ctx context.Context, path string, rate float64) (*Source, error) {
	probe, err := exec.LookPath("ffprobe")
	if err != nil {
		return nil, ErrNoDecoder
	}
	decoder, err := exec.LookPath("ffmpeg")
	if err != nil {
		return nil, ErrNoDecoder
	}
	// The path must not be taken as an option or as a protocol.
	path = "file:" + path
	const asked = "format=format_name:stream=codec_name,width,height,pix_fmt,color_space,color_range,avg_frame_rate,r_frame_rate:" +
		"stream_side_data=rotation"
	cmd := exec.CommandContext(ctx, probe, "-v", "error", "-select_streams", firstVideo, "-print_format", "json", "-show_entries", asked, path)
	answer, words := &limited{left: maxAnswer}, &complaint{}
	cmd.Stdout, cmd.Stderr = answer, words
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("no video that ffmpeg reads: %s", orElse(words.String(), err))
	}
	f, err := parseProbe(answer.kept.Bytes())
	if err != nil {
		return nil, err
	}
	if f.bare != "" {
		if rate == 0 {
			return nil, fmt.Errorf("a %s stream without a container has no times of its frames: record into one (mp4, mkv, webm), "+
				"or give the rate with --rate if it is constant", f.bare)
		}
		f.format.Rate = rate
		if err := f.format.Validate(); err != nil {
			return nil, err
		}
	}
	return f.decode(ctx, decoder, path)
}

// firstVideo is the first video that is no cover or thumbnail.
const firstVideo = "V:0"

// orElse returns a program's own words, or the error when it said nothing.
func orElse(words string, err error) string {
	if strings.Contains(words, "moov atom not found") {
		return "the index (moov) is missing, which a recorder writes when it ends: it was killed, or the file was cut off; record again, " +
			"or have a program repair it (untrunc)"
	}
	if words = strings.TrimSpace(ofPart.ReplaceAllString(words, "")); words != "" {
		return words
	}
	return err.Error()
}

// ofPart is the part of ffmpeg that says something, with its address in memory.
var ofPart = regexp.MustCompile(`(?m)^\[[^\]]* @ 0x[0-9a-f]+\] `) // constant

// limited keeps the first bytes written to it, and refuses the rest. The buffer
// is not embedded: its ReadFrom would go past Write.
type limited struct {
	kept bytes.Buffer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, errors.New("too long an answer")
	}
	return l.kept.Write(b)
}

// complaint keeps the first bytes written to it and drops the rest: a program whose
// standard error is closed would end.
type complaint struct{ kept bytes.Buffer }

const maxComplaint = 1 << 10

func (c *complaint) Write(b []byte) (int, error) {
	c.kept.Write(b[:min(len(b), maxComplaint-c.kept.Len())])
	return len(b), nil
}

func (c *complaint) String() string { return c.kept.String() }

// parseProbe reads ffprobe's JSON.
func parseProbe(answer []byte) (film, error) {
	var a struct {
		Format struct {
			Name string `json:"format_name"`
		} `json:"format"`
		Streams []struct {
			Codec   string `json:"codec_name"`
			Width   int    `json:"width"`
			Height  int    `json:"height"`
			Pixels  string `json:"pix_fmt"`
			Space   string `json:"color_space"`
			Range   string `json:"color_range"`
			Average string `json:"avg_frame_rate"`
			Lowest  string `json:"r_frame_rate"`
			Sides   []struct {
				Rotation *float64 `json:"rotation"`
			} `json:"side_data_list"`
		} `json:"streams"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return film{}, fmt.Errorf("ffprobe's answer: %w", err)
	}
	if len(a.Streams) == 0 {
		return film{}, errors.New("the file holds no video")
	}
	s := a.Streams[0]
	isTurned := false // or mirrored, which may be by 0 degrees: what players do with the pictures, as phones store them
	for _, side := range s.Sides {
		if side.Rotation != nil {
			isTurned = math.Mod(*side.Rotation, 90) == 0
			if isTurned && math.Mod(*side.Rotation, 180) != 0 {
				s.Width, s.Height = s.Height, s.Width
			}
		}
	}
	f := film{format: lab.Format{Pixels: lab.BGRX, Width: s.Width, Height: s.Height}, layout: "bgr0", codec: s.Codec,
		isTurned: isTurned}
	for _, v := range []string{s.Average, s.Lowest, "60/1"} {
		if rate, err := ratio(v); err == nil && f.format.Rate == 0 {
			f.format.Rate = rate
		}
	}
	// Between layouts of Y′CbCr, ffmpeg would compress full range to limited.
	if l, ok := layouts[s.Pixels]; ok && (l.pixels == lab.BGRX || !isTurned && (s.Range != "pc" || !l.pixels.IsYCbCr())) {
		f.format.Pixels, f.layout = l.pixels, l.name
	} else {
		f.lossy = "converted from " + s.Pixels
	}
	if f.format.Pixels == lab.YUYV && s.Width%2 == 1 {
		f.format.Pixels, f.layout, f.lossy = lab.BGRX, "bgr0", "converted from "+s.Pixels
	}
	if f.format.Pixels.IsYCbCr() {
		f.format.Matrix = matrices[s.Space]
		if s.Range == "tv" {
			f.format.Range = lab.LimitedRange
		}
	}
	if !slices.Contains(lossless, s.Codec) {
		f.lossy = strings.TrimSuffix("a video compressed with "+s.Codec+", "+f.lossy, ", ")
	}
	if slices.Contains(bare, a.Format.Name) {
		f.bare = a.Format.Name
	}
	if s.Width == 0 || s.Height == 0 {
		return film{}, fmt.Errorf("ffmpeg finds no size of its pictures (%s): make another video of it, or pictures for --frames", s.Codec)
	}
	if err := f.format.Validate(); err != nil {
		return film{}, err
	}
	return f, nil
}

// ratio reads "60000/1001".
func ratio(s string) (float64, error) {
	above, below, _ := strings.Cut(s, "/")
	a, err := strconv.ParseFloat(above, 64)
	if err != nil {
		return 0, err
	}
	b, err := strconv.ParseFloat(below, 64)
	if err != nil {
		return 0, err
	}
	if v := a / b; v > 0 && v <= 1000 {
		return v, nil
	}
	return 0, fmt.Errorf("%s is no rate", s)
}

// cutWords are ffmpeg's for a file that ends too early. It decodes what there is, and succeeds.
var cutWords = regexp.MustCompile(`(?m)^.*(?:partial file|ended prematurely|[Tt]runcated).*$`) // constant

// decode starts ffmpeg, which writes raw frames to a pipe, and their times beside them: a container's packets need not be
// frames (some are only decoded from, as VP8's golden frames, or not at all, behind a cut).
func (f film) decode(ctx context.Context, program, path string) (*Source, error) {
	ctx, cancel := context.WithCancel(ctx)
	args := []string{"-v", "level+info", "-hide_banner", "-nostats", "-nostdin", "-noautorotate", "-i", path, "-map", "0:" + firstVideo,
		"-vf", "showinfo=checksum=0", "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", f.layout, "-"}
	if f.isTurned {
		args = slices.DeleteFunc(args, func(a string) bool { return a == "-noautorotate" })
	}
	if f.bare != "" {
		args = append([]string{"-r", strconv.FormatFloat(f.format.Rate, 'f', -1, 64)}, args...)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	told := newTold()
	told.size, told.codec = image.Pt(f.format.Width, f.format.Height), f.codec
	cmd.Stderr = told
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("ffmpeg: %w", err)
	}
	pix := make([]byte, f.format.FrameSize())
	n := 0
	ended := false
	wait := func() error {
		if ended {
			return nil
		}
		ended = true
		return cmd.Wait()
	}
	return &Source{
		format: f.format, lossy: f.lossy,
		next: func(frame context.Context, fr *lab.Frame) error {
			// ffmpeg may wait for a slow file for as long as it likes, we do not.
			kept := context.AfterFunc(frame, cancel)
			defer kept()
			if ended { // and its damage was told
				return io.EOF
			}
			err := readFrame(out, pix)
			if frame.Err() != nil {
				return frame.Err()
			}
			if errors.Is(err, io.EOF) || errors.Is(err, ErrCut) { // or ffmpeg itself has ended too early
				if other := told.otherSize(); other != nil {
					return other
				}
				if werr := wait(); werr != nil {
					return fmt.Errorf("ffmpeg: %s", orElse(told.words.String(), werr))
				}
				if cut := cutWords.FindString(told.words.String()); cut != "" {
					return fmt.Errorf("%w: ffmpeg: %s", ErrCut, cut)
				}
				if hurt := told.damaged(); hurt != nil {
					return hurt
				}
				return err
			}
			if err != nil {
				return err
			}
			if n == maxPictures {
				return fmt.Errorf("more than %d frames", maxPictures)
			}
			fr.Pix = pix
			if fr.Time, err = told.time(n, fr.Time); err != nil {
				return err
			}
			n++
			return nil
		},
		close: func() error {
			cancel()
			_ = wait() // it was ended by us, or Next has told its error
			return nil
		},
	}, nil
}
