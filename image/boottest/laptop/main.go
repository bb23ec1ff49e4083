// Command laptop is, on a booted box, the far end of the cables of a laptop that is elsewhere: the
// pictures of its screen go into the output of the kernel's virtual video driver (vivid), which
// is looped to the driver's input and looks to the box like a grabber on an HDMI cable; and what
// the box's keyboard and mouse send over the emulated USB port (dummy_hcd) goes to the laptop, as
// the kernel's own HID drivers have understood it.
//
// In flow pictures over one TCP connection, each a whole one in YUYV; out flow input events over
// the same connection, each of 8 bytes: type, code (16 bits), value (32 bits), big endian.
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
	"sync/atomic"
	"time"
)

// The laptop's screen.
const (
	width, height = 640, 480
	pictureBytes  = 2 * width * height
)

func main() {
	to := flag.String("connect", "", "address of the laptop")
	state := flag.String("signal", "", "lost or back: pull the HDMI cable, or plug it in again, and end")
	flag.Parse()
	err := error(nil)
	if *state != "" {
		err = signal(*state == "back")
	} else {
		err = run(*to)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "laptop:", err)
		os.Exit(1)
	}
}

func run(to string) error {
	output, err := openOutput()
	if err != nil {
		return err
	}
	defer output.Close()
	conn, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer conn.Close()
	ended := make(chan error, 3)
	var newest atomic.Pointer[[]byte]
	grey := make([]byte, pictureBytes)
	for i := range grey {
		grey[i] = 128
	}
	newest.Store(&grey)
	go func() { ended <- receive(conn, &newest) }()
	go func() { ended <- show(output, &newest) }()
	go func() { ended <- watchInput(conn) }()
	fmt.Println("ready")
	return <-ended
}

// receive keeps the newest picture.
func receive(from io.Reader, newest *atomic.Pointer[[]byte]) error {
	spare := make([]byte, pictureBytes)
	for {
		if _, err := io.ReadFull(from, spare); err != nil {
			return fmt.Errorf("the laptop's pictures: %w", err)
		}
		picture := append([]byte(nil), spare...)
		newest.Store(&picture)
	}
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
