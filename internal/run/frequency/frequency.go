// Package frequency keeps the processors of this machine at one frequency while something is measured: it chooses the
// kernel's governor "performance" and switches turbo off, because turbo lasts as long as the heat allows. In goes a
// machine's /sys; out comes a hold, at whose end everything is as it was. What was there before is in a file, so that
// the next process puts it back if this one is killed.
//
// It follows Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst of the kernel. Where the kernel shows no
// frequencies, or this user may not set them, nothing happens.
package frequency

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine is what is set, and where it is written down.
type Machine struct {
	Root string // of the file system: "/"
	// File holds what was there before. Processes that share it hold together: the last one puts it back.
	File string
}

// RootFile is the File of processes that may set everything. It need not survive a boot, which undoes all settings.
const RootFile = "/run/appliance-processors.json"

// This is the machine that this process runs on; own is the File of one that is not root.
func This(own string) Machine {
	if os.Geteuid() == 0 {
		own = RootFile
	}
	return Machine{Root: "/", File: own}
}

// Setting is one value of the kernel.
type Setting struct {
	Name string `json:"name"` // of the file, below /sys/devices/system/cpu
	Was  string `json:"was"`
	Set  string `json:"set"`
}

// cpus is where the kernel shows its processors.
const cpus = "sys/devices/system/cpu"

func (m Machine) path(name string) string { return filepath.Join(m.Root, cpus, name) }

