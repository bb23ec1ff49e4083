package pack

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"eidetic/image/fat"
)

// ESPFile is one file of the EFI system partition.
type ESPFile struct {
	Path string
	Data []byte
}

// WriteESP makes a file with a FAT32 file system of size bytes that holds files.
func WriteESP(file string, size int64, files []ESPFile, serial uint32, at time.Time) error {
	dev, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { _ = dev.Close() }()
	if err := dev.Truncate(size); err != nil {
		return err
	}
	if err := fat.Format(dev, size, serial, "EIDETIC"); err != nil {
		return err
	}
	volume, err := fat.Open(dev)
	if err != nil {
		return err
	}
	made := make(map[string]bool)
	for _, f := range files {
		parts := strings.Split(f.Path, "/")
		for i := 1; i < len(parts); i++ {
			folder := strings.Join(parts[:i], "/")
			if made[folder] {
				continue
			}
			if err := volume.Mkdir(folder, at); err != nil {
				return err
			}
			made[folder] = true
		}
		if err := volume.Create(f.Path, int64(len(f.Data)), bytes.NewReader(f.Data), at); err != nil {
			return err
		}
	}
	return dev.Close()
}

// WriteDisk makes a raw GPT disk with one EFI system partition, copied from the
// file esp. systemd-repart derives every identifier from seed; the box's own
// systemd-repart adds the data partition at the first boot.
func WriteDisk(ctx context.Context, file, esp, seed string) error {
	dir, err := os.MkdirTemp("", "repart-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	info, err := os.Stat(esp)
	if err != nil {
		return err
	}
	absolute, err := filepath.Abs(esp)
	if err != nil {
		return err
	}
	definition := fmt.Sprintf("[Partition]\nType=esp\nLabel=appliance-esp\nCopyBlocks=%s\nSizeMinBytes=%d\nSizeMaxBytes=%d\n",
		absolute, info.Size(), info.Size())
	if err := os.WriteFile(filepath.Join(dir, "10-esp.conf"), []byte(definition), 0o600); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
		return err
	}
	out, err := exec.CommandContext(ctx, "systemd-repart", "--definitions="+dir, "--empty=create", "--size=auto",
		"--seed="+seed, "--dry-run=no", "--no-pager", "--discard=no", file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemd-repart: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
