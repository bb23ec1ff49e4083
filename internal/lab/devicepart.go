package lab

import (
	"fmt"
	"reflect"
)

// ScreenPart says how the screen of a plugged-in device is seen: by the one of V4L2, Camera,
// RFB, X11 and Scrcpy that is set.
type ScreenPart struct {
	V4L2   string `json:"v4l2,omitempty" maxLength:"255" doc:"Device file of the grabber that the device's HDMI output leads to" example:"/dev/v4l/by-id/usb-MACROSILICON_USB3_Video-video-index0"`
	Camera string `json:"camera,omitempty" maxLength:"255" doc:"Device file of a camera that looks at the device's screen" example:"/dev/v4l/by-id/usb-046d_HD_Pro_Webcam-video-index0"`
	RFB    string `json:"rfb,omitempty" maxLength:"255" doc:"VNC server: PORT of the device itself, or HOST:PORT" example:"5900"`
	X11    string `json:"x11,omitempty" maxLength:"100" doc:"X server of the appliance" example:":0"`
	Scrcpy string `json:"scrcpy,omitempty" maxLength:"100" doc:"Serial number of an Android device that adb knows, or auto for the only one: its own encoder films its screen" example:"auto"`
	Server string `json:"server,omitempty" maxLength:"255" doc:"File of scrcpy's server, for scrcpy; without it /usr/share/scrcpy/scrcpy-server" example:"/srv/scrcpy-server-v3.3.4"`
	// What is asked of the source; what is left out is the source's choice.
	Pixels  PixelFormat    `json:"format,omitempty" enum:"BGRX,BGR24,YUYV,UYVY,NV12,GREY,MJPEG" doc:"Pixel format asked of a grabber; without it the grabber's own"`
	Size    string         `json:"size,omitempty" maxLength:"11" doc:"Size asked of a grabber, WIDTHxHEIGHT; of scrcpy the longer side alone, at most" example:"1920x1080"`
	Rate    float64        `json:"rate,omitempty" minimum:"0" maximum:"240" doc:"Pictures a second; an HDMI receiver has its signal's. Alone, or with through, it is how often the virtual device is filmed, from 30; without it 60"`
	EDID    string         `json:"edid,omitempty" maxLength:"20" doc:"Mode that an HDMI receiver offers to the device; +ycbcr and +audio after it allow more than RGB without sound" example:"1080p60"`
	Set     map[string]int `json:"set,omitempty" maxProperties:"64" doc:"Controls of the grabber, by name, set before filming"`
	Through string         `json:"through,omitempty" maxLength:"200" doc:"A rehearsal: the exact pictures of a VNC or X server, or of the virtual device, are worn as a grabber would wear them, in this order: rotate=90|180|270, scale=WIDTHxHEIGHT, dither=CODES, noise=CODES, mjpeg=QUALITY or 420, with commas between" example:"noise=1,mjpeg=80"`
	Latency []float64      `json:"latency_ms,omitempty" minItems:"2" maxItems:"2" doc:"Least and greatest time from the device's screen to a picture's time stamp; it is subtracted, and its width is part of every interval" example:"[8, 25]"`
}

// ControlsPart says how a plugged-in device is given input: by the one of Gadget, CH9329, ADB,
// RFB and X11 that is set.
type ControlsPart struct {
	Gadget string `json:"gadget,omitempty" maxLength:"100" doc:"USB device port of the appliance, or auto for the only one" example:"auto"`
	CH9329 string `json:"ch9329,omitempty" maxLength:"255" doc:"Serial port of a CH9329 chip" example:"/dev/serial/by-id/usb-1a86_USB_Serial-if00-port0"`
	ADB    string `json:"adb,omitempty" maxLength:"100" doc:"Serial number of an Android device, or auto for the only one" example:"auto"`
	RFB    string `json:"rfb,omitempty" maxLength:"255" doc:"VNC server: PORT of the device itself, or HOST:PORT" example:"5900"`
	X11    string `json:"x11,omitempty" maxLength:"100" doc:"X server of the appliance" example:":0"`

	Layout   string  `json:"layout,omitempty" maxLength:"20" default:"us" doc:"Keyboard layout that the device is set to: us, de, fr, fr-windows, ja, dvorak; with +compose (us+compose) if its Menu key is the compose key"`
	Screen   string  `json:"screen,omitempty" maxLength:"11" doc:"Pixels of the device's screen, WIDTHxHEIGHT, for gadget and ch9329; without it 1920x1080" example:"1920x1080"`
	Baud     int     `json:"baud,omitempty" doc:"Of a CH9329: 9600 or 115200; without it the chip stays as it is"`
	Touch    bool    `json:"touch,omitempty" doc:"A touch screen too, for gadget"`
	Server   string  `json:"server,omitempty" maxLength:"255" doc:"File of scrcpy's server, for adb, by which a text is pasted that no key types; without it that of the screen, or /usr/share/scrcpy/scrcpy-server" example:"/srv/scrcpy-server-v3.3.4"`
	Relative bool    `json:"relative,omitempty" doc:"A relative mouse, for gadget and ch9329: iPads and Android devices take no other"`
	Gain     float64 `json:"gain,omitempty" minimum:"0.1" maximum:"10" doc:"By how many pixels the device moves its pointer for each count of a relative mouse, as appliance control --calibrate measures; without it 1"`
}

