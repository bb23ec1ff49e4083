package box

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"eidetic/image/update"

	"github.com/google/go-cmp/cmp"
)

func sign(t *testing.T, version, minimum string, key ed25519.PrivateKey) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := update.Sign(&b, update.Manifest{Version: version, Minimum: minimum}, []byte("program of "+version), key); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReceive(t *testing.T) {
	b := newFakeBox(t)
	key := b.trust(t)
	good := sign(t, "0.3", "0", key)
	damaged := bytes.Clone(good)
	damaged[len(damaged)-1] ^= 1
	stranger := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	r := Receiver{Root: b.root}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		bundle []byte
		want   error
	}{
		{"damaged", t.Context(), damaged, update.ErrDamaged},
		{"cut off", t.Context(), good[:len(good)-1], update.ErrDamaged},
		{"a stranger's", t.Context(), sign(t, "0.3", "0", stranger), update.ErrSignature},
		{"the same version", t.Context(), sign(t, "0.2", "0", key), update.ErrDowngrade},
		{"older", t.Context(), sign(t, "0.1.9", "0", key), update.ErrDowngrade},
		{"needs one between", t.Context(), sign(t, "0.9", "0.5", key), update.ErrTooOld},
		{"sender gone", gone, good, context.Canceled},
		{"good", t.Context(), append(bytes.Clone(good), "more"...), nil},
		{"another", t.Context(), good, ErrBusy},
	} {
		_, err := r.Receive(c.ctx, bytes.NewReader(c.bundle))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: Receive() = %v, want %v", c.name, err, c.want)
		}
		_, statErr := os.Stat(filepath.Join(b.root, Incoming))
		if taken := statErr == nil; taken != (c.want == nil || errors.Is(c.want, ErrBusy)) {
			t.Errorf("%s: bundle accepted: %v, want %v", c.name, taken, !taken)
		}
	}
	if got := b.read(t, Incoming); got != string(good) {
		t.Errorf("the saved bundle has %d bytes, want %d", len(got), len(good))
	}
	b.read(t, UpdateRequest)
	left, err := filepath.Glob(filepath.Join(b.root, filepath.Dir(Incoming), ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files left over: %v, %v; want none, nil", left, err)
	}
}

// Of two bundles that are sent at once, the second is refused and does not disturb the first.
func TestReceiveTwoAtOnce(t *testing.T) {
	b := newFakeBox(t)
	key := b.trust(t)
	first := sign(t, "0.3", "0", key)
	r := Receiver{Root: b.root}
	slow, sender := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := r.Receive(t.Context(), slow)
		done <- err
	}()
	if _, err := sender.Write(first[:len(first)/2]); err != nil { // returns when it was read
		t.Fatal(err)
	}
	if _, err := r.Receive(t.Context(), bytes.NewReader(sign(t, "0.4", "0", key))); !errors.Is(err, ErrBusy) {
		t.Errorf("Receive() of the second bundle = %v, want %v", err, ErrBusy)
	}
	if _, err := sender.Write(first[len(first)/2:]); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("Receive() of the first bundle = %v, want nil", err)
	}
	if got := b.read(t, Incoming); got != string(first) {
		t.Errorf("the saved bundle has %d bytes, want the first one's %d", len(got), len(first))
	}
}

// The power fails after the bundle is on the disk and before its request, which is in
// memory, is written; or the request cannot be written.
func TestReceiveInterrupted(t *testing.T) {
	b := newFakeBox(t)
	good := sign(t, "0.3", "0", b.trust(t))
	r := Receiver{Root: b.root}
	b.write(t, Incoming, string(good))
	b.setup().Do(t.Context())
	if s, err := r.Status(); err != nil || s.Installing {
		t.Errorf("after a boot: %+v, %v", s, err)
	}
	requests := filepath.Join(b.root, filepath.Dir(UpdateRequest))
	b.write(t, filepath.Dir(UpdateRequest), "no folder")
	if _, err := r.Receive(t.Context(), bytes.NewReader(good)); err == nil || errors.Is(err, ErrBusy) {
		t.Errorf("without a request: %v", err)
	}
	if err := os.Remove(requests); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Receive(t.Context(), bytes.NewReader(good)); err != nil {
		t.Errorf("once more: %v", err)
	}
}

func TestUpdateStatus(t *testing.T) {
	b := newFakeBox(t)
	b.write(t, bootID, "this boot\n")
	r := Receiver{Root: b.root}
	for _, c := range []struct {
		result string
		want   UpdateStatus
	}{
		{"", UpdateStatus{Running: "0.2"}},
		{`{"version":"0.2"}`, UpdateStatus{Running: "0.2", Last: &Result{Version: "0.2"}}},
		{`{"version":"0.3"}`, UpdateStatus{Running: "0.2", Last: &Result{Version: "0.3"}, FellBack: true}},
		{`{"version":"0.3","boot_id":"another"}`, UpdateStatus{Running: "0.2", Last: &Result{Version: "0.3", BootID: "another"}, FellBack: true}},
		{`{"version":"0.3","boot_id":"this boot"}`,
			UpdateStatus{Running: "0.2", Last: &Result{Version: "0.3", BootID: "this boot"}, Installing: true}},
		{`{"error":"damaged","boot_id":"this boot"}`, UpdateStatus{Running: "0.2", Last: &Result{Error: "damaged", BootID: "this boot"}}},
		{`{"error":"damaged"}`, UpdateStatus{Running: "0.2", Last: &Result{Error: "damaged"}}},
	} {
		if c.result != "" {
			b.write(t, UpdateResult, c.result)
		}
		got, err := r.Status()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("result %q (-want +got):\n%s", c.result, d)
		}
	}
}
