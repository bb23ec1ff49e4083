package boottest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"golang.org/x/sys/unix"

	"eidetic/image/fat"
)

// copySparse copies a file: its holes, and blocks of zeros, become holes.
func copySparse(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	if err := out.Truncate(info.Size()); err != nil {
		return err
	}
	block, zero := make([]byte, 1<<16), make([]byte, 1<<16)
	for at := int64(0); ; {
		at, err = unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // there is no more data
			return out.Close()
		}
		if err != nil {
			return err
		}
		n, err := in.ReadAt(block, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if !bytes.Equal(block[:n], zero[:n]) {
			if _, err := out.WriteAt(block[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
	}
}

// Partition is the place of a partition on the machine's disk.
type Partition struct{ Offset, Size int64 }

const (
	sector = 512
	// ESP and Data are the partitions of a box, counted from 0.
	espIndex, dataIndex = 0, 1
)

// partition reads the n-th entry of a disk's GUID partition table (UEFI 2.10, 5.3).
func partition(disk io.ReaderAt, n int) (p Partition, err error) {
	header := make([]byte, 92)
	if _, err := disk.ReadAt(header, sector); err != nil {
		return p, err
	}
	if string(header[:8]) != "EFI PART" {
		return p, errors.New("the disk has no GUID partition table")
	}
	table := int64(binary.LittleEndian.Uint64(header[72:]))
	size := int64(binary.LittleEndian.Uint32(header[84:]))
	entry := make([]byte, 48)
	if _, err := disk.ReadAt(entry, table*sector+int64(n)*size); err != nil {
		return p, err
	}
	first, last := int64(binary.LittleEndian.Uint64(entry[32:])), int64(binary.LittleEndian.Uint64(entry[40:]))
	if first == 0 {
		return p, fmt.Errorf("the disk has no partition %d", n+1)
	}
	return Partition{first * sector, (last + 1 - first) * sector}, nil
}

// ESP lets f change the EFI partition of a machine that is switched off.
func (m *Machine) ESP(f func(*fat.Volume) error) error {
	return m.onDisk(espIndex, func(disk *os.File, p Partition) error {
		v, err := fat.Open(window{disk, p.Offset})
		if err != nil {
			return err
		}
		return f(v)
	})
}

// FlipData inverts n bytes of the data partition of a machine that is switched off,
// between the offsets from and to of the partition. The same seed chooses the same bytes.
func (m *Machine) FlipData(seed uint64, n int, from, to int64) error {
	random := rand.New(rand.NewPCG(seed, 0))
	return m.onDisk(dataIndex, func(disk *os.File, p Partition) error {
		if from < 0 || to > p.Size || from >= to {
			return fmt.Errorf("bytes %d to %d of a partition of %d", from, to, p.Size)
		}
		for range n {
			at := p.Offset + from + random.Int64N(to-from)
			b := make([]byte, 1)
			if _, err := disk.ReadAt(b, at); err != nil {
				return err
			}
			b[0] = ^b[0]
			if _, err := disk.WriteAt(b, at); err != nil {
				return err
			}
		}
		return nil
	})
}

// onDisk calls f with the disk of a machine that is off and its n-th partition.
func (m *Machine) onDisk(n int, f func(*os.File, Partition) error) error {
	if m.process != nil {
		return errors.New("machine: it is switched on and uses its disk; switch it off first")
	}
	disk, err := os.OpenFile(m.Disk(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = disk.Close() }()
	p, err := partition(disk, n)
	if err != nil {
		return err
	}
	if err := f(disk, p); err != nil {
		return err
	}
	return disk.Close()
}

// window is the part of a disk that begins at an offset.
type window struct {
	disk   *os.File
	offset int64
}

func (w window) ReadAt(b []byte, off int64) (int, error)  { return w.disk.ReadAt(b, off+w.offset) }
func (w window) WriteAt(b []byte, off int64) (int, error) { return w.disk.WriteAt(b, off+w.offset) }
func (w window) Sync() error                              { return w.disk.Sync() }
