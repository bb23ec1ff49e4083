package adbserver

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/rigs/testlab"
)

func TestParseDevices(t *testing.T) {
	got := parseDevices("R58M123\tdevice\n0123\tunauthorized\nab no permissions (user in plugdev group; see [http://x.test])\n" +
		"10.0.0.2:5555  device product:p model:Pixel_6 device:d transport_id:1\nnonsense\n\n")
	want := []Device{
		{"R58M123", "device", ""}, {"0123", "unauthorized", ""},
		{"ab", "no permissions (user in plugdev group; see", ""}, {"10.0.0.2:5555", "device", "Pixel 6"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("-want +got\n", diff)
	}
	for _, d := range got[1:3] {
		if d.Problem() == "" {
			t.Errorf("%+v has no problem", d)
		}
	}
}

// TestParseOddDevices: serial numbers with blanks, missing or shared serial numbers, and unknown states.
func TestParseOddDevices(t *testing.T) {
	got := parseDevices("adb-R58M123-x9 (2)._adb-tls-connect._tcp device product:p model:SM_G991B device:d transport_id:7\n" +
		"adb-R58M123-x9 (3)._adb-tls-connect._tcp\tunauthorized\n" +
		"(no serial number)     device usb:1-4.2 product:p model:TV_Box device:d transport_id:2\n" +
		"0123456789ABCDEF       device usb:1-1 product:p model:A device:d transport_id:3\n" +
		"0123456789ABCDEF       offline usb:1-2 transport_id:4\n" +
		"R58M124                no permissions (missing udev rules? user is in the plugdev group); see [http://x.test] usb:1-3 transport_id:5\n" +
		"R58M125                shutdown usb:1-5 transport_id:6\n")
	want := []Device{
		{"adb-R58M123-x9 (2)._adb-tls-connect._tcp", "device", "SM G991B"}, {"adb-R58M123-x9 (3)._adb-tls-connect._tcp", "unauthorized", ""},
		{"usb:1-4.2", "device", "TV Box"}, {"usb:1-1", "device", "A"}, {"usb:1-2", "offline", ""},
		{"R58M124", "no permissions (missing udev rules? user is in the plugdev group); see", ""}, {"R58M125", "shutdown", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("-want +got\n", diff)
	}
}

// FuzzAnswers: whatever a server or a phone sends, reading it ends, in bounded memory.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte("0012R58M123\tdevice\nxxxx"))
	f.Add([]byte("ffff"))
	f.Add([]byte("\x01\x05\x00\x00\x00hello\x03\x01\x00\x00\x00\x00"))
	f.Add([]byte("\x01\xff\xff\xff\xff"))
	f.Add([]byte("OKAY\x00\x00\x00\x00"))
	f.Add([]byte("FAIL\x05\x00\x00\x00fault"))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		_ = readPushed(bytes.NewReader(b))
		if text, err := readMessage(bytes.NewReader(b)); err == nil {
			if list := parseDevices(text); len(list) > maxDevices {
				t.Fatalf("%d devices", len(list))
			}
		}
		for r := bytes.NewReader(b); ; {
			_, data, err := readFrame(r)
			if len(data) > maxFrame {
				t.Fatalf("a frame of %d bytes", len(data))
			}
			if err != nil {
				if !errors.Is(err, io.EOF) && r.Len() == len(b) {
					t.Fatal(err)
				}
				break
			}
		}
	})
}
