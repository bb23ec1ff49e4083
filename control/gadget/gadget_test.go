package gadget

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestPorts(t *testing.T) {
	root := fstest.MapFS{
		"sys/class/udc/fe980000.usb/state": {Data: []byte("configured\n")},
		"sys/class/udc/dummy_udc.0/state":  {Data: []byte("not attached\n")},
		"sys/class/udc/gone/other":         {},
	}
	got, err := Ports(root)
	want := []Port{{"dummy_udc.0", "not attached", true}, {"fe980000.usb", "configured", false}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Ports() = %v, %v; -want +got\n%s", got, err, diff)
	}
	if none, err := Ports(fstest.MapFS{}); len(none) != 0 || err != nil {
		t.Errorf("Ports() of a machine without gadget support = %v, %v; want none", none, err)
	}
	if p, err := choose(got, "fe980000.usb"); p != want[1] || err != nil {
		t.Errorf("choose() = %v, %v", p, err)
	}
	if p, err := choose(got[:1], ""); p != want[0] || err != nil {
		t.Errorf("choose() of one = %v, %v", p, err)
	}
	if _, err := choose(got, ""); err == nil || !strings.Contains(err.Error(), "name one of dummy_udc.0, fe980000.usb") {
		t.Errorf("choose() of two: %v", err)
	}
	if _, err := choose(got, "x"); err == nil || !strings.Contains(err.Error(), `no USB device port "x"`) {
		t.Errorf("choose() of an unknown one: %v", err)
	}
	if _, err := choose(nil, ""); !errors.Is(err, ErrNoPort) {
		t.Errorf("choose() of none: %v", err)
	}
}

// The kernel allows a gadget four HID functions.
func TestFunctions(t *testing.T) {
	for _, o := range []Options{{}, {Relative: true}, {Touch: true}, {Relative: true, Touch: true}} {
		if list := o.functions(); len(list) > 4 || list[0].name != "keyboard" {
			t.Errorf("%+v: %d functions", o, len(list))
		}
	}
}
