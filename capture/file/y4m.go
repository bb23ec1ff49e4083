package file

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// y4mMagic starts a YUV4MPEG2 stream (mjpegtools, yuv4mpeg(5)).
const y4mMagic = "YUV4MPEG2 "

// errOtherY4M says that a film is left to ffmpeg.
var errOtherY4M = errors.New("are not read") // constant

// maxLine bounds a header line.
const maxLine = 4096

// newY4M reads 8-bit films: 4:2:0 becomes NV12, 4:2:2 YUYV, mono GREY.
func newY4M(in *bufio.Reader) (*Source, error) {
	line, err := header(in)
	if err != nil {
		return nil, err
	}
	f := lab.Format{Pixels: lab.NV12}
	for _, field := range strings.Fields(line)[1:] {
		value := field[1:]
		switch field[0] {
		case 'W':
			f.Width, err = strconv.Atoi(value)
		case 'H':
			f.Height, err = strconv.Atoi(value)
		case 'F':
			num, den := 0, 0
			if _, err = fmt.Sscanf(value, "%d:%d", &num, &den); err == nil && (num <= 0 || den <= 0) {
				err = errors.New("not a rate")
			}
			f.Rate = float64(num) / float64(max(1, den))
		case 'I':
			if value != "p" && value != "?" {
				err = fmt.Errorf("interlaced films %w", errOtherY4M)
			}
		case 'X':
			switch value { // FFmpeg's words
			case "COLORRANGE=FULL":
				f.Range = lab.FullRange
			case "COLORRANGE=LIMITED":
				f.Range = lab.LimitedRange
			}
		case 'C':
			switch value {
			case "420", "420jpeg", "420mpeg2", "420paldv":
			case "422":
				f.Pixels = lab.YUYV
			case "mono":
				f.Pixels = lab.Grey
			default:
				err = fmt.Errorf("colour spaces other than 8-bit 420, 422 and mono %w", errOtherY4M)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("Y4M header, field %q: %w", field, err)
		}
	}
	if err := f.Validate(); err != nil {
		return nil, fmt.Errorf("Y4M header: %w", err)
	}
	if f.Pixels == lab.YUYV && f.Width%2 == 1 {
		return nil, fmt.Errorf("Y4M header: 4:2:2 films of odd width %w", errOtherY4M)
	}
	y := y4m{in: in, format: f, pix: make([]byte, f.FrameSize())}
	if f.Pixels != lab.Grey {
		y.planes = make([]byte, f.FrameSize())
	}
	return &Source{format: f, next: y.frame}, nil
}

// header reads one line without its end.
func header(in *bufio.Reader) (string, error) {
	var line []byte
	for len(line) < maxLine {
		b, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return "", fmt.Errorf("Y4M header: %w", err)
		}
		if b == '\n' {
			return string(line), nil
		}
		line = append(line, b)
	}
	return "", fmt.Errorf("Y4M header: a line of more than %d bytes", maxLine)
}

// y4m turns a film's planes into the interleaved formats of grabbers.
type y4m struct {
	in          *bufio.Reader
	format      lab.Format
	pix, planes []byte
}

func (y *y4m) frame(_ context.Context, f *lab.Frame) error {
	if _, err := y.in.Peek(1); err != nil { // io.EOF, and else the file cannot be read
		return err
	}
	line, err := header(y.in)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: there is nothing but its head", ErrCut)
	}
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "FRAME") {
		return fmt.Errorf("the line %.20q stands where FRAME should", line)
	}
	f.Pix = y.pix
	if y.format.Pixels == lab.Grey {
		return readAll(y.in, y.pix)
	}
	if err := readAll(y.in, y.planes); err != nil {
		return err
	}
	w, h := y.format.Width, y.format.Height
	luma := y.planes[:w*h]
	u := y.planes[w*h:][:(len(y.planes)-w*h)/2]
	v := y.planes[w*h+len(u):]
	if y.format.Pixels == lab.NV12 {
		copy(y.pix, luma)
		for i := range u {
			y.pix[w*h+2*i], y.pix[w*h+2*i+1] = u[i], v[i]
		}
		return nil
	}
	for i := range u {
		o := y.pix[4*i : 4*i+4 : 4*i+4]
		o[0], o[1], o[2], o[3] = luma[2*i], u[i], luma[2*i+1], v[i]
	}
	return nil
}

// readAll is readFrame where an end is always too early.
func readAll(in io.Reader, b []byte) error {
	err := readFrame(in, b)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: there is nothing but its head", ErrCut)
	}
	return err
}
