package v4l2

import "eidetic/internal/lab"

// copy fills pix from a dequeued buffer as our format has it, without the driver's padding, and returns how many bytes
// there were.
func (s *Source) copy(b *buffer) int {
	mem := s.maps[b.index()]
	if s.format.Pixels == lab.MJPEG {
		return copy(s.pix, s.filled(b, 0, mem[0]))
	}
	s.pieces = s.pieces[:0]
	for i, m := range mem {
		s.pieces = append(s.pieces, s.filled(b, i, m))
	}
	return s.layout.assemble(s.pix, s.format, s.convert, s.pieces, s.strides)
}

// filled returns the part of a plane's memory that the driver has filled.
func (s *Source) filled(b *buffer, plane int, mem []byte) []byte {
	if s.kind == typeCapture {
		return mem[:min(len(mem), int(b.used()))]
	}
	p := s.planes[plane][:]
	end := min(len(mem), int(u32(p, 0)))
	return mem[min(end, int(u32(p, 16))):end]
}
