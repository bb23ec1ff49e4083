package v4l2

import (
	"fmt"
	"math"
	"syscall"

	"github.com/blackjack/webcam"
	"golang.org/x/sys/unix"
)

// settings are what is set of a device before it streams, and what it can be set
// to. The package comment says why there are two of them.
type settings interface {
	// setFormat asks for a pixel format and size; what was granted is read afterwards.
	setFormat(code uint32, width, height int) error
	rate() (float64, error) // frames per second; an error where the device has no such parameter
	setRate(float64) error
	control(id uint32) (int, error)
	setControl(id uint32, value int) error
	modes() []Mode
	close() error
}

// openSettings opens the settings of the device at path, which is open as dev and
// has buffers of the given kind. They are to be closed soon: see below.
func openSettings(path string, dev device, kind uint32) (settings, error) {
	if kind == typePlanes {
		return direct{dev: dev, kind: kind}, nil
	}
	// The library's descriptor is not close-on-exec. A program that is started
	// meanwhile would inherit it, and keep the device from streaming for as long as it
	// runs, so none is started until the settings are closed.
	syscall.ForkLock.RLock()
	cam, err := webcam.Open(path)
	if err != nil {
		syscall.ForkLock.RUnlock()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return library{cam}, nil
}

// library are the settings of a device whose pictures lie in one piece of memory.
type library struct{ cam *webcam.Webcam }

func (l library) close() error {
	defer syscall.ForkLock.RUnlock()
	return l.cam.Close()
}

func (l library) setFormat(code uint32, width, height int) error {
	_, _, _, err := l.cam.SetImageFormat(webcam.PixelFormat(code), uint32(width), uint32(height))
	return err
}

func (l library) rate() (float64, error) {
	r, err := l.cam.GetFramerate()
	return exactRate(r), err
}

// exactRate undoes the rounding of a float32 for whole rates and for those of NTSC,
// which are whole rates by 1.001.
func exactRate(rate float32) float64 {
	whole := math.Round(float64(rate))
	for _, r := range []float64{whole, whole * 1000 / 1001} {
		if float32(r) == rate {
			return r
		}
	}
	return float64(rate)
}

// setRate adds a little, because the library cuts the rate off after three digits.
func (l library) setRate(r float64) error { return l.cam.SetFramerate(float32(r + 0.0002)) }

func (l library) control(id uint32) (int, error) {
	v, err := l.cam.GetControl(webcam.ControlID(id))
	return int(v), err
}

func (l library) setControl(id uint32, value int) error {
	return l.cam.SetControl(webcam.ControlID(id), int32(value))
}

func (l library) modes() (list []Mode) {
	for code, words := range l.cam.GetSupportedFormats() {
		_, supported := known(uint32(code))
		for _, size := range l.cam.GetSupportedFrameSizes(code) {
			m := Mode{Format: words, Size: size.GetString(), Supported: supported}
			for _, rate := range l.cam.GetSupportedFramerates(code, size.MaxWidth, size.MaxHeight) {
				m.Rates = append(m.Rates, rate.String())
			}
			list = append(list, m)
		}
	}
	return list
}

// direct are the settings of a multi-planar device.
type direct struct {
	dev    device
	kind   uint32
	stride uint32 // bytes of a row to ask for; 0 leaves it to the driver
}

func (d direct) close() error { return nil } // the device is the source's

func (d direct) setFormat(code uint32, width, height int) error {
	f := newFormat(d.kind, width, height, code)
	if d.stride > 0 {
		f.setStride(d.stride)
	}
	return d.dev.ioctl(reqSetFormat, pointer(f))
}

func (d direct) rate() (float64, error) {
	var p parameters
	setU32(p[:], 0, d.kind)
	if err := d.dev.ioctl(reqGetParm, pointer(&p)); err != nil {
		return 0, err
	}
	num, den := u32(p[:], 12), u32(p[:], 16)
	if num == 0 || den == 0 {
		return 0, fmt.Errorf("the driver has an interval of %d/%d s", num, den)
	}
	return float64(den) / float64(num), nil
}

func (d direct) setRate(r float64) error {
	var p parameters
	setU32(p[:], 0, d.kind)
	setU32(p[:], 12, 1000)
	setU32(p[:], 16, uint32(r*1000+0.5))
	return d.dev.ioctl(reqSetParm, pointer(&p))
}

func (d direct) control(id uint32) (int, error) {
	var v control
	setU32(v[:], 0, id)
	err := d.dev.ioctl(reqGetControl, pointer(&v))
	return int(int32(u32(v[:], 4))), err
}

func (d direct) setControl(id uint32, value int) error {
	var v control
	setU32(v[:], 0, id)
	setU32(v[:], 4, uint32(int32(value)))
	return d.dev.ioctl(reqSetControl, pointer(&v))
}

// modes lists the formats; the size is that of the signal.
func (d direct) modes() (list []Mode) {
	const most = 256
	var f format
	setU32(f[:], 0, d.kind)
	size := "as the signal"
	if d.dev.ioctl(reqGetFormat, pointer(&f)) == nil {
		size = fmt.Sprintf("%dx%d", f.get().width, f.get().height)
	}
	for i := range uint32(most) {
		var e [64]byte // v4l2_fmtdesc: index 0, type 4, description 12, pixelformat 44
		setU32(e[:], 0, i)
		setU32(e[:], 4, d.kind)
		if d.dev.ioctl(reqEnumFormat, pointer(&e)) != nil {
			break
		}
		_, supported := known(u32(e[:], 44))
		list = append(list, Mode{Format: unix.ByteSliceToString(e[12:44]), Size: size, Supported: supported})
	}
	return list
}
