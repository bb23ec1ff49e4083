package device

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"eidetic/capture/v4l2"
	"eidetic/internal/base/adbserver"
)

// What is plugged in is listed with the name by which it is used; what cannot be asked is a
// problem and hides nothing else.
func TestFound(t *testing.T) {
	unreachable := errors.New("there is no adb")
	look := Look{
		Root: fstest.MapFS{
			"dev/serial/by-id/usb-1a86_USB_Serial-if00-port0":      {},
			"dev/serial/by-id/usb-FTDI_FT232R_A50285BI-if00-port0": {},
			"sys/class/udc/fe980000.usb/state":                     {Data: []byte("not attached\n")},
		},
		Phones: true, ADB: adbserver.Client{Address: "127.0.0.1:1", Start: func(context.Context) error { return unreachable }},
	}
	got, problems := Found(t.Context(), look)
	want := []Part{
		{Kind: PartSerial, Use: "ch9329:/dev/serial/by-id/usb-1a86_USB_Serial-if00-port0", Name: "1a86 USB Serial",
			State: "a cable as it is sold with a CH9329", Ready: true},
		{Kind: PartSerial, Use: "ch9329:/dev/serial/by-id/usb-FTDI_FT232R_A50285BI-if00-port0", Name: "FTDI FT232R A50285BI",
			State: "a serial port of another kind", Ready: true},
		{Kind: PartUSB, Use: "gadget:fe980000.usb", Name: "fe980000.usb", State: "not attached", Ready: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("-want +got\n", diff)
	}
	if len(problems) != 1 || !errors.Is(problems[0], unreachable) {
		t.Errorf("problems %v; want the adb server's", problems)
	}
	if p := grabberPart(v4l2.Grabber{Path: "/dev/video0", Card: "x", NeedsEDID: true}); p.Ready || p.Problem == "" {
		t.Errorf("a grabber without an EDID is %+v; want a problem", p)
	}
}
