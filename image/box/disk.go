package box

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf16"
)

// loaderVendor is the GUID of the boot loader interface's variables.
const loaderVendor = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"

// LoaderVariable reads a text variable of the boot loader below root (/ on a
// box), for example LoaderDevicePartUUID. It returns fs.ErrNotExist if the variable is not set.
func LoaderVariable(root, name string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(root, "sys/firmware/efi/efivars", name+"-"+loaderVendor))
	if err != nil {
		return "", err
	}
	if len(raw) < 4 || len(raw)%2 != 0 || len(raw) > 4096 {
		return "", fmt.Errorf("EFI variable %s: %d bytes; want 4 bytes of attributes and UTF-16 text", name, len(raw))
	}
	var units []uint16
	for b := raw[4:]; len(b) > 0; b = b[2:] { // after the attributes
		if u := binary.LittleEndian.Uint16(b); u != 0 {
			units = append(units, u)
		}
	}
	return string(utf16.Decode(units)), nil
}

// Disk names the disk that the box was booted from.
type Disk struct {
	ESP  string // device of the EFI partition, for example /dev/sda1
	Disk string // the whole device, for example /dev/sda
}

// BootDisk finds the disk that the firmware booted from, below root (/ on a box).
func BootDisk(root string) (Disk, error) {
	uuid, err := LoaderVariable(root, "LoaderDevicePartUUID")
	if err != nil {
		return Disk{}, fmt.Errorf("the boot loader does not say what it booted from: %w", err)
	}
	uuid = strings.ToLower(uuid)
	if !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(uuid) {
		return Disk{}, fmt.Errorf("EFI variable LoaderDevicePartUUID: %q is not a UUID", uuid)
	}
	target, err := os.Readlink(filepath.Join(root, "dev/disk/by-partuuid", uuid))
	if err != nil {
		return Disk{}, fmt.Errorf("the partition booted from: %w", err)
	}
	partition := filepath.Base(target)
	// /sys/class/block/sda1 leads to …/block/sda/sda1: the folder above is the disk.
	device, err := os.Readlink(filepath.Join(root, "sys/class/block", partition))
	if err != nil {
		return Disk{}, fmt.Errorf("the disk of partition %s: %w", partition, err)
	}
	disk := filepath.Base(filepath.Dir(device))
	if disk == "block" || disk == "." {
		return Disk{}, errors.New("booted from a disk without partitions")
	}
	return Disk{"/dev/" + partition, "/dev/" + disk}, nil
}
