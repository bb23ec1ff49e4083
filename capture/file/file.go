// Package file plays pictures from files as a capture source: Y4M films,
// folders of PNG or JPEG pictures, and raw frames. With it recordings of other tools
// (browsertime's and visualmetrics' frames, ffmpeg's output) are analysed like our own.
//
// Frames come as fast as they are asked for, with the times that the file gives:
// from the film's rate, or from numbers in pictures' names.
package file

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"eidetic/internal/lab"
)

// Options of a file source.
type Options struct {
	// Format is needed for raw files: all of it. For pictures without times in
	// their names its Rate is used, 60 by default.
	Format lab.Format
}

// Source is a capture.Source over files.
type Source struct {
	format lab.Format
	next   func(*lab.Frame) error // fills Pix, and Time when the file says it
	close  func() error
	seq    uint64
}

// Open opens the folder, the Y4M film or the raw file at path.
func Open(path string, o Options) (*Source, error) {
	s, err := open(path, o)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	if err := s.format.Validate(); err != nil {
		s.Close()
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return s, nil
}

func open(path string, o Options) (*Source, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return openPictures(path, o)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(f, 1<<20)
	start, _ := in.Peek(len(y4mMagic))
	var s *Source
	if string(start) == y4mMagic {
		s, err = newY4M(in)
	} else {
		s, err = newRaw(in, o)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s.close = f.Close
	return s, nil
}

// newRaw reads frames that lie one after another.
func newRaw(in io.Reader, o Options) (*Source, error) {
	if err := o.Format.Validate(); err != nil {
		return nil, fmt.Errorf("no Y4M film, and as raw frames: %w", err)
	}
	size := o.Format.FrameSize()
	if size == 0 {
		return nil, fmt.Errorf("raw frames cannot be %s", o.Format.Pixels)
	}
	pix := make([]byte, size)
	return &Source{format: o.Format, next: func(f *lab.Frame) error {
		f.Pix = pix
		return readFrame(in, pix)
	}}, nil
}

// readFrame fills b; a part of a frame at the end is an error.
func readFrame(in io.Reader, b []byte) error {
	n, err := io.ReadFull(in, b)
	if err == io.ErrUnexpectedEOF {
		return fmt.Errorf("the last frame is cut off: %d bytes of %d", n, len(b))
	}
	return err
}

// Format describes the frames.
func (s *Source) Format() lab.Format { return s.format }

// Next returns the next frame, and io.EOF after the last.
func (s *Source) Next(ctx context.Context) (lab.Frame, error) {
	if err := ctx.Err(); err != nil {
		return lab.Frame{}, err
	}
	var f lab.Frame
	f.Seq = s.seq
	f.Time = lab.Time(float64(s.seq) / s.format.Rate * float64(time.Second))
	if err := s.next(&f); err != nil {
		if err != io.EOF {
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
