package packet

import (
	"encoding/binary"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/nstest"
)

// TestVLANs: the link receives untagged and priority-tagged frames only.
func TestVLANs(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	c := layCable(t)
	in, err := openSocket("dev0p")
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	var out *socket
	if err := c.device.Do(func() (err error) { out, err = openSocket("eth0"); return err }); err != nil {
		t.Fatal(err)
	}
	defer out.close()
	const tagged, ours, bare = 0x8100, 0x88b5, -1 // the EtherType is for experiments
	for i, tag := range []int{7, 3<<13 | 7, 0, 5 << 13, 4094, bare} {
		b := append(make([]byte, vnetHeader), 255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 9)
		if tag != bare {
			b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, tagged), uint16(tag))
		}
		b = binary.BigEndian.AppendUint16(b, ours)
		b = append(b, make([]byte, 60)...)
		if n := out.send([]*frame{{data: append(b, byte(i))}}); n != 1 {
			t.Fatalf("frame %d was not sent", i)
		}
	}
	var got []byte
	for end := time.Now().Add(testlab.Hang); (len(got) == 0 || got[len(got)-1] != 5) && time.Now().Before(end); {
		fds := []unix.PollFd{{Fd: int32(in.fd), Events: unix.POLLIN}}
		_, _ = unix.Poll(fds, 100)
		in.receive(lab.Monotonic, func(data []byte, _ lab.Time) {
			if kind, p := (&frame{data: data}).payload(); kind == ours {
				got = append(got, p[len(p)-1])
			}
		})
	}
	if string(got) != "\x02\x03\x05" {
		t.Errorf("the link gets the frames %v; want 2, 3 and 5, which have no VLAN", got)
	}
}
