package service

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"eidetic/image/box"
	"eidetic/image/update"
	"eidetic/internal/fleet/member"
)

// TestFleetUpdateIsTheBoxes: what comes from a head goes the way of what comes from the panel: the signature is
// checked, and the unit that installs is asked once.
func TestFleetUpdateIsTheBoxes(t *testing.T) {
	root := t.TempDir()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, stranger, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := update.Keys{public}.PEM()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"usr/lib/os-release": []byte("ID=eidetic\nIMAGE_VERSION=0.2\n"), "usr/lib/appliance/update.pub": trusted} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{box.Incoming, box.UpdateRequest} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(dir)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bundle := func(key ed25519.PrivateKey, version string) *bytes.Reader {
		var b bytes.Buffer
		if err := update.Sign(&b, update.Manifest{Version: version, Minimum: "0.1"}, []byte("program"), key); err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(b.Bytes())
	}
	var u member.Updater = fleetUpdater{boxSystem{root}}
	if now, err := u.Status(); err != nil || now != (member.UpdateStatus{Running: "0.2"}) {
		t.Errorf("Status() = %+v, %v; want 0.2 and nothing else", now, err)
	}
	if err := u.Update(t.Context(), bundle(stranger, "0.3")); !errors.Is(err, update.ErrSignature) {
		t.Errorf("Update(of a stranger) = %v; want ErrSignature", err)
	}
	if err := u.Update(t.Context(), bundle(key, "0.2")); !errors.Is(err, update.ErrDowngrade) {
		t.Errorf("Update(the same version) = %v; want ErrDowngrade", err)
	}
	if _, err := os.Stat(filepath.Join(root, box.UpdateRequest)); err == nil {
		t.Error("a refused update is to be installed")
	}
	if err := u.Update(t.Context(), bundle(key, "0.3")); err != nil {
		t.Fatalf("Update() = %v; want nil", err)
	}
	if _, err := os.Stat(filepath.Join(root, box.UpdateRequest)); err != nil {
		t.Errorf("nobody is asked to install the update: %v", err)
	}
	if now, err := u.Status(); err != nil || !now.Installing || now.Running != "0.2" {
		t.Errorf("Status() = %+v, %v; want it installing", now, err)
	}
	if err := u.Update(t.Context(), bundle(key, "0.3")); !errors.Is(err, box.ErrBusy) {
		t.Errorf("Update(again) = %v; want ErrBusy", err)
	}
}
