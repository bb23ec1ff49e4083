package connect

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// One program at a time drives a device, by whichever name of its serial port.
func TestOneDriverAtATime(t *testing.T) {
	dir := t.TempDir()
	port, link := filepath.Join(dir, "ttyUSB0"), filepath.Join(dir, "by-id")
	if err := errors.Join(os.WriteFile(port, nil, 0o600), os.Symlink(port, link)); err != nil {
		t.Fatal(err)
	}
	turn, err := takeTurn("ch9329:" + port)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := takeTurn("ch9329:" + link); !errors.Is(err, ErrDriven) {
		t.Errorf("takeTurn() of a device that is driven = %v; want %v", err, ErrDriven)
	}
	if err := turn.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := takeTurn("ch9329:" + link)
	if err != nil {
		t.Fatalf("takeTurn() after the other has ended = %v; want nil", err)
	}
	again.Close()
	if free, err := takeTurn("x11::0"); free != nil || err != nil {
		t.Errorf("takeTurn() of an X server = %v, %v; want nil, nil: it serves several", free, err)
	}
}
