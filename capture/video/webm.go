package video

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Options of a film.
type Options struct {
	First, Last int             // frames, inclusive; Last 0 means the last one
	Crop        image.Rectangle // part of the picture; default all of it
	Width       int             // scaled down to this many pixels; default unscaled
	Rate        float64         // of a film of constant rate, frames per second; default 60
	// Ended hears of the encoder's end; nil does nothing.
	Ended func(*os.ProcessState)
}

// ErrNoEncoder says that vpxenc is missing, and how to get it.
var ErrNoEncoder = errors.New("the program vpxenc is missing: apt-get install vpx-tools")

// WebM encodes the frames to a VP8 film at path. Only pictures that differ are
// encoded; each stands in the film at the time of its frame, to a millisecond, so
// the film's rate varies. The last frame is there as well, so that players hold
// the last picture for as long as it stood on the screen. It needs vpxenc, which runs
// at a low priority.
func WebM(ctx context.Context, f Frames, path string, o Options) error {
	fail := func(err error) error { return fmt.Errorf("film %s: %w", path, err) }
	program, err := exec.LookPath("vpxenc")
	if err != nil {
		return ErrNoEncoder
	}
	film, err := script(f, o)
	if err != nil {
		return fail(err)
	}
	part := path + ".part"
	out, err := os.Create(part)
	if err != nil {
		return fail(err)
	}
	err = film.encode(ctx, program, out)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		os.Remove(part)
		return fail(err)
	}
	return nil
}

// film is what is to be encoded: which frames, and when each is shown.
type film struct {
	frames Frames
	o      Options
	in     image.Rectangle
	shown  []int   // frames whose pictures differ, and the last one
	times  []int64 // of each, in milliseconds since the first
	length int64   // of the film, in milliseconds
}

// script chooses the frames of a film.
func script(f Frames, o Options) (*film, error) {
	first, last, err := span(f, o.First, o.Last)
	if err != nil {
		return nil, err
	}
	in, err := crop(f.Format(), o.Crop)
	if err != nil {
		return nil, err
	}
	s := &film{frames: f, o: o, in: in}
	start := f.Info(first).Time
	if length := f.Info(last).Time.Sub(start).Seconds(); length < 0 || length > longestFilm {
		return nil, fmt.Errorf("frames %d … %d span %.0f s, a film may last %d", first, last, length, longestFilm)
	}
	for i := first; i <= last; i++ {
		if i != first && i != last && !touches(f.Info(i).Changed, in) {
			continue
		}
		at := (int64(f.Info(i).Time.Sub(start)) + 5e5) / 1e6
		if n := len(s.times); n > 0 {
			at = max(at, s.times[n-1]+1) // a film has one picture at a time
		}
		s.shown, s.times = append(s.shown, i), append(s.times, at)
	}
	s.length = s.times[len(s.times)-1] + max(1, int64(1000/f.Format().Rate+0.5))
	return s, nil
}

// touches says whether a rectangle of the list has a pixel in r.
func touches(list []image.Rectangle, r image.Rectangle) bool {
	for _, c := range list {
		if c.Overlaps(r) {
			return true
		}
	}
	return false
}

// encode has the pictures encoded and writes the film.
func (s *film) encode(ctx context.Context, program string, out *os.File) error {
	p := newYUV(s.frames.Format(), s.in, s.o.Width)
	// A second thread costs many times what it saves where it has to wait for a core:
	// libvpx's threads spin. Real-time mode tries few choices, static blocks are skipped outright.
	cmd := exec.CommandContext(ctx, program, "--codec=vp8", "--ivf", "--rt", "--cpu-used=16", "--threads=1",
		"--end-usage=vbr", "--target-bitrate="+strconv.Itoa(kbps(p)), "--min-q=4", "--max-q=40",
		"--kf-max-dist="+strconv.Itoa(keyDistance), "--static-thresh=100", "--lag-in-frames=0", "--drop-frame=0",
		"--quiet", "--output=-", "-")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	packets, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := startNice(cmd); err != nil {
		return fmt.Errorf("vpxenc: %w", err)
	}
	fed := make(chan error, 1)
	go func() {
		fed <- errors.Join(s.feed(ctx, in, p), in.Close())
	}()
	writeErr := s.mux(packets, out, p)
	if writeErr != nil {
		// Nobody reads the encoder's packets any more, so it would wait for ever.
		_ = cmd.Process.Kill() // it may have ended already
	}
	feedErr := <-fed
	err = cmd.Wait()
	if s.o.Ended != nil && cmd.ProcessState != nil {
		s.o.Ended(cmd.ProcessState)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case feedErr != nil && !isPipe(feedErr):
		return feedErr
	case complaint.Len() > 0 && err != nil:
		return fmt.Errorf("vpxenc: %w: %s", err, strings.TrimSpace(complaint.String()))
	case writeErr != nil:
		return writeErr
	case err != nil:
		return fmt.Errorf("vpxenc: %w", err)
	}
	return feedErr
}

// keyDistance is the most pictures between two from which a player can begin: 60
// decode in a tenth of a second, and each such picture makes the file larger.
const keyDistance = 60

// kbps is the encoder's target, as if the pictures came at the frames' rate.
func kbps(p *yuvPicture) int {
	return max(500, p.w*p.h/60) // 15,000 at 1280 × 720, if each picture differed
}

// feed writes the pictures to the encoder as YUV4MPEG2; their times are added later.
func (s *film) feed(ctx context.Context, w io.Writer, p *yuvPicture) error {
	if _, err := fmt.Fprint(w, y4mHeader(p, s.frames.Format().Rate)); err != nil {
		return err
	}
	for n, i := range s.shown {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := show(p, s.frames, i, n == 0); err != nil {
			return err
		}
		if err := writePicture(w, p); err != nil {
			return err
		}
	}
	return nil
}

// mux reads the encoder's packets and writes the film.
func (s *film) mux(packets io.Reader, out io.WriterAt, p *yuvPicture) error {
	in, err := newIVF(packets)
	if err != nil {
		return err
	}
	m, err := newMuxer(out, p.w, p.h)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		packet, err := in.next()
		switch {
		case errors.Is(err, io.EOF) && n == len(s.shown):
			return m.finish(s.length)
		case errors.Is(err, io.EOF):
			return fmt.Errorf("vpxenc made %d of %d pictures", n, len(s.shown))
		case err != nil:
			return err
		case n == len(s.shown):
			return fmt.Errorf("vpxenc made more than %d pictures", n)
		}
		until := s.length
		if n+1 < len(s.times) {
			until = s.times[n+1]
		}
		if err := m.add(packet, s.times[n], until-s.times[n]); err != nil {
			return err
		}
	}
}

// isPipe says that the encoder ended while it was fed: its own error then says more.
func isPipe(err error) bool {
	var p *os.PathError
	return errors.As(err, &p) || errors.Is(err, io.ErrClosedPipe)
}
