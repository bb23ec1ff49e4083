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
	Rate        float64         // frames per second of the film; default 60
	// Kbps is the target bit rate in kbit/s; default by the film's size.
	Kbps int
}

// ErrNoEncoder says that vpxenc is missing, and how to get it.
var ErrNoEncoder = errors.New("the program vpxenc is missing: apt-get install vpx-tools")

// WebM encodes the frames to a VP8 film at path, on a timeline of constant
// rate in which frames last as long as they stood on the screen. It needs vpxenc.
func WebM(ctx context.Context, f Frames, path string, o Options) error {
	program, err := exec.LookPath("vpxenc")
	if err != nil {
		return ErrNoEncoder
	}
	kbps := o.Kbps
	if kbps == 0 {
		in := o.Crop
		if in.Empty() {
			in = f.Format().Bounds()
		}
		kbps = max(500, in.Dx()*in.Dy()/300) // 3,000 at 1280 × 720
	}
	part := path + ".part"
	// Real-time mode, few choices looked at: the film is for eyes. A key frame every two
	// seconds lets a player seek; static blocks are skipped outright.
	cmd := exec.CommandContext(ctx, program, "--codec=vp8", "--rt", "--cpu-used=16", "--threads=2",
		"--end-usage=vbr", "--target-bitrate="+strconv.Itoa(kbps), "--min-q=4", "--max-q=40",
		"--kf-max-dist=120", "--static-thresh=100", "--lag-in-frames=0", "--quiet", "--output="+part, "-")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("film: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("film: vpxenc: %w", err)
	}
	werr := writeY4M(in, f, o, nil, ctx.Err)
	in.Close()
	err = cmd.Wait()
	if ctx.Err() != nil {
		err, werr = ctx.Err(), nil
	}
	if werr != nil && !errors.Is(werr, io.ErrClosedPipe) && (err == nil || !isPipe(werr)) {
		err = werr
	} else if err != nil && complaint.Len() > 0 {
		err = fmt.Errorf("vpxenc: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		os.Remove(part)
		return fmt.Errorf("film %s: %w", path, err)
	}
	return nil
}

// isPipe says that the encoder went away while it was fed; its own error is the better one.
func isPipe(err error) bool {
	var p *os.PathError
	return errors.As(err, &p)
}
