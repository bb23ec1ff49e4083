package adb_test

import (
	"context"
	"errors"
	"image"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/control"
	"eidetic/control/adb"
	"eidetic/control/controltest"
	"eidetic/control/hid"
	"eidetic/internal/base/adbserver"
	"eidetic/internal/base/adbserver/adbtest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	t.Cleanup(cancel)
	return ctx
}

// plugIn starts a server and a phone that trusts it.
func plugIn(t *testing.T) (adbserver.Client, *adbtest.Phone) {
	t.Helper()
	client, phone := adbtest.NewServer(t), adbtest.NewPhone(t)
	phone.Accept()
	phone.Connect(t, client)
	adbtest.Await(t, client, phone.Serial, "device")
	return client, phone
}

// A phone that does not trust the key says so until a person accepts it; then its commands
// work, and after the cable was pulled it comes back trusted.
func TestPhone(t *testing.T) {
	client, phone := adbtest.NewServer(t), adbtest.NewPhone(t)
	if _, err := client.Find(within(t), ""); err == nil || !strings.Contains(err.Error(), "USB debugging is off") {
		t.Errorf("Find() without a phone = %v", err)
	}
	phone.Connect(t, client)
	adbtest.Await(t, client, phone.Serial, "unauthorized")
	if _, err := client.Find(within(t), ""); err == nil || !strings.Contains(err.Error(), "accept the key") {
		t.Errorf("Find() of a phone that trusts nobody = %v; want an error that says what to do", err)
	}
	phone.Accept()
	phone.Disconnect()
	phone.Connect(t, client)
	adbtest.Await(t, client, phone.Serial, "device")
	d, err := client.Find(within(t), "")
	if want := (adbserver.Device{Serial: phone.Serial, State: "device", Model: "Simulated phone"}); d != want || err != nil {
		t.Errorf("Find() = %+v, %v; want %+v", d, err, want)
	}
	if _, err := client.Find(within(t), "other"); err == nil || !strings.Contains(err.Error(), phone.Serial) {
		t.Errorf("Find() of another = %v; want an error that lists the phones", err)
	}
	p := adb.Phone{Client: client, Serial: phone.Serial}
	if size, err := p.Size(within(t)); size != image.Pt(1080, 2400) || err != nil {
		t.Errorf("Size() = %v, %v", size, err)
	}
	ctx := within(t)
	for _, err := range []error{
		p.ForceStop(ctx, "com.android.chrome"), p.Open(ctx, "https://shop.test/it's?a=b&c", "com.android.chrome"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	state := phone.State()
	want := []string{
		"am force-stop com.android.chrome",
		`am start -a android.intent.action.VIEW -d 'https://shop.test/it'\''s?a=b&c' -p com.android.chrome`,
	}
	if !slices.Equal(state.Done, want) {
		t.Errorf("the phone did %q; want %q", state.Done, want)
	}
	testApps(t, p, phone)
	phone.Change(func(s *adbtest.State) { s.Settings["system user_rotation"] = "1" })
	if r, err := p.Rotation(ctx); r != 1 || err != nil {
		t.Errorf("Rotation() = %d, %v; want 1", r, err)
	}
	phone.Change(func(s *adbtest.State) {
		s.Viewport = "  Viewport INTERNAL: displayId=0, uniqueId=local:4619, port=0, orientation=3, " +
			"logicalFrame=[0, 0, 2400, 1080], isActive=[1]\n"
	})
	if r, err := p.Rotation(ctx); r != 3 || err != nil {
		t.Errorf("Rotation() with auto-rotate = %d, %v; want 3", r, err)
	}
	phone.Change(func(s *adbtest.State) { s.Viewport = "" })
	for says, err := range map[string]error{
		"no package of Android": p.ForceStop(ctx, "x; reboot"),
		"no absolute URL":       p.Open(ctx, "shop", ""),
		"unable to resolve":     p.Open(ctx, "https://shop.test/", "com.none.such"),
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v; want one that says %q", err, says)
		}
	}
	var failed *adbserver.CommandError
	if _, err := client.Shell(ctx, phone.Serial, "nonsense"); !errors.As(err, &failed) || failed.Status != 127 {
		t.Errorf("Shell() of an unknown command = %v; want status 127", err)
	}
}

// Keys, taps and swipes arrive as reports of a keyboard and a touch screen of the phone's
// kernel, with intervals that its stamps narrow.
func TestInput(t *testing.T) {
	client, phone := plugIn(t)
	phone.Change(func(s *adbtest.State) { s.Settings["system user_rotation"] = "1" })
	c, err := adb.Open(within(t), adb.Options{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	if size, _ := c.Size(); size != image.Pt(2400, 1080) {
		t.Errorf("Size() = %v; want the turned screen's 2400×1080", size)
	}
	before := lab.Monotonic()
	e, err := c.Key(within(t), "Ctrl+L")
	if err != nil || e.Earliest < before || e.Latest < e.Earliest || e.Latest > lab.Monotonic() {
		t.Errorf("Key() = %+v, %v; want an interval after %d", e, err, before)
	}
	if _, err := c.Text(within(t), "aB"); err != nil {
		t.Error(err)
	}
	if got, want := phone.Keys(), []string{"01 00", "01 0f", "00 00", "00 04", "00 00", "02 00", "02 05", "00 00"}; !slices.Equal(got, want) {
		t.Errorf("keyboard %q; want %q", got, want)
	}
	if _, err := c.Click(within(t), 0, 0, control.Left); err != nil {
		t.Error(err)
	}
	reports := phone.Reports()
	// The top left of the turned screen is the top right of the phone: X 32761, Y 7 of 32767.
	if got := reports[len(reports)-2]; !strings.HasPrefix(got, "Eidetic touch: 03 00 f0 7f 07 00") {
		t.Errorf("the tap is %s; want one finger at the phone's top right", got)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A key is released although its press is never confirmed: the phone has both before the box hears of either.
func TestReleaseIsSentWithItsPress(t *testing.T) {
	client, phone := plugIn(t)
	c, err := adb.Open(within(t), adb.Options{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	phone.Change(func(s *adbtest.State) { s.Flaw = "silent" })
	read := make(chan struct{}, 2)
	phone.OnReport(func(string, []byte, []byte) { read <- struct{}{} })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := c.Key(ctx, "a"); err == nil {
		t.Error("Key() = nil though the phone confirms nothing")
	}
	for limit := within(t); len(phone.Keys()) < 2 && limit.Err() == nil; {
		select { // the phone reads what is on its way
		case <-read:
		case <-limit.Done():
		}
	}
	if got, want := phone.Keys(), []string{"00 04", "00 00"}; !slices.Equal(got, want) {
		t.Errorf("keyboard %q; want %q", got, want)
	}
}

// A press that was never confirmed may have arrived: its release is sent.
func TestReleaseAfterAnUnconfirmedPress(t *testing.T) {
	client, phone := plugIn(t)
	found, err := client.Find(within(t), "")
	if err != nil {
		t.Fatal(err)
	}
	in, err := adb.NewInput(within(t), adb.Phone{Client: client, Serial: found.Serial}, 0, lab.Monotonic)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	phone.Change(func(s *adbtest.State) { s.Flaw = "silent" })
	read := make(chan struct{}, 2)
	phone.OnReport(func(string, []byte, []byte) { read <- struct{}{} })
	for _, k := range []hid.Keyboard{{Keys: [6]hid.Usage{4}}, {}} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := in.Send(ctx, k); err == nil {
			t.Errorf("Send(%v) = nil though the phone confirms nothing", k)
		}
		cancel()
	}
	for limit := within(t); len(phone.Keys()) < 2 && limit.Err() == nil; {
		select { // the phone reads what is on its way
		case <-read:
		case <-limit.Done():
		}
	}
	if got, want := phone.Keys(), []string{"00 04", "00 00"}; !slices.Equal(got, want) {
		t.Errorf("keyboard %q; want %q", got, want)
	}
}

// In whatever state the connection ends, the error says so, and a new controller works.
func TestDisconnects(t *testing.T) {
	client, phone := plugIn(t)
	for _, flaw := range []string{"dies", "silent", "no devices"} {
		phone.Change(func(s *adbtest.State) { s.Flaw = flaw })
		ctx, cancel := within(t), context.CancelFunc(func() {})
		if flaw != "dies" { // nothing comes: only the caller's patience ends it
			ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
		}
		c, err := adb.Open(ctx, adb.Options{Client: client, Serial: phone.Serial})
		if err == nil {
			_, err = c.Key(ctx, "a")
			_ = c.Close()
		}
		cancel()
		says := map[string]string{"dies": "end", "silent": "deadline", "no devices": "does not show them all"}[flaw]
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("a phone that %s: %v; want an error that says %q", flaw, err, says)
		}
		phone.Change(func(s *adbtest.State) { s.Flaw = "" })
		if flaw == "dies" {
			adbtest.Reconnect(t, client, phone)
		}
	}
	c, err := adb.Open(within(t), adb.Options{Client: client, Serial: phone.Serial})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	phone.Disconnect()
	if _, err := c.Key(within(t), "a"); err == nil {
		t.Error("Key() of a phone whose cable was pulled succeeds")
	}
}

// TestClocks: the moment at which the phone gets an event lies in its interval, though its clock is
// another one.
func TestClocks(t *testing.T) {
	client, phone := plugIn(t)
	c, err := adb.Open(within(t), adb.Options{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var timing controltest.Timing
	ctx := t.Context() // of as many events as it takes
	before := len(phone.Stamps())
	for i := range controltest.Events(t, 100) {
		act := c.Lift
		if i%2 == 0 {
			act = func(ctx context.Context) (lab.Event, error) { return c.Press(ctx, 100, 100, control.Left) }
		}
		e, err := act(ctx)
		if err != nil {
			t.Fatal(err)
		}
		stamps := phone.Stamps()[before:]
		if len(stamps) != i+1 {
			t.Fatalf("after %d events the phone has got %d; want one each", i+1, len(stamps))
		}
		timing.Add(e.Earliest, e.Latest, stamps[i])
	}
	timing.Check(t)
}

// A server that cannot be reached, and one that is none.
func TestServers(t *testing.T) {
	if _, err := (adbserver.Client{Address: "127.0.0.1:1"}).Devices(within(t)); err == nil || !strings.Contains(err.Error(), "no adb server answers") {
		t.Errorf("Devices() without a server = %v", err)
	}
	client := adbtest.NewServer(t)
	var refused *adbserver.FailError
	if _, err := client.Shell(within(t), "none", "true"); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "not found") {
		t.Errorf("Shell() on an unknown phone = %v; want the server's refusal", err)
	}
	if err := client.Connect(within(t), "127.0.0.1:1"); err == nil {
		t.Error("Connect() to nobody succeeds")
	}
}
