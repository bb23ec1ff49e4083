package device

import (
	"context"
	"io/fs"

	"eidetic/capture/v4l2"
	"eidetic/control/ch9329"
	"eidetic/control/gadget"
	"eidetic/internal/base/adbserver"
)

// Kinds of parts.
const (
	PartGrabber = "grabber"
	PartSerial  = "serial port"
	PartUSB     = "USB device port"
	PartPhone   = "phone"
)

// Part is something plugged into this machine of which a device can be made.
type Part struct {
	Kind    string `json:"kind"`
	Use     string `json:"use"` // how commands name it: "ch9329:/dev/serial/by-id/…"
	Name    string `json:"name,omitempty"`
	State   string `json:"state,omitempty"`
	Ready   bool   `json:"ready"`
	Problem string `json:"problem,omitempty"` // what is wrong, and how to mend it
}

// Look is where parts are looked for.
type Look struct {
	Root     fs.FS  // the root of the file system
	Grabbers string // pattern of V4L2's device files; "" looks for none
	Phones   bool   // ask the adb server
	ADB      adbserver.Client
}

// Found lists the parts that are plugged in, and the reasons for what could not be looked for.
func Found(ctx context.Context, l Look) (parts []Part, problems []error) {
	if l.Grabbers != "" {
		list, err := v4l2.List(l.Grabbers)
		if err != nil {
			problems = append(problems, err)
		}
		for _, g := range list {
			parts = append(parts, grabberPart(g))
		}
	}
	serial, err := ch9329.Ports(l.Root)
	if err != nil {
		problems = append(problems, err)
	}
	for _, p := range serial {
		part := Part{Kind: PartSerial, Use: "ch9329:" + p.Path, Name: p.Name, Ready: true, State: "a serial port of another kind"}
		if p.Likely {
			part.State = "a cable as it is sold with a CH9329"
		}
		parts = append(parts, part)
	}
	usb, err := gadget.Ports(l.Root)
	if err != nil {
		problems = append(problems, err)
	}
	for _, p := range usb {
		part := Part{Kind: PartUSB, Use: "gadget:" + p.Name, Name: p.Name, State: p.State, Ready: true}
		if p.Emulated {
			part.State += ", emulated by dummy_hcd: its device is this machine itself"
		}
		parts = append(parts, part)
	}
	if l.Phones {
		phones, err := l.ADB.Devices(ctx)
		if err != nil {
			problems = append(problems, err)
		}
		for _, d := range phones {
			parts = append(parts, Part{
				Kind: PartPhone, Use: "adb:" + d.Serial, Name: d.Model, State: d.State, Problem: d.Problem(), Ready: d.Problem() == "",
			})
		}
	}
	return parts, problems
}

func grabberPart(g v4l2.Grabber) Part {
	p := Part{Kind: PartGrabber, Use: "v4l2:" + g.Path, Name: g.Card, State: g.Signal, Problem: g.Problem}
	if p.Problem == "" && g.NeedsEDID {
		p.Problem = "it has no EDID, so a source sends nothing: give it one, with edid: 1080p60 of a device's screen or " +
			"appliance capture film --edid 1080p60"
	}
	if p.Problem == "" && g.NoSignal {
		p.Problem = g.Signal + ": is the device on, and the HDMI cable plugged in at both ends?"
	}
	p.Ready = p.Problem == ""
	return p
}
