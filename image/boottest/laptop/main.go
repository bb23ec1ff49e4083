// Command laptop is, on a booted box, the far end of the cables of a laptop that is elsewhere: it plugs an emulated
// grabber, which films the laptop's screen, into the box's USB port of software (vhci_hcd); and what the box's keyboard
// and mouse send over the emulated USB port (dummy_hcd) goes to the laptop, as the kernel's own HID drivers have
// understood it.
//
// In flow the grabber, by USB/IP over a TCP connection that the kernel then keeps; out flow input events over another
// connection, each of 8 bytes: type, code (16 bits), value (32 bits), big endian.
package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/rigs/usbgrabber"
)

func main() {
	input := flag.String("input", "", "send what keyboard and mouse do to this address of the laptop")
	grabber := flag.String("grabber", "", "plug the grabber in that is served at this address, and end")
	flag.Parse()
	run, to := sendInput, *input
	if *grabber != "" {
		run, to = plugIn, *grabber
	}
	if err := run(to); err != nil {
		fmt.Fprintln(os.Stderr, "laptop:", err)
		os.Exit(1)
	}
}

func sendInput(to string) error {
	conn, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() { // nothing comes back but the connection's end
		_, _ = io.Copy(io.Discard, conn)
		os.Exit(0)
	}()
	fmt.Println("ready")
	return watchInput(conn)
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

// watchInput sends on what every input device of the box's gadget does, whenever it is plugged in.
func watchInput(to io.Writer) error {
	lost, events := make(chan string), make(chan []byte)
	open := map[string]bool{}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		files, err := filepath.Glob("/dev/input/event*")
		if err != nil {
			return err
		}
		for _, file := range files {
			if name, err := os.ReadFile("/sys/class/input/" + filepath.Base(file) + "/device/name"); open[file] || err != nil ||
				!strings.HasPrefix(string(name), "Eidetic") {
				continue
			}
			f, err := os.Open(file)
			if err != nil {
				continue // udev makes it still
			}
			open[file] = true
			go readInput(f, events, lost)
		}
		select {
		case <-ticker.C:
		case file := <-lost:
			delete(open, file)
		case e := <-events:
			if _, err := to.Write(e); err != nil {
				return err
			}
		}
	}
}

// readInput sends a device's events, in the form of struct input_event on 64 bits, until it is
// unplugged; then the keys are released that were down.
func readInput(f *os.File, events chan<- []byte, lost chan<- string) {
	const size, kindKey = 24, 1
	down := map[uint16]bool{}
	send := func(kind, code uint16, value uint32) {
		e := binary.BigEndian.AppendUint16(nil, kind)
		events <- binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(e, code), value)
	}
	b := make([]byte, 64*size)
	for {
		n, err := f.Read(b)
		for e := b[:n]; len(e) >= size; e = e[size:] {
			kind, code, value := binary.LittleEndian.Uint16(e[16:]), binary.LittleEndian.Uint16(e[18:]), binary.LittleEndian.Uint32(e[20:])
			if kind == kindKey {
				down[code] = value != 0
			}
			send(kind, code, value)
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			fmt.Println("input:", err)
		}
		for code, held := range down {
			if held {
				send(kindKey, code, 0)
			}
		}
		f.Close()
		lost <- f.Name()
		return
	}
}
