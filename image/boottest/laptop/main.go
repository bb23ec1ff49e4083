// Command laptop is, on a booted box, the far end of the cables of a laptop that is elsewhere: it plugs an emulated
// grabber, which films the laptop's screen, into the box's USB port of software (vhci_hcd); what the box's keyboard
// and mouse send over the emulated USB port (dummy_hcd) goes to the laptop, as the kernel's own HID drivers have
// understood it; and a simulated radio of the box's kernel, which has joined the box's own network, becomes a network
// cable of the laptop.
//
// In flow the grabber, by USB/IP over a TCP connection that the kernel then keeps; out flow input events over another
// connection, each of 8 bytes: type, code (16 bits), value (32 bits), big endian. Frames flow in both directions over a
// third one, each after its length of 16 bits.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"

	"eidetic/internal/rigs/usbgrabber"
)

func main() {
	input := flag.String("input", "", "send what keyboard and mouse do to this address of the laptop")
	grabber := flag.String("grabber", "", "plug the grabber in that is served at this address, and end")
	air := flag.String("air", "", "carry the frames of -radio to and from this address of the laptop")
	radio := flag.String("radio", "", "the radio's interface, in the network namespace -netns")
	namespace := flag.String("netns", "", "the namespace, by its name in /run/netns")
	flag.Parse()
	var err error
	switch {
	case *grabber != "":
		err = plugIn(*grabber)
	case *air != "":
		err = carryAir(*air, *radio, *namespace)
	default:
		err = sendInput(*input)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "laptop:", err)
		os.Exit(1)
	}
}

func plugIn(to string) error {
	conn, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer conn.Close()
	file, err := conn.(*net.TCPConn).File() // in the blocking mode that the kernel's threads need
	if err != nil {
		return err
	}
	defer file.Close()
	return usbgrabber.Import(file)
}