// read is the value in a file of /sys; "" if there is none.
func (m Machine) read(name string) string {
	f, err := os.Open(m.path(name))
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Known says whether the kernel shows frequencies.
func (m Machine) Known() bool {
	return len(m.governors()) > 0 || m.read(noTurbo) != "" || m.read(boost) != ""
}

const (
	performance = "performance"
	noTurbo     = "intel_pstate/no_turbo"
	boost       = "cpufreq/boost"
)

// governors are the files that name the governor of some processors each.
func (m Machine) governors() (names []string) {
	found, _ := filepath.Glob(m.path("cpufreq/policy*/scaling_governor")) // the pattern is constant
	for _, f := range found {
		names = append(names, path.Join("cpufreq", filepath.Base(filepath.Dir(f)), "scaling_governor"))
	}
	return names
}

// Wanted lists what has another value than it should have while something is measured.
func (m Machine) Wanted() (all []Setting) {
	want := func(name, value string) {
		if was := m.read(name); was != "" && was != value {
			all = append(all, Setting{Name: name, Was: was, Set: value})
		}
	}
	for _, name := range m.governors() {
		if slices.Contains(strings.Fields(m.read(path.Join(path.Dir(name), "scaling_available_governors"))), performance) {
			want(name, performance)
		}
	}
	want(noTurbo, "1")
	want(boost, "0")
	return all
}

// MaySet returns nil if this user may set them.
func (m Machine) MaySet(all []Setting) error {
	for _, s := range all {
		f, err := os.OpenFile(m.path(s.Name), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_ = f.Close() // nothing was written
	}
	return nil
}

// set writes a value.
func (m Machine) set(name, value string) error {
	f, err := os.OpenFile(m.path(name), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value + "\n")
	return errors.Join(err, f.Close())
}

// kept is the content of File.
type kept struct {
	Boot     string    `json:"boot"` // the kernel's own identifier
	Settings []Setting `json:"settings"`
}

// boot identifies the time since the machine was started.
func (m Machine) boot() string {
	b, err := os.ReadFile(filepath.Join(m.Root, "proc/sys/kernel/random/boot_id"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// mostKept bounds File.
const mostKept = 1 << 20

// Hold sets what it may until release is called; told says what, "" for nothing. A machine that cannot be set, or not
// by this user, is none the worse: then release does nothing.
func (m Machine) Hold() (release func() error, told string, err error) {
	nothing := func() error { return nil }
	if m.File == "" || !m.Known() || m.MaySet(m.Wanted()) != nil {
		return nothing, "", nil
	}
	f, alone, err := m.open()
	if err != nil {
		return nothing, "", err
	}
	defer f.unguard()
	if alone {
		told, err = m.begin(f.file)
	}
	if err != nil {
		return nothing, "", errors.Join(err, f.file.Close())
	}
	return func() error { return m.release(f) }, told, nil
}

// begin sets everything, after it has put back what a killed process left, and lets others hold it too.
func (m Machine) begin(file *os.File) (told string, err error) {
	if err := m.undo(file); err != nil {
		return "", err
	}
	if wanted := m.Wanted(); len(wanted) > 0 {
		if err := m.change(file, wanted); err != nil {
			return "", err
		}
		told = Tell(wanted)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_SH); err != nil {
		return "", errors.Join(err, m.undo(file))
	}
	return told, nil
}

// undo puts back what the file says, and empties it.
func (m Machine) undo(file *os.File) error { return errors.Join(m.putBack(file), file.Truncate(0)) }

// change writes down what is there, and sets the rest. After an error everything is as it was.
func (m Machine) change(file *os.File, wanted []Setting) error {
	text, err := json.Marshal(kept{m.boot(), wanted})
	if err == nil {
		_, err = file.WriteAt(text, 0)
	}
	if err == nil {
		err = file.Sync()
	}
	for _, s := range wanted {
		if err == nil {
			err = m.set(s.Name, s.Set)
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("setting the processors' frequency: %w", err), m.undo(file))
	}
	return nil
}

// putBack sets what the file says that there was, unless somebody has set something else meanwhile, or the machine was
// started anew.
func (m Machine) putBack(file *os.File) error {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, mostKept))
	if err != nil || len(text) == 0 {
		return err
	}
	var was kept
	if err := json.Unmarshal(text, &was); err != nil || was.Boot != m.boot() {
		return nil // a file that was cut off was written before anything was set
	}
	for _, s := range slices.Backward(was.Settings) {
		if !slices.Contains(append(m.governors(), noTurbo, boost), s.Name) || strings.ContainsAny(s.Was, "\n\x00") {
			continue
		}
		if m.read(s.Name) == s.Set {
			err = errors.Join(err, m.set(s.Name, s.Was))
		}
	}
	if err != nil {
		return fmt.Errorf("putting the processors' frequency back: %w", err)
	}
	return nil
}

// Recover puts back what a killed process has left, if no other one holds it.
func (m Machine) Recover() error {
	if _, err := os.Stat(m.File); err != nil || !m.Known() {
		return nil
	}
	f, alone, err := m.open()
	if err != nil {
		if errors.Is(err, os.ErrPermission) { // it belongs to another user
			return nil
		}
		return err
	}
	defer f.unguard()
	if alone {
		err = m.undo(f.file)
	}
	return errors.Join(err, f.file.Close())
}

// release ends a hold; the last one puts everything back.
func (m Machine) release(f *held) error {
	err := f.guard()
	if err != nil {
		return errors.Join(err, f.file.Close())
	}
	defer f.unguard()
	if unix.Flock(int(f.file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		err = m.undo(f.file)
	}
	return errors.Join(err, f.file.Close())
}

// held is File, with a lock that is shared by all who hold. A second lock keeps two from opening or releasing it at the
// same time.
type held struct {
	file *os.File
	name string
	lock *os.File
}

// open opens File; alone says that nobody else holds it. The caller ends the guard.
func (m Machine) open() (f *held, alone bool, err error) {
	f = &held{name: m.File + ".lock"}
	if err := f.guard(); err != nil {
		return nil, false, err
	}
	if f.file, err = os.OpenFile(m.File, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		f.unguard()
		return nil, false, err
	}
	alone = unix.Flock(int(f.file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
	if !alone {
		err = unix.Flock(int(f.file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	}
	if err != nil {
		f.unguard()
		return nil, false, errors.Join(err, f.file.Close())
	}
	return f, alone, nil
}

func (f *held) guard() (err error) {
	if f.lock, err = os.OpenFile(f.name, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := unix.Flock(int(f.lock.Fd()), unix.LOCK_EX); err != nil {
		return errors.Join(err, f.lock.Close())
	}
	return nil
}

func (f *held) unguard() { _ = f.lock.Close() } // it was not written

// Tell says in words what is set.
func Tell(all []Setting) string {
	governors, were := 0, []string{}
	var parts []string
	for _, s := range all {
		switch {
		case s.Name == noTurbo || s.Name == boost:
			if !slices.Contains(parts, "turbo off") {
				parts = append(parts, "turbo off")
			}
		default:
			if governors++; !slices.Contains(were, s.Was) {
				were = append(were, s.Was)
			}
		}
	}
	if governors > 0 {
		parts = slices.Insert(parts, 0, fmt.Sprintf("governor %s in place of %s", performance, strings.Join(were, " and ")))
	}
	return strings.Join(parts, ", ")
}
