package update

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"eidetic/image/fat"
	"eidetic/image/fat/fattest"
	"eidetic/internal/rigs/testlab"

	"github.com/google/go-cmp/cmp"
)

var when = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)

// seededKey makes a key pair that is the same in every run.
func seededKey(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

func public(keys ...ed25519.PrivateKey) (all Keys) {
	for _, key := range keys {
		all = append(all, key.Public().(ed25519.PublicKey))
	}
	return all
}

// program is a stand-in for an EFI program: n bytes that differ by name.
func program(name string, n int) []byte {
	r := rand.New(rand.NewPCG(uint64(len(name)), uint64(name[len(name)-1])))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func bundle(t testing.TB, version, minimum string, content []byte, key ed25519.PrivateKey) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Sign(&b, Manifest{Version: version, Minimum: minimum}, content, key); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// partition makes an EFI partition with the given systems.
func partition(t testing.TB, files map[string][]byte) *fattest.Disk {
	t.Helper()
	const size = 300 << 20
	disk := fattest.New(size)
	if err := fat.Format(disk, size, 1, "TEST"); err != nil {
		t.Fatal(err)
	}
	v, err := fat.Open(disk)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"EFI", Folder} {
		if err := v.Mkdir(folder, when); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		if err := v.Create(Folder+"/"+name, int64(len(content)), bytes.NewReader(content), when); err != nil {
			t.Fatal(err)
		}
	}
	return disk
}

// systems returns what the boot loader would find: each .efi file, by name.
func systems(t testing.TB, disk *fattest.Disk) map[string][]byte {
	t.Helper()
	v, err := fat.Open(disk)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := v.List(Folder)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string][]byte)
	for _, e := range entries {
		if !strings.HasSuffix(strings.ToLower(e.Name), ".efi") {
			continue
		}
		content, err := v.ReadFile(Folder+"/"+e.Name, MaxSize)
		if err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		found[e.Name] = content
	}
	return found
}

func install(disk *fattest.Disk, b []byte, keys Keys, running string) error {
	v, err := fat.Open(disk)
	if err != nil {
		return err
	}
	_, err = Install(v, bytes.NewReader(b), keys, running, when)
	return err
}

func TestInstallReplacesTheOtherSystem(t *testing.T) {
	key := seededKey(1)
	running, old, fresh := program("running", 9000), program("old", 5000), program("fresh", 12345)
	disk := partition(t, map[string][]byte{"appliance_0.2.efi": running, "appliance_0.1.efi": old})
	if err := install(disk, bundle(t, "0.3", "0.2", fresh, key), public(key), "appliance_0.2.efi"); err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{"appliance_0.2.efi": running, "appliance_0.3+3.efi": fresh}
	if d := cmp.Diff(want, systems(t, disk)); d != "" {
		t.Errorf("systems (-want +got):\n%s", d)
	}
}

func TestInstallRefuses(t *testing.T) {
	key, other := seededKey(1), seededKey(2)
	content := program("fresh", 3000)
	good := bundle(t, "0.3", "0.2", content, key)
	change := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 1
		return b
	}
	cases := []struct {
		name   string
		bundle []byte
		want   error
		text   string
	}{
		{"another key", bundle(t, "0.3", "0.2", content, other), ErrSignature, ""},
		{"a byte of the manifest", change(30), ErrSignature, ""},
		{"the first byte of the program", change(len(good) - len(content)), ErrDamaged, ""},
		{"the last byte of the program", change(len(good) - 1), ErrDamaged, ""},
		{"a missing byte", good[:len(good)-1], ErrDamaged, ""},
		{"nothing", nil, ErrDamaged, ""},
		{"another file", []byte(strings.Repeat("MZ", 100)), ErrDamaged, "not an update bundle"},
		{"an older version", bundle(t, "0.1", "0.1", content, key), ErrDowngrade, ""},
		{"the same version", bundle(t, "0.2", "0.1", content, key), ErrDowngrade, ""},
		{"for a newer system", bundle(t, "0.9", "0.8", content, key), ErrTooOld, "install 0.8 or newer first, this is 0.2"},
	}
	before := map[string][]byte{"appliance_0.2.efi": program("running", 9000), "appliance_0.1.efi": program("old", 5000)}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			disk := partition(t, before)
			err := install(disk, c.bundle, public(key), "appliance_0.2.efi")
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Fatalf("got %v, want %v %q", err, c.want, c.text)
			}
			got := systems(t, disk)
			if !bytes.Equal(got["appliance_0.2.efi"], before["appliance_0.2.efi"]) {
				t.Error("a refused update changed the running system")
			}
			for name := range got {
				if _, known := before[name]; !known {
					t.Errorf("a refused update created %s", name)
				}
			}
		})
	}
	if err := install(partition(t, before), good, nil, "appliance_0.2.efi"); err == nil || !strings.Contains(err.Error(), "trusts no key") {
		t.Errorf("install without a key = %v, want an error with \"trusts no key\"", err)
	}
	if err := install(partition(t, before), good, public(key), "appliance_0.2.5.efi"); err == nil ||
		!strings.Contains(err.Error(), "not on the EFI partition") {
		t.Errorf("install with a missing running system = %v, want an error with \"not on the EFI partition\"", err)
	}
}

