package fulldisk

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/archive"
)

// TestFullDisk: recording onto a disk that fills up says so, keeps every
// exchange that was whole, and goes on when there is room again.
func TestFullDisk(t *testing.T) {
	testlab.NeedRoot(t)
	if err := testlab.OnSmallDisk(t.TempDir(), recordUntilFull); err != nil {
		t.Error(err)
	}
}

func recordUntilFull(dir string) error {
	path := filepath.Join(dir, "full.wacz")
	w, err := archive.Create(path, archive.CreateOptions{Software: "test", Wall: time.Unix(1_700_000_000, 0)})
	if err != nil {
		return err
	}
	add := func(i, size int) error {
		body := make([]byte, size)
		for j := range body { // does not compress
			body[j] = byte((i*7919 + j*j*31 + j>>3) * 2654435761 >> 13)
		}
		return w.Add(&lab.Exchange{
			Order: i, Wall: time.Unix(1_700_000_000, 0), Method: "GET", URL: fmt.Sprintf("https://a.test/%d", i), Protocol: "h2", Status: 200,
			Response: lab.Message{Header: []lab.HeaderField{{Name: "content-type", Value: "image/png"}}, Body: body},
			Chunks:   []lab.Chunk{{Bytes: size}},
		})
	}
	whole := 0
	for ; ; whole++ {
		if err = add(whole, 300_000); err != nil {
			break
		}
		if whole > 100_000 {
			return errors.New("the disk never filled up")
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the error of a full disk is not ENOSPC: %w", err)
	}
	if whole == 0 {
		return errors.New("nothing was recorded before the disk was full")
	}
	// What was whole is there, and what was not is no damage.
	a, err := archive.Open(path + archive.WorkingSuffix)
	if err != nil {
		return err
	}
	if n := len(a.Exchanges()); n != whole || len(a.Warnings()) > 0 {
		return fmt.Errorf("%d of %d whole exchanges are left, warnings %q", n, whole, a.Warnings())
	}
	// Room again: the same recording goes on.
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
		return err
	}
	if err := add(whole, 300_000); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if err := w.Close(); err != nil {
		return err
	}
	if a, err = archive.Open(path); err != nil {
		return err
	}
	if n := len(a.Exchanges()); n != whole+1 || len(a.Warnings()) > 0 {
		return fmt.Errorf("%d of %d exchanges are in the archive, warnings %q", n, whole+1, a.Warnings())
	}
	return nil
}
