// Package file plays pictures from files as a capture source: Y4M films,
// folders of PNG or JPEG pictures, raw frames, and any video that ffmpeg
// decodes. With it recordings of other tools (browsertime's and visualmetrics'
// frames, screen recordings of telephones) are analysed like our own.
//
// Frames come as fast as they are asked for, with the times that the file
// gives: of each packet of a video, from a film's rate, or from numbers in
// pictures' names. Y4M is YUV4MPEG2 (mjpegtools, yuv4mpeg(5)).
package file

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"eidetic/internal/lab"
)

// Options of a file source.
type Options struct {
	// Format is needed for raw files: all of it. For pictures its Rate is that of
	// names that count frames, see OpenFolder; for a stream without times, that of its frames.
	Format lab.Format
}

// Source is a capture.Source over files.
type Source struct {
	format lab.Format
	next   func(context.Context, *lab.Frame) error // fills Pix, and Time when the file says it
	close  func() error
	seq    uint64
	lossy  string
}

// Open opens the folder, the Y4M film, the raw file or the video at path.
func Open(ctx context.Context, path string, o Options) (*Source, error) {
	s, err := open(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	if err := s.format.Validate(); err != nil {
		s.Close()
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return s, nil
}

func open(ctx context.Context, path string, o Options) (*Source, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		f, err := OpenFolder(path, o.Format.Rate)
		if err != nil {
			return nil, err
		}
		return f.source(), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(f, 1<<20)
	start, _ := in.Peek(len(y4mMagic))
	var s *Source
	switch {
	case len(start) == 0:
		err = errEmpty
	case string(start) == y4mMagic:
		if s, err = newY4M(in); errors.Is(err, errOtherY4M) {
			f.Close()
			if s, byOther := openVideo(ctx, path, o.Format.Rate); byOther == nil || !errors.Is(byOther, ErrNoDecoder) {
				return s, byOther
			}
			return nil, fmt.Errorf("%w without ffmpeg (apt-get install ffmpeg)", err)
		}
	case o.Format.Pixels != "" && o.Format.Width > 0:
		s, err = newRaw(in, o)
	default:
		f.Close()
		return openVideo(ctx, path, o.Format.Rate)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s.close = f.Close
	return s, nil
}

// source plays the folder.
func (p *Folder) source() *Source {
	n := 0
	return &Source{format: p.format, lossy: p.NotLossless(), next: func(_ context.Context, f *lab.Frame) error {
		if n == p.Len() {
			return io.EOF
		}
		var err error
		f.Time = p.files[n].time
		f.Pix, err = p.Pixels(n)
		n++
		return err
	}}
}

// newRaw reads frames that lie one after another.
func newRaw(in io.Reader, o Options) (*Source, error) {
	if o.Format.Rate == 0 {
		o.Format.Rate = 60
	}
	if err := o.Format.Validate(); err != nil {
		return nil, fmt.Errorf("raw frames: %w", err)
	}
	size := o.Format.FrameSize()
	if size == 0 {
		return nil, fmt.Errorf("raw frames cannot be %s", o.Format.Pixels)
	}
	pix := make([]byte, size)
	return &Source{format: o.Format, next: func(_ context.Context, f *lab.Frame) error {
		f.Pix = pix
		return readFrame(in, pix)
	}}, nil
}

// ErrCut says that a film ends within a frame: the frames before it are whole.
var ErrCut = errors.New("the last frame is cut off") // constant

// errEmpty says that nothing is in a file.
var errEmpty = errors.New("the file is empty") // constant

// readFrame fills b; a part of a frame at the end is ErrCut.
func readFrame(in io.Reader, b []byte) error {
	n, err := io.ReadFull(in, b)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %d bytes of %d", ErrCut, n, len(b))
	}
	return err
}

// Format describes the frames.
func (s *Source) Format() lab.Format { return s.format }

// NotLossless says why the pixels are not what the screen showed, "" if they may be.
func (s *Source) NotLossless() string { return s.lossy }

// Next returns the next frame, and io.EOF after the last.
func (s *Source) Next(ctx context.Context) (lab.Frame, error) {
	if err := ctx.Err(); err != nil {
		return lab.Frame{}, err
	}
	var f lab.Frame
	f.Seq = s.seq
	f.Time = lab.Time(float64(s.seq) / s.format.Rate * float64(time.Second))
	if err := s.next(ctx, &f); err != nil {
		if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("frame %d: %w", s.seq, err)
		}
		return lab.Frame{}, err
	}
	f.Changed = append(f.Changed, s.format.Bounds())
	s.seq++
	return f, nil
}

// Close closes the file.
func (s *Source) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}
