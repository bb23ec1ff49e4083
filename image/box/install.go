package box

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Installer writes the running system to an internal disk after a person has agreed.
type Installer struct {
	Root     string // the file system, / on a box
	Run      Runner
	Terminal Terminal
}

// Terminal shows text to a person and reads answers.
type Terminal interface {
	Say(text string)
	// Ask shows a question and returns the line of the answer, without
	// surrounding spaces.
	Ask(ctx context.Context, question string) (string, error)
}

// minDisk is the smallest disk (bytes) with room for a useful data partition.
const minDisk = 1 << 30

// installDir holds systemd-repart's definitions while the disk is written.
const installDir = "run/appliance-install"

// target is a disk on which the system can be installed.
type target struct {
	name  string // nvme0n1
	model string
	size  int64 // bytes
	parts int   // number of partitions on it now
}

// text is the disk's line in the list.
func (d target) text() string {
	content := "empty"
	if d.parts == 1 {
		content = "1 partition"
	} else if d.parts > 1 {
		content = fmt.Sprintf("%d partitions", d.parts)
	}
	return fmt.Sprintf("%-10s %8.1f GB  %-12s %s", d.name, float64(d.size)/1e9, content, d.model)
}

// Do asks until a disk is installed, and returns when the person has agreed to
// restart. After an error it shows the error and asks again.
func (i Installer) Do(ctx context.Context) error {
	version, err := Updater{Root: i.Root}.version()
	if err != nil {
		return err
	}
	boot, err := BootDisk(i.Root)
	if err != nil {
		return err
	}
	i.Terminal.Say(fmt.Sprintf("\n  Eidetic %s: install on a disk of this machine\n\n", version))
	for {
		disks, err := i.disks(filepath.Base(boot.Disk))
		if err != nil {
			return err
		}
		if len(disks) == 0 {
			i.Terminal.Say("  There is no disk to install on: none of at least 1 GiB besides the one that this runs from.\n")
			_, err := i.Terminal.Ask(ctx, "  Press Enter to restart: ")
			return err
		}
		disk, err := i.choose(ctx, disks)
		if err != nil {
			return err
		}
		if disk.name == "" {
			_, err := i.Terminal.Ask(ctx, "  Nothing was changed. Press Enter to restart: ")
			return err
		}
		i.Terminal.Say("  Writing …\n")
		if err := i.write(ctx, boot.ESP, disk); err != nil {
			i.Terminal.Say("  It failed: " + err.Error() + "\n\n")
			continue
		}
		_, err = i.Terminal.Ask(ctx, "  Eidetic is on "+disk.name+". Take the stick out, then press Enter to restart: ")
		return err
	}
}

// choose asks for a disk and then for its name, because everything on it will be lost.
// It returns a target without a name if the person chooses none.
func (i Installer) choose(ctx context.Context, disks []target) (target, error) {
	for {
		for n, d := range disks {
			i.Terminal.Say(fmt.Sprintf("  %d  %s\n", n+1, d.text()))
		}
		answer, err := i.Terminal.Ask(ctx, "\n  Number of the disk; everything on it will be lost (Enter: none): ")
		if err != nil || answer == "" {
			return target{}, err
		}
		n, err := strconv.Atoi(answer)
		if err != nil || n < 1 || n > len(disks) {
			i.Terminal.Say(fmt.Sprintf("  %q is not a number from 1 to %d.\n\n", answer, len(disks)))
			continue
		}
		disk := disks[n-1]
		answer, err = i.Terminal.Ask(ctx, fmt.Sprintf("  To erase it, type its name, %s: ", disk.name))
		if err != nil {
			return target{}, err
		}
		if answer == disk.name {
			return disk, nil
		}
		i.Terminal.Say(fmt.Sprintf("  %q is not %s: nothing was changed.\n\n", answer, disk.name))
	}
}

// disks lists the internal disks except the one that the system runs from.
func (i Installer) disks(running string) ([]target, error) {
	entries, err := os.ReadDir(filepath.Join(i.Root, "sys/block"))
	if err != nil {
		return nil, err
	}
	isDisk := regexp.MustCompile(`^(sd[a-z]+|vd[a-z]+|nvme[0-9]+n[0-9]+|mmcblk[0-9]+)$`)
	var disks []target
	for _, e := range entries {
		d := target{name: e.Name()}
		if d.name == running || !isDisk.MatchString(d.name) {
			continue
		}
		read := func(file string) string {
			text, err := os.ReadFile(filepath.Join(i.Root, "sys/block", d.name, file))
			if err != nil {
				return "" // some kinds of disk lack some files
			}
			return strings.TrimSpace(string(text))
		}
		sectors, err := strconv.ParseInt(read("size"), 10, 64) // sysfs counts units of 512 bytes, whatever the disk's sector size
		if err != nil || sectors*512 < minDisk || read("removable") == "1" || read("ro") == "1" {
			continue
		}
		d.size, d.model = sectors*512, printable(read("device/model"))
		parts, err := filepath.Glob(filepath.Join(i.Root, "sys/block", d.name, d.name+"*"))
		if err != nil {
			return nil, err
		}
		d.parts = len(parts)
		disks = append(disks, d)
	}
	slices.SortFunc(disks, func(a, b target) int { return strings.Compare(a.name, b.name) })
	return disks, nil
}

// printable removes control characters from a disk's description, which could control the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, text)
}

// write creates a partition table with a copy of the EFI partition. Its
// identifiers are new, so that the disk and the stick can be in one machine.
// The first boot from the disk adds the data partition.
func (i Installer) write(ctx context.Context, esp string, disk target) error {
	dir := filepath.Join(i.Root, installDir)
	sectors, err := os.ReadFile(filepath.Join(i.Root, "sys/class/block", filepath.Base(esp), "size"))
	if err != nil {
		return err
	}
	size, err := strconv.ParseInt(strings.TrimSpace(string(sectors)), 10, 64)
	if err != nil {
		return fmt.Errorf("size of %s: %w", esp, err)
	}
	// Without a maximum, the EFI partition would fill the disk and leave no room for the data partition.
	layout := fmt.Sprintf("[Partition]\nType=esp\nLabel=appliance-esp\nCopyBlocks=%s\nSizeMinBytes=%d\nSizeMaxBytes=%[2]d\n",
		filepath.Join(i.Root, esp), size*512)
	if err := writeFile(filepath.Join(dir, "10-esp.conf"), []byte(layout), 0o644); err != nil {
		return err
	}
	out, err := i.Run(ctx, "systemd-repart", "--empty=force", "--dry-run=no", "--discard=no", "--no-pager",
		"--definitions="+dir, filepath.Join(i.Root, "dev", disk.name))
	if err != nil {
		return fmt.Errorf("systemd-repart: %w: %s", err, oneLine(out))
	}
	if out, err := i.Run(ctx, "sync"); err != nil {
		return errors.Join(err, errors.New(oneLine(out)))
	}
	return nil
}
