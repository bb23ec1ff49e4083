package gesture

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/rigs/testlab"
)

// raw are events as the kernel writes them: time in ms, type, code, value.
func raw(events ...[4]int) []byte {
	var b []byte
	for _, e := range events {
		b = binary.NativeEndian.AppendUint64(b, 1000)
		b = binary.NativeEndian.AppendUint64(b, uint64(1000*e[0]))
		b = binary.NativeEndian.AppendUint16(b, uint16(e[1]))
		b = binary.NativeEndian.AppendUint16(b, uint16(e[2]))
		b = binary.NativeEndian.AppendUint32(b, uint32(int32(e[3])))
	}
	return b
}

func TestRecordEvdev(t *testing.T) {
	ms := time.Millisecond
	touch := raw([4]int{0, 3, absSlot, 0}, [4]int{0, 3, absTrackingID, 7}, [4]int{0, 3, absMTX, 110}, [4]int{0, 3, absMTY, 20}, [4]int{0, 0, 0, 0},
		[4]int{8, 3, absMTX, 120}, [4]int{8, 3, absSlot, 1}, [4]int{8, 3, absTrackingID, 8}, [4]int{8, 3, absMTX, 190}, [4]int{8, 0, 0, 0},
		[4]int{16, 3, absSlot, 0}, [4]int{16, 3, absMTY, 40}, [4]int{16, 0, 0, 0}, [4]int{20, 3, absTrackingID, -1}, [4]int{20, 0, 0, 0})
	mouse := raw([4]int{0, 2, 0, 5}, [4]int{0, 0, 0, 0}, [4]int{10, 1, btnLeft, 1}, [4]int{10, 0, 0, 0}, [4]int{12, 2, 0, -15}, [4]int{12, 2, 1, 300}, [4]int{12, 0, 0, 0},
		[4]int{30, 1, btnLeft, 0}, [4]int{30, 0, 0, 0})
	// By protocol A a report lists all fingers, in any order, with numbers or without.
	listed := raw([4]int{0, 0, synMTReport, 0}, [4]int{0, 0, 0, 0}, // the end of another touch
		[4]int{5, 3, absMTX, 110}, [4]int{5, 3, absMTY, 20}, [4]int{5, 0, synMTReport, 0}, [4]int{5, 0, 0, 0},
		[4]int{9, 3, absMTX, 120}, [4]int{9, 3, absMTY, 22}, [4]int{9, 0, synMTReport, 0},
		[4]int{9, 3, absMTX, 190}, [4]int{9, 3, absMTY, 9}, [4]int{9, 0, synMTReport, 0}, [4]int{9, 0, 0, 0},
		[4]int{20, 1, btnTouch, 0}, [4]int{20, 0, synMTReport, 0}, [4]int{20, 0, 0, 0})
	numbered := raw([4]int{0, 3, absMTX, 110}, [4]int{0, 3, absMTY, 20}, [4]int{0, 3, absTrackingID, 4}, [4]int{0, 0, synMTReport, 0}, [4]int{0, 0, 0, 0},
		[4]int{8, 3, absTrackingID, 2}, [4]int{8, 3, absMTX, 190}, [4]int{8, 3, absMTY, 9}, [4]int{8, 0, synMTReport, 0},
		[4]int{8, 3, absTrackingID, 4}, [4]int{8, 3, absMTX, 120}, [4]int{8, 3, absMTY, 22}, [4]int{8, 0, synMTReport, 0}, [4]int{8, 0, 0, 0},
		[4]int{20, 3, absTrackingID, 2}, [4]int{20, 3, absMTX, 191}, [4]int{20, 3, absMTY, 9}, [4]int{20, 0, synMTReport, 0}, [4]int{20, 0, 0, 0})
	tap := raw([4]int{0, 1, btnTouch, 1}, [4]int{0, 3, absX, 3}, [4]int{0, 0, 0, 0}, [4]int{5, 1, btnTouch, 0}, [4]int{5, 0, 0, 0})
	for name, c := range map[string]struct {
		events []byte
		axes   Axes
		want   *Recording
	}{
		"touch screen, two fingers": {touch, Axes{MinX: 100, MaxX: 199, MinY: 0, MaxY: 49, Slots: true},
			&Recording{100, 50, []Sample{{0, 10, 20}, {8 * ms, 20, 20}, {16 * ms, 20, 40}}}},
		"protocol A": {listed, Axes{MinX: 100, MaxX: 199, MaxY: 49, Slots: true},
			&Recording{100, 50, []Sample{{0, 10, 20}, {4 * ms, 20, 22}}}},
		"protocol A, numbered fingers": {numbered, Axes{MinX: 100, MaxX: 199, MaxY: 49, Slots: true},
			&Recording{100, 50, []Sample{{0, 10, 20}, {8 * ms, 20, 22}}}},
		"mouse": {mouse, Axes{Mouse: true}, &Recording{200, 100, []Sample{{0, 105, 50}, {2 * ms, 90, 99}}}},
		"tap":   {tap, Axes{MaxX: 9, MaxY: 9}, &Recording{10, 10, []Sample{{0, 3, 5}, {5 * ms, 3, 5}}}},
	} {
		got, err := RecordEvdev(bytes.NewReader(c.events), c.axes, 200, 100)
		if d := cmp.Diff(c.want, got); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	}
	if _, err := RecordEvdev(bytes.NewReader(mouse[:inputEvent+3]), Axes{Mouse: true}, 200, 100); err == nil || !strings.Contains(err.Error(), "nobody made a gesture") {
		t.Errorf("a device that ends: %v", err)
	}
	if _, err := RecordEvdev(bytes.NewReader(mouse), Axes{Mouse: true}, 0, 0); err == nil {
		t.Error("a mouse without a screen made a gesture")
	}
}

func FuzzRecordEvdev(f *testing.F) {
	f.Add(raw([4]int{0, 1, btnTouch, 1}, [4]int{0, 3, absX, 3}, [4]int{0, 0, 0, 0}, [4]int{5, 1, btnTouch, 0}, [4]int{5, 0, 0, 0}), 10, false)
	f.Add(raw([4]int{0, 3, absTrackingID, 1}, [4]int{0, 3, absMTX, -3}, [4]int{0, 0, 0, 0}), 100, true)
	f.Fuzz(func(t *testing.T, events []byte, size int, slots bool) {
		defer testlab.Input(t)()
		g, err := RecordEvdev(bytes.NewReader(events), Axes{MaxX: size, MaxY: size, Slots: slots}, 0, 0)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := g.Write(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := ParseRecording(&b); err != nil {
			t.Fatalf("a recorded gesture cannot be read: %v", err)
		}
	})
}
