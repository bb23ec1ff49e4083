package lab

import (
	"encoding/binary"
	"os"
)

// latency is the file through which Linux is told how long a processor may take to wake
// up; the limit holds while the file is open (Documentation/power/pm_qos_interface.rst).
const latency = "/dev/cpu_dma_latency"

// Awake keeps the processors from entering sleep states until release is called. A
// sleeping processor wakes at least a tenth of a millisecond late, which would delay the
// link's packets and the screen's frames. Awake does nothing if the process lacks the
// permission; see MayStayAwake.
func Awake() (release func()) {
	f, err := os.OpenFile(latency, os.O_WRONLY, 0)
	if err != nil {
		return func() {}
	}
	var none [4]byte
	binary.NativeEndian.PutUint32(none[:], 0) // microseconds
	if _, err := f.Write(none[:]); err != nil {
		_ = f.Close() // the limit was not set
		return func() {}
	}
	return func() { _ = f.Close() } // closing the file lifts the limit
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
