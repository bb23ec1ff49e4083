// Package scrcpytest is for tests of what films phones by scrcpy: a simulated server, which a simulated phone beneath
// the real adb server runs, and a real encoder, ffmpeg's libx264, for what it sends. Pictures flow in; flow out the
// bytes that scrcpy's server of a version would send.
package scrcpytest

import (
	"context"
	"encoding/binary"
	"io"
	"time"

	"eidetic/internal/base/adbserver/adbtest"
	"eidetic/internal/base/scrcpyserver/servertest"
)

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
	servertest.Serve(phone, version, func(ctx context.Context, start servertest.Start, conn io.ReadWriter) {
		s := &Stream{Options: start.Options, major: start.Major, conn: conn}
		s.hello(width, height)
		f(ctx, s)
	})
}
