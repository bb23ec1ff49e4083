package store

import (
	"io"

	"eidetic/internal/lab"
)

// Bounds in bytes of what is read of a trial's processes.
const (
	maxMemory  = 16 << 20
	maxSamples = 64 << 20
)

// ReadMemory reads the memory of a trial's processes. What is no reading, or too much, is counted and left out.
func ReadMemory(r io.Reader) (list []lab.ProcessMemory, left int, err error) {
	return readList(r, maxMemory, lab.MostMemory, func(m *lab.ProcessMemory) bool {
		m.Name = lab.OneLine(m.Name, 60)
		return m.At >= 0 && m.RSS >= 0 && m.PSS >= 0
	})
}

// ReadSamples reads what a trial's processes did.
func ReadSamples(r io.Reader) (list []lab.ProcessSample, left int, err error) {
	const day, most = 86400e9, 1 << 60
	return readList(r, maxSamples, lab.MostSamples, func(s *lab.ProcessSample) bool {
		s.Name, s.Of = lab.OneLine(s.Name, 60), lab.OneLine(s.Of, 20)
		return s.At >= 0 && s.PID >= 0 && s.TID >= 0 && s.For >= 0 && s.For < day &&
			s.Ran >= 0 && s.Ran < most && s.Waited >= 0 && s.Waited < most &&
			s.RSS >= 0 && s.RSS < 1<<56 && s.Own >= 0 && s.Own <= s.RSS && s.Counted >= 0 && s.Counted < most && s.PSS >= 0 && s.PSS < 1<<56
	})
}
