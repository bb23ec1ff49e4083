package lab

import (
	"encoding/binary"
	"os"
)

// latency is where Linux is told how long a processor may take to wake up
// (Documentation/power/pm_qos_interface.rst), as long as the file is open.
const latency = "/dev/cpu_dma_latency"

// Awake keeps the processors from sleeping until release is called: one that
// does wakes a tenth of a millisecond late and more, and whatever a trial
// measures, from the link's packets to the frames of the screen, waits for wakes.
// Without the right to ask for it, it does nothing; MayStayAwake says which.
func Awake() (release func()) {
	f, err := os.OpenFile(latency, os.O_WRONLY, 0)
	if err != nil {
		return func() {}
	}
	var none [4]byte
	binary.NativeEndian.PutUint32(none[:], 0) // microseconds
	if _, err := f.Write(none[:]); err != nil {
		_ = f.Close() // it asked for nothing
		return func() {}
	}
	return func() { _ = f.Close() } // what was asked for ends with it
}

// MayStayAwake tells whether Awake has an effect.
func MayStayAwake() bool {
	f, err := os.OpenFile(latency, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	_ = f.Close() // nothing was written
	return true
}
