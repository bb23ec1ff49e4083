package rfb_test

import (
	"image"
	"testing"

	"eidetic/internal/base/rfb/rfbtest"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

// server is what the suite films: a fake or a real one.
type server struct {
	address string
	paint   func(rgb uint32) // the whole screen
	stop    func()
	size    image.Point
}

func fake(cfg rfbtest.Config) func(*testing.T) server {
	return func(t *testing.T) server {
		cfg.Width, cfg.Height = 200, 100
		s := rfbtest.New(t, cfg)
		return server{s.Addr(), func(rgb uint32) { s.Paint(image.Rect(0, 0, 200, 100), rgb) }, s.Close, image.Pt(200, 100)}
	}
}

func realXvnc(t *testing.T) server {
	return shown(t, rfbtest.Xvnc(t, testlab.NeedProgram(t, "Xvnc", "Xtigervnc"), "-geometry", "200x100"))
}

func realX11vnc(t *testing.T) server {
	return shown(t, rfbtest.X11vnc(t, testlab.NeedProgram(t, "x11vnc"), testlab.NeedProgram(t, "Xvfb"), "200x100"))
}

func shown(t *testing.T, r rfbtest.Real) server {
	return server{r.Address, func(rgb uint32) { xtest.Paint(t, r.Display, rgb) }, r.Stop, image.Pt(200, 100)}
}
