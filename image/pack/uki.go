package pack

import (
	"bytes"
	"context"
	"debug/pe"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// UKI holds the parts of a unified kernel image.
type UKI struct {
	Stub      string // systemd's linuxx64.efi.stub
	OSRelease []byte // shown by the boot loader, which sorts by its IMAGE_VERSION
	Cmdline   string
	Kernel    []byte
	Initrd    []byte
}

// Write joins the parts to one EFI program with objcopy. The addresses follow
// from the stub and the sizes: fixed ones overlap as soon as the initrd grows.
func (u UKI) Write(ctx context.Context, file string, epoch int64) error {
	dir, err := os.MkdirTemp("", "uki-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	address, err := sectionsEnd(u.Stub)
	if err != nil {
		return fmt.Errorf("stub %s: %w", u.Stub, err)
	}
	var args []string
	for _, part := range []struct {
		name string
		data []byte
	}{
		{".osrel", u.OSRelease},
		{".cmdline", append([]byte(u.Cmdline), 0)},
		// The kernel is last, because older firmware decompresses it in place, over the memory above it.
		{".initrd", u.Initrd},
		{".linux", u.Kernel},
	} {
		path := filepath.Join(dir, part.name[1:])
		if err := os.WriteFile(path, part.data, 0o600); err != nil {
			return err
		}
		args = append(args, "--add-section", part.name+"="+path,
			"--change-section-vma", fmt.Sprintf("%s=%#x", part.name, address))
		address += alignUp(uint64(len(part.data)))
	}
	args = append(args, "--preserve-dates", u.Stub, file)
	cmd := exec.CommandContext(ctx, "objcopy", args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", epoch))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("objcopy: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// sectionsEnd returns the first page after all sections of a PE file, as an
// address that objcopy takes (with the image base).
func sectionsEnd(file string) (uint64, error) {
	f, err := pe.Open(file)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	header, ok := f.OptionalHeader.(*pe.OptionalHeader64)
	if !ok {
		return 0, fmt.Errorf("not a 64-bit program")
	}
	var end uint64
	for _, s := range f.Sections {
		end = max(end, uint64(s.VirtualAddress)+uint64(max(s.VirtualSize, s.Size)))
	}
	return header.ImageBase + alignUp(end), nil
}

func alignUp(n uint64) uint64 { return (n + 4095) &^ 4095 }