// The power fails at every byte of an update, in two ways: once with all written bytes on
// the disk, once with a random part of the bytes that were not synced. Each time the
// running system must be intact, the new one complete or absent, and the update must
// succeed when it is tried again.
func TestPowerCutAtEveryByte(t *testing.T) {
	key := seededKey(1)
	running, old, fresh := program("running", 2500), program("old", 2500), program("fresh", 3000)
	start := partition(t, map[string][]byte{"appliance_0.2.efi": running, "appliance_0.1+0-3.efi": old})
	b := bundle(t, "0.3", "0.1", fresh, key)

	whole := start.Copy()
	if err := install(whole, b, public(key), "appliance_0.2.efi"); err != nil {
		t.Fatal(err)
	}
	total := whole.Written
	t.Logf("an update writes %d bytes in %d steps", total, whole.Syncs)
	known := map[string][]byte{"appliance_0.2.efi": running, "appliance_0.1+0-3.efi": old, "appliance_0.3+3.efi": fresh}
	r := rand.New(rand.NewPCG(1, 2))
	appeared := false
	cuts := int64(testlab.Repeat(300, int(total)))
	for i := range cuts {
		cut := total - 1 - total*i/cuts
		disk := start.Copy()
		disk.Left = cut
		if err := install(disk, b, public(key), "appliance_0.2.efi"); !errors.Is(err, fattest.ErrPower) {
			t.Fatalf("cut after %d of %d bytes: %v", cut, total, err)
		}
		for kind, found := range map[string]*fattest.Disk{"in order": disk.Copy(), "out of order": disk.Lose(r)} {
			got := systems(t, found)
			if !bytes.Equal(got["appliance_0.2.efi"], running) {
				t.Fatalf("cut after %d bytes, %s: the running system is damaged", cut, kind)
			}
			for name, content := range got {
				if want, ok := known[name]; !ok || !bytes.Equal(content, want) {
					t.Fatalf("cut after %d bytes, %s: %s has neither its old nor its new content", cut, kind, name)
				}
			}
			appeared = appeared || got["appliance_0.3+3.efi"] != nil
			if cut%41 != 0 {
				continue
			}
			if err := install(found, b, public(key), "appliance_0.2.efi"); err != nil {
				t.Fatalf("cut after %d bytes, %s: the second try: %v", cut, kind, err)
			}
			want := map[string][]byte{"appliance_0.2.efi": running, "appliance_0.3+3.efi": fresh}
			if d := cmp.Diff(want, systems(t, found)); d != "" {
				t.Fatalf("cut after %d bytes, %s: after the second try (-want +got):\n%s", cut, kind, d)
			}
		}
	}
	if !appeared {
		t.Error("no cut left the new system in place: the test does not reach the last steps")
	}
}

// The power fails at every byte of Bless, which must not lose a system.
func TestPowerCutWhileBlessing(t *testing.T) {
	running, old := program("running", 4500), program("old", 4500)
	start := partition(t, map[string][]byte{"appliance_0.2+2-1.efi": running, "appliance_0.1.efi": old})
	bless := func(disk *fattest.Disk) error {
		v, err := fat.Open(disk)
		if err != nil {
			return err
		}
		return Bless(v, "appliance_0.2+2-1.efi")
	}
	whole := start.Copy()
	if err := bless(whole); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string][]byte{"appliance_0.2.efi": running, "appliance_0.1.efi": old}, systems(t, whole)); d != "" {
		t.Fatalf("systems (-want +got):\n%s", d)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for cut := int64(0); cut < whole.Written; cut++ {
		disk := start.Copy()
		disk.Left = cut
		if err := bless(disk); !errors.Is(err, fattest.ErrPower) {
			t.Fatalf("cut after %d bytes: %v", cut, err)
		}
		for _, found := range []*fattest.Disk{disk.Copy(), disk.Lose(r)} {
			counted, healthy := systems(t, found)["appliance_0.2+2-1.efi"], systems(t, found)["appliance_0.2.efi"]
			if !bytes.Equal(counted, running) && !bytes.Equal(healthy, running) {
				t.Fatalf("cut after %d bytes: the system is gone", cut)
			}
			v, err := fat.Open(found)
			if err != nil {
				t.Fatal(err)
			}
			if err := Recover(v); err != nil {
				t.Fatal(err)
			}
			if got := systems(t, found); len(got) != 2 || !bytes.Equal(got["appliance_0.1.efi"], old) {
				t.Fatalf("cut after %d bytes: after recovery there are %d systems", cut, len(got))
			}
		}
	}
}

