//go:build guest

package adb_test

import (
	"os/exec"
	"slices"
	"sync"
	"testing"

	"eidetic/control"
	"eidetic/control/adb"
	"eidetic/control/hid"
	"eidetic/control/hid/hidtest"
	"eidetic/internal/base/adbserver/adbtest"
)

// TestUHID runs on the box in its virtual machine: what a phone's command hid gets from us
// makes, in the kernel's own UHID driver, the devices and the events that are meant.
func TestUHID(t *testing.T) {
	if out, err := exec.Command("modprobe", "-a", "uhid", "hid-multitouch").CombinedOutput(); err != nil {
		t.Fatalf("modprobe: %v: %s", err, out)
	}
	client, phone := adbtest.NewServer(t), adbtest.NewPhone(t)
	var mu sync.Mutex
	made := map[string]*hidtest.UHID{}
	phone.OnReport(func(name string, descriptor, report []byte) {
		mu.Lock()
		defer mu.Unlock()
		if report == nil {
			made[name] = hidtest.NewUHID(t, name, descriptor)
			return
		}
		made[name].Send(report)
	})
	phone.Accept()
	phone.Connect(t, client)
	adbtest.Await(t, client, phone.Serial, "device")
	c, err := adb.Open(within(t), adb.Options{Client: client, Layout: "fr"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	keyboard, touch := hidtest.OpenInput(t, "Eidetic keyboard", ""), hidtest.OpenInput(t, "Eidetic touch", "abs")
	if _, err := c.Text(within(t), "a1"); err != nil { // on a French keyboard: Q, and Shift+1
		t.Fatal(err)
	}
	var keys []int
	for len(keys) < 6 {
		if e := keyboard.Next(); e.Kind == hidtest.KindKey && e.Value != 2 { // the kernel repeats a key that a slow machine holds for long
			keys = append(keys, int(e.Code)*10+int(e.Value))
		}
	}
	if want := []int{161, 160, 421, 21}; !slices.Equal(keys[:4], want) {
		t.Errorf("keys (10 × code + pressed) %v; want %v and two releases", keys, want)
	}
	if _, err := c.Click(within(t), 1079, 2399, control.Left); err != nil {
		t.Fatal(err)
	}
	id := touch.Await(hidtest.KindAbsolute, hidtest.CodeTouchID)
	x, y := touch.Await(hidtest.KindAbsolute, hidtest.CodeTouchX), touch.Await(hidtest.KindAbsolute, hidtest.CodeTouchY)
	if id.Value < 0 || int(x.Value)*1080/(hid.Full+1) != 1079 || int(y.Value)*2400/(hid.Full+1) != 2399 {
		t.Errorf("a finger %d at %d, %d; want one at the bottom right pixel", id.Value, x.Value, y.Value)
	}
	if up := touch.Await(hidtest.KindAbsolute, hidtest.CodeTouchID); up.Value != -1 {
		t.Errorf("the finger is %d afterwards; want it lifted", up.Value)
	}
}
