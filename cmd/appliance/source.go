package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"strconv"
	"strings"

	"eidetic/capture"
	"eidetic/capture/source"
	"eidetic/internal/base/bounded"
	"eidetic/internal/lab"
)

// sourceFlags name a screen to film, for every command that films one.
type sourceFlags struct {
	Source       string  `required:"" placeholder:"SOURCE" help:"x11:DISPLAY (x11::99), v4l2:DEVICE (v4l2:/dev/video0), rfb:HOST:PORT or rfb:unix:PATH (a VNC server), scrcpy: or scrcpy:SERIAL (an Android phone), file:PATH (a Y4M film, a folder of PNG, JPEG or WebP, raw frames with --pixels and --size, any video that ffmpeg decodes), or synthetic:CONTENT (static, load, scroll, noise)."`
	Rate         float64 `placeholder:"FPS" help:"Frames per second, for sources that can choose (60), raw frames (60), video streams without a container, and pictures whose names count frames."`
	Size         string  `placeholder:"WxH" help:"Size of a synthetic screen (1280x720), or to ask a grabber for; of a phone the longer side, at most."`
	Pixels       string  `placeholder:"FORMAT" help:"Pixel format of a synthetic screen (BGRX), or to ask a grabber for."`
	PasswordFile string  `type:"existingfile" placeholder:"FILE" help:"A file whose first line is the VNC server's password."`
	// A control's name holds spaces, its value is a number.
	Control map[string]int `mapsep:"none" placeholder:"NAME=VALUE" help:"Set a grabber's or camera's control first; appliance devices --json lists them."`
	Through string         `placeholder:"STEPS" help:"Degrade exact pictures as a grabber would: rotate=90, scale=1920x1080, dither=4, noise=1, mjpeg=80 or 420, with commas between."`
	Server  string         `type:"existingfile" placeholder:"FILE" help:"The file of scrcpy's server (/usr/share/scrcpy/scrcpy-server)."`
	EDID    string         `name:"edid" placeholder:"MODE" help:"Give an HDMI receiver an EDID that offers one mode: 720p50, 60, 100 or 120; 1080p24, 25, 30, 50, 60, 100 or 120; 2160p30. It asks for RGB without sound; 1080p60+ycbcr+audio allows YCbCr and sound."`
}

// format is the format that the flags ask for.
func (s *sourceFlags) format() (lab.Format, error) {
	f := lab.Format{Pixels: lab.PixelFormat(s.Pixels), Rate: s.Rate}
	if s.Size != "" {
		size, err := parseSize("--size", s.Size)
		if err != nil {
			return f, usage(err)
		}
		f.Width, f.Height = size.X, size.Y
	}
	return f, nil
}

// parseSize reads the size of a screen from a flag.
func parseSize(flag, text string) (size image.Point, err error) {
	width, height, _ := strings.Cut(text, "x")
	x, errX := strconv.Atoi(width)
	y, errY := strconv.Atoi(height)
	if errX != nil || errY != nil || x < 1 || y < 1 {
		return size, fmt.Errorf("%s %q is not of the form WIDTHxHEIGHT", flag, text)
	}
	return image.Pt(x, y), nil
}

// open opens the source.
func (s *sourceFlags) open(ctx context.Context) (capture.Source, error) {
	f, err := s.format()
	if err != nil {
		return nil, err
	}
	password, err := readPassword(s.PasswordFile)
	if err != nil {
		return nil, usage(err)
	}
	src, err := source.Open(ctx, source.Options{
		Name: s.Source, Format: f, Password: password, Controls: s.Control, EDID: s.EDID, Through: s.Through, Server: s.Server,
	})
	var wrong *source.OptionError
	switch {
	case errors.As(err, &wrong):
		return nil, usage(fmt.Errorf("--source: %w", err))
	case err != nil:
		return nil, cannot(err)
	}
	return src, nil
}

// readPassword returns a file's first line; no file means no password.
func readPassword(path string) (none lab.Secret, err error) {
	if path == "" {
		return none, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return none, fmt.Errorf("password file: %w", err)
	}
	defer f.Close()
	const longest = 1 << 10
	b, err := io.ReadAll(io.LimitReader(f, longest))
	if err != nil {
		return none, fmt.Errorf("password file: %w", err)
	}
	line, _, _ := bytes.Cut(bounded.UTF8(b), []byte("\n"))
	return lab.NewSecret(strings.TrimRight(string(line), "\r")), nil
}