func TestParseSlot(t *testing.T) {
	cases := map[string]Slot{
		"appliance_0.1.7.efi":     {"appliance_0.1.7.efi", "0.1.7", -1, 0},
		"appliance_0.1.7+3.efi":   {"appliance_0.1.7+3.efi", "0.1.7", 3, 0},
		"appliance_0.1.7+0-3.efi": {"appliance_0.1.7+0-3.efi", "0.1.7", 0, 3},
	}
	for name, want := range cases {
		if got, ok := ParseSlot(name); !ok || got != want {
			t.Errorf("ParseSlot(%q) = %v, %v; want %v, true", name, got, ok, want)
		}
	}
	for _, name := range []string{"", "appliance_.efi", "appliance_01.efi", "appliance_1.efi.bak", "other_1.efi", "appliance_1+.efi", "appliance_1+1234.efi"} {
		if got, ok := ParseSlot(name); ok {
			t.Errorf("ParseSlot(%q) = %v, true; want false", name, got)
		}
	}
}

func TestCompare(t *testing.T) {
	order := []string{"", "0", "0.1", "0.1.0", "0.1.9", "0.1.10", "0.2", "1", "10.0"}
	for i, a := range order {
		for j, b := range order {
			want := map[bool]int{true: 1, false: -1}[i > j]
			if i == j {
				want = 0
			}
			if got := Compare(a, b); got != want {
				t.Errorf("Compare(%q, %q) = %d, want %d", a, b, got, want)
			}
		}
	}
}

// The manifest is read whoever signed it, and nothing behind it is.
func TestReadManifest(t *testing.T) {
	good := bundle(t, "0.3", "0.2", []byte("program"), seededKey(1))
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"good": {good, nil}, "nothing": {nil, ErrDamaged}, "cut off": {good[:40], ErrDamaged}, "another file": {[]byte(strings.Repeat("x", 100)), ErrDamaged},
		"a manifest that is none": {append([]byte(magic+"\x00\x00\x00\x02{]"), make([]byte, 64)...), ErrDamaged},
		"a huge manifest":         {[]byte(magic + "\xff\xff\xff\xff"), ErrDamaged},
	} {
		r := bytes.NewReader(c.b)
		m, err := ReadManifest(r)
		if !errors.Is(err, c.want) || c.want == nil && (m.Version != "0.3" || r.Len() != len("program")) {
			t.Errorf("%s: ReadManifest() = %+v, %v, %d bytes left; want %v", name, m, err, r.Len(), c.want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	key := seededKey(1)
	good := bundle(f, "0.3", "0.2", []byte("program"), key)
	f.Add(good)
	f.Add(good[:30])
	f.Add([]byte(magic + "\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		read, readErr := ReadManifest(bytes.NewReader(b))
		m, r, err := Open(bytes.NewReader(b), public(key))
		if err != nil {
			return
		}
		if readErr != nil || read != m {
			t.Errorf("ReadManifest() = %+v, %v; want %+v as Open has it", read, readErr, m)
		}
		content, err := io.ReadAll(r)
		if err == nil && string(content) != "program" {
			t.Errorf("accepted a program that was never signed: %q", content)
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"version":"0.1","minimum":"0.1","size":1,"sha256":"` + strings.Repeat("0", 64) + `"}`))
	f.Add([]byte(`{"version":"0.1","version":"9"}`))
	f.Add([]byte(`{}{}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer testlab.Input(t)()
		m, err := parseManifest(text)
		if err != nil {
			return
		}
		if m.Size < 1 || m.Size > MaxSize || len(m.SHA256) != 64 {
			t.Errorf("accepted %+v", m)
		}
	})
}
