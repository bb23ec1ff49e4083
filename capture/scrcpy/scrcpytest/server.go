// Package scrcpytest is for tests of what films phones by scrcpy: a simulated server, which a simulated phone beneath
// the real adb server runs, and a real encoder, ffmpeg's libx264, for what it sends. Pictures flow in; flow out the
// bytes that scrcpy's server of a version would send.
package scrcpytest

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"eidetic/internal/base/adbserver/adbtest"
)

// Jar is a file as scrcpy's server of a version is, as far as it is read: no phone can run it.
func Jar(t testing.TB, version string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	code, err := z.Create("classes.dex")
	if err == nil {
		_, err = fmt.Fprintf(code, "dex\n035\x00\x35The server version (%s) does not match the client (\x00more", version)
	}
	if err == nil {
		err = z.Close()
	}
	path := filepath.Join(t.TempDir(), "scrcpy-server")
	if err == nil {
		err = os.WriteFile(path, b.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Stream is the connection of the video, once somebody films.
type Stream struct {
	Options map[string]string // that the server was started with

	major int
	conn  io.Writer
	err   error
}

// Err is why nothing more can be sent.
func (s *Stream) Err() error { return s.err }

func (s *Stream) send(b []byte) {
	if s.err == nil {
		_, s.err = s.conn.Write(b)
	}
}

// hello is what stands before the packets.
func (s *Stream) hello(width, height int) {
	b := make([]byte, 1+64)
	copy(b[1:], "Simulated phone")
	switch {
	case s.major == 1:
		b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, uint16(width)), uint16(height))
	case s.major < 4:
		b = append(b, "h264"...)
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, uint32(width)), uint32(height))
	default:
		b = append(b, "h264"...)
	}
	s.send(b)
}

// Session says the size of what follows, where the version has such packets.
func (s *Stream) Session(width, height int) {
	if s.major >= 4 {
		s.send(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte{0x80, 0, 0, 0}, uint32(width)), uint32(height)))
	}
}

// Packet sends a packet of the encoder. stamp is on the phone's clock.
func (s *Stream) Packet(p Packet, stamp time.Duration) {
	head := uint64(stamp.Microseconds())
	config, key := uint64(1)<<63, uint64(1)<<62
	if s.major >= 4 {
		config, key = config>>1, key>>1
	}
	switch {
	case p.Config:
		head = config
	case p.Key:
		head |= key
	}
	s.Raw(head, len(p.Data), p.Data)
}

// Raw sends a packet with any head.
func (s *Stream) Raw(head uint64, size int, data []byte) {
	b := binary.BigEndian.AppendUint64(nil, head)
	s.send(append(binary.BigEndian.AppendUint32(b, uint32(size)), data...))
}

// Serve has the phone run a server of a version: f sends the pictures, which have this size, to each that films, until
// ctx ends.
func Serve(phone *adbtest.Phone, version string, width, height int, f func(ctx context.Context, s *Stream)) {
	phone.Install(func(ctx context.Context, command string, out io.Writer) byte {
		_, file, _ := strings.Cut(command, "CLASSPATH=")
		file, _, _ = strings.Cut(file, ";")
		words := strings.Fields(command)
		at := slices.Index(words, "com.genymobile.scrcpy.Server")
		if phone.File(file) == nil || at < 0 || at+1 >= len(words) {
			fmt.Fprintln(out, "Aborted")
			return 134
		}
		if asked := words[at+1]; asked != version {
			fmt.Fprintf(out, "[server] ERROR: The server version (%s) does not match the client (%s)\n"+
				"java.lang.IllegalArgumentException: \n\tat com.genymobile.scrcpy.Options.parse(Options.java:287)\n", version, asked)
			return 1
		}
		options := map[string]string{}
		for _, word := range words[at+2:] {
			key, value, _ := strings.Cut(word, "=")
			options[key] = value
		}
		major, _ := strconv.Atoi(version[:1])
		name := "scrcpy"
		if major > 1 {
			name += "_" + options["scid"]
		}
		fmt.Fprintln(out, "[server] INFO: Device: [eidetic] Simulated phone (Android 14)")
		ended := make(chan struct{})
		remove := phone.Listen(name, func(conn io.ReadWriter, closed <-chan struct{}) {
			defer close(ended)
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() {
				select {
				case <-closed:
					cancel()
				case <-ctx.Done():
				}
			}()
			s := &Stream{Options: options, major: major, conn: conn}
			s.hello(width, height)
			f(ctx, s)
		})
		defer remove()
		select {
		case <-ended:
		case <-ctx.Done():
		}
		return 0
	})
}