// PowerPart says how the power of a plugged-in device is switched: by the one of Shelly, Tasmota, USB, GPIO and
// WakeOnLAN that is set.
type PowerPart struct {
	Shelly    string  `json:"shelly,omitempty" maxLength:"255" doc:"Address of a Shelly plug or relay" example:"http://192.168.1.20"`
	Tasmota   string  `json:"tasmota,omitempty" maxLength:"255" doc:"Address of a plug or relay with Tasmota" example:"http://192.168.1.21"`
	USB       string  `json:"usb,omitempty" maxLength:"30" doc:"Where the device is plugged into a USB hub that switches its ports, as the kernel calls it: the bus, then the port of each hub on the way" example:"1-1.4"`
	GPIO      string  `json:"gpio,omitempty" maxLength:"30" doc:"Line of a GPIO chip whose relay is active while the device's power is away: the chip and the line's number" example:"gpiochip0/17"`
	ActiveLow bool    `json:"active_low,omitempty" doc:"The relay is active while its line is low"`
	WakeOnLAN string  `json:"wake_on_lan,omitempty" maxLength:"17" doc:"Hardware address of a device that is woken by a magic packet" example:"00:11:22:33:44:55"`
	Relay     int     `json:"relay,omitempty" minimum:"0" maximum:"31" doc:"Which relay, as the plug numbers them; without it the only or first one"`
	Password  Secret  `json:"password,omitzero" maxLength:"255" doc:"Of the plug"`
	Boot      float64 `json:"boot_s,omitempty" minimum:"0" maximum:"900" doc:"How long the device takes to start; without it 60"`
}

// Kinds counts how many ways of switching are set: one is right.
func (p PowerPart) Kinds() int { return count(p.Shelly, p.Tasmota, p.USB, p.GPIO, p.WakeOnLAN) }

// AutoPart names the only part of its kind.
const AutoPart = "auto"

// IsVirtual says that nothing but Through and Rate is set: it is the screen of the virtual device.
func (p ScreenPart) IsVirtual() bool {
	return reflect.DeepEqual(p, ScreenPart{Through: p.Through, Rate: p.Rate}) && (p.Through != "" || p.Rate != 0)
}

// Source is the part's name as commands have it: "v4l2:/dev/video0".
func (p ScreenPart) Source() string {
	if p.Scrcpy == AutoPart {
		return "scrcpy:"
	}
	return named([][2]string{{"v4l2", p.V4L2}, {"camera", p.Camera}, {"rfb", p.RFB}, {"x11", p.X11}, {"scrcpy", p.Scrcpy}})
}

// Device is the part's name as commands have it: "ch9329:/dev/serial/by-id/…".
func (p ControlsPart) Device() string {
	all := [][2]string{{"gadget", p.Gadget}, {"ch9329", p.CH9329}, {"adb", p.ADB}, {"rfb", p.RFB}, {"x11", p.X11}}
	for i := range 3 {
		if i != 1 && all[i][1] == AutoPart {
			return all[i][0] + ":"
		}
	}
	return named(all)
}

func named(all [][2]string) string {
	for _, kind := range all {
		if kind[1] != "" {
			return kind[0] + ":" + kind[1]
		}
	}
	return ""
}

// Kinds counts how many ways of seeing the screen are set: one is right.
func (p ScreenPart) Kinds() int { return count(p.V4L2, p.Camera, p.RFB, p.X11, p.Scrcpy) }

// Kinds counts how many ways of giving input are set: one is right.
func (p ControlsPart) Kinds() int { return count(p.Gadget, p.CH9329, p.ADB, p.RFB, p.X11) }

func count(values ...string) (n int) {
	for _, v := range values {
		if v != "" {
			n++
		}
	}
	return n
}

// ParseSize parses WIDTHxHEIGHT; an empty text is 0, 0.
func ParseSize(text string) (width, height int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	var rest string
	n, _ := fmt.Sscanf(text, "%5dx%5d%s", &width, &height, &rest)
	if n != 2 || width < 1 || height < 1 || width > MaxSide || height > MaxSide {
		return 0, 0, fmt.Errorf("%.40q is no size of a screen: write it as 1920x1080, with at most %d on a side", text, MaxSide)
	}
	return width, height, nil
}
