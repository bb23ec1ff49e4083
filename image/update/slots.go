package update

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"eidetic/image/fat"
)

const (
	// Folder is the folder in which the boot loader looks for systems on the EFI partition.
	Folder = "EFI/Linux"
	// Tries is the number of times that a new system may start without becoming healthy.
	Tries = 3

	partial = "update.new" // without .efi: the boot loader does not see it
)

// Slot is one system on the EFI partition.
type Slot struct {
	File    string // its name in Folder
	Version string
	// Left is the number of tries left, and Done the number made. Left is -1 for a
	// system that became healthy, or came with the disk.
	Left, Done int
}

var slotName = regexp.MustCompile(`^appliance_([0-9.]+)(?:\+([0-9]{1,3})(?:-([0-9]{1,3}))?)?\.efi$`)

// ParseSlot parses a file name; ok is false if it does not name one of our systems.
func ParseSlot(name string) (s Slot, ok bool) {
	m := slotName.FindStringSubmatch(name)
	if m == nil {
		return s, false
	}
	if _, err := parseVersion(m[1]); err != nil {
		return s, false
	}
	s = Slot{File: name, Version: m[1], Left: -1}
	if m[2] != "" {
		s.Left, _ = strconv.Atoi(m[2]) // at most three digits
		s.Done, _ = strconv.Atoi("0" + m[3])
	}
	return s, true
}

// Slots returns the systems on the EFI partition.
func Slots(v *fat.Volume) ([]Slot, error) {
	entries, err := v.List(Folder)
	if err != nil {
		return nil, err
	}
	var slots []Slot
	for _, e := range entries {
		if s, ok := ParseSlot(e.Name); ok && !e.Folder {
			slots = append(slots, s)
		}
	}
	return slots, nil
}

// Running returns the system of a version. There is at most one, because an update is
// always newer than the running system.
func Running(v *fat.Volume, version string) (Slot, error) {
	slots, err := Slots(v)
	if err != nil {
		return Slot{}, err
	}
	for _, s := range slots {
		if s.Version == version {
			return s, nil
		}
	}
	return Slot{}, fmt.Errorf("update: the running system, %s, is not on the EFI partition", version)
}

// Recover removes the remains of interrupted work: a half-written system, the
// second name of one that was being renamed, and lost clusters.
func Recover(v *fat.Volume) error {
	entries, err := v.List(Folder)
	if err != nil {
		return err
	}
	var drop []string
	for i, e := range entries {
		if e.Name == partial {
			drop = append(drop, e.Name)
			continue
		}
		slot, ok := ParseSlot(e.Name)
		for _, other := range entries[i+1:] {
			if !e.Same(other) || other.Name == partial || !ok {
				continue
			}
			// Both names are valid. The rename was to remove the counter, so keep the name without one.
			if slot.Left >= 0 {
				drop = append(drop, e.Name)
			} else {
				drop = append(drop, other.Name)
			}
		}
	}
	for _, name := range drop {
		if err := v.Remove(Folder + "/" + name); err != nil {
			return err
		}
	}
	_, err = v.Reclaim()
	return err
}

// Install puts the system of a bundle on the EFI partition, to be tried at the
// next boot. Running is the file of the running system, which is kept; every other
// system is removed to make room. It refuses a bundle that is not newer than the running
// system, for which the running system is too old, or that none of keys signed.
func Install(v *fat.Volume, bundle io.Reader, keys Keys, running string, now time.Time) (Manifest, error) {
	m, program, err := Open(bundle, keys)
	if err != nil {
		return m, err
	}
	current, ok := ParseSlot(running)
	if !ok {
		return m, fmt.Errorf("update: %q is not the name of a running system", running)
	}
	if err := m.Allowed(current.Version); err != nil {
		return m, err
	}
	if current.Left >= 0 {
		// The running system may still be given up, and then the other system is needed.
		return m, ErrUnproven
	}
	if err := Recover(v); err != nil {
		return m, err
	}
	slots, err := Slots(v)
	if err != nil {
		return m, err
	}
	kept := false
	for _, s := range slots {
		kept = kept || s.File == running
	}
	if !kept {
		return m, fmt.Errorf(
			"update: the running system %s is not on the EFI partition any more; the partition was changed meanwhile",
			running,
		)
	}
	for _, s := range slots {
		if s.File == running {
			continue
		}
		if err := v.Remove(Folder + "/" + s.File); err != nil {
			return m, err
		}
	}
	path := Folder + "/" + partial
	if err := v.Create(path, m.Size, program, now); err != nil {
		return m, err
	}
	if err := verify(v, path, m.SHA256); err != nil {
		return m, errors.Join(err, v.Remove(path))
	}
	return m, v.Rename(path, fmt.Sprintf("appliance_%s+%d.efi", m.Version, Tries))
}

// verify reads a file back from the medium.
func verify(v *fat.Volume, path, want string) error {
	r, err := v.Open(path)
	if err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return fmt.Errorf("update: read back: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != strings.ToLower(want) {
		return fmt.Errorf("update: %w: the disk returns other bytes than were written", ErrDamaged)
	}
	return nil
}

// Bless marks the running system as healthy: the boot loader no longer counts
// its tries. It does nothing if the system has no counter.
func Bless(v *fat.Volume, running string) error {
	s, ok := ParseSlot(running)
	if !ok {
		return fmt.Errorf("update: %q is not the name of a running system", running)
	}
	if s.Left < 0 {
		return nil
	}
	return v.Rename(Folder+"/"+running, "appliance_"+s.Version+".efi")
}
