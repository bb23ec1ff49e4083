package lab

import (
	"encoding/binary"
	"io"
	"os"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// TestAwake reads the limit back from the kernel.
func TestAwake(t *testing.T) {
	testlab.NeedRoot(t)
	defer Awake()()
	f, err := os.Open(latency)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [4]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		t.Fatal(err)
	}
	if µs := int32(binary.NativeEndian.Uint32(b[:])); µs != 0 {
		t.Errorf("%s holds %d µs while Awake; want 0", latency, µs)
	}
}
