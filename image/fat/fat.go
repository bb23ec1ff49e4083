// Package fat creates, reads and changes the FAT32 file system of an EFI system
// partition, so that an interruption at any byte leaves every file either with its
// old content or with its new one.
//
// In flow a block device or an image file and the bytes of files; out flows
// the same device, written in an order that the kernel's vfat does not
// guarantee: data before the allocation table, the table before the directory,
// and the change of one byte makes a name appear or disappear. The partition is
// therefore never mounted on the box: the firmware and this package are its
// only writers.
//
// It follows Microsoft's "FAT: General Overview of On-Disk Format" 1.03 and the
// UEFI specification 2.10, section 13.3. Sectors have 512 bytes.
package fat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Device is the device or file that contains the file system. Sync returns when all
// earlier writes are on the medium.
type Device interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}

const (
	sectorSize = 512
	entrySize  = 32

	endOfChain  = 0x0fffffff
	minEnd      = 0x0ffffff8 // a table entry from here on ends a chain
	clusterMask = 0x0fffffff

	// minClusters is the smallest number of clusters of FAT32; a volume with fewer is FAT16.
	minClusters = 65525
	maxClusters = 1 << 22 // 16 GiB of 4 KiB clusters: an ESP is never larger
)

// Volume is an open file system. It is not safe for concurrent use.
type Volume struct {
	dev      Device
	geometry geometry
	table    []uint32 // the allocation table, with the high four bits masked off
}

// geometry is the layout of the volume, in bytes unless named otherwise.
type geometry struct {
	clusterSize int64
	reserved    int64
	tableSize   int64
	tables      int
	data        int64
	clusters    uint32 // numbered from 2
	root        uint32
}

// Open reads the boot sector and the allocation table of dev, and refuses a volume
// that is not FAT32 or contradicts itself.
func Open(dev Device) (*Volume, error) {
	boot := make([]byte, sectorSize)
	if _, err := dev.ReadAt(boot, 0); err != nil {
		return nil, fmt.Errorf("fat: read the boot sector: %w", err)
	}
	g, err := parseBoot(boot)
	if err != nil {
		return nil, fmt.Errorf("fat: boot sector: %w", err)
	}
	raw := make([]byte, 4*int(g.clusters+2))
	if _, err := dev.ReadAt(raw, g.reserved); err != nil {
		return nil, fmt.Errorf("fat: read the allocation table: %w", err)
	}
	v := &Volume{dev: dev, geometry: g, table: make([]uint32, g.clusters+2)}
	for i := range v.table {
		v.table[i] = binary.LittleEndian.Uint32(raw[4*i:]) & clusterMask
	}
	return v, nil
}

func parseBoot(b []byte) (geometry, error) {
	le := binary.LittleEndian
	var g geometry
	if b[510] != 0x55 || b[511] != 0xaa {
		return g, errors.New("no signature 55 AA")
	}
	perCluster := int64(b[13])
	sectors := int64(le.Uint32(b[32:]))
	tableSectors := int64(le.Uint32(b[36:]))
	g = geometry{
		clusterSize: perCluster * sectorSize,
		reserved:    int64(le.Uint16(b[14:])) * sectorSize,
		tableSize:   tableSectors * sectorSize,
		tables:      int(b[16]),
		root:        le.Uint32(b[44:]),
	}
	switch {
	case le.Uint16(b[11:]) != sectorSize:
		return g, fmt.Errorf("%d bytes a sector, not %d", le.Uint16(b[11:]), sectorSize)
	case perCluster == 0 || perCluster&(perCluster-1) != 0:
		return g, fmt.Errorf("%d sectors a cluster", perCluster)
	case le.Uint16(b[17:]) != 0 || le.Uint16(b[22:]) != 0:
		return g, errors.New("not FAT32")
	case g.tables < 1 || g.tables > 2 || g.reserved == 0 || tableSectors == 0:
		return g, errors.New("no allocation table")
	}
	g.data = g.reserved + int64(g.tables)*g.tableSize
	clusters := (sectors*sectorSize - g.data) / g.clusterSize
	if clusters < minClusters || clusters > maxClusters || 4*(clusters+2) > g.tableSize {
		return g, fmt.Errorf("%d clusters do not fit a FAT32 table of %d bytes", clusters, g.tableSize)
	}
	g.clusters = uint32(clusters)
	if !g.has(g.root) {
		return g, fmt.Errorf("root folder at cluster %d of %d", g.root, g.clusters)
	}
	return g, nil
}

// has reports whether the volume has a cluster with this number.
func (g geometry) has(cluster uint32) bool { return cluster >= 2 && cluster < g.clusters+2 }

// offset returns the offset of a cluster's first byte.
func (g geometry) offset(cluster uint32) int64 {
	return g.data + int64(cluster-2)*g.clusterSize
}

// chain returns the chain of clusters that begins with first. A chain is damaged if it
// leaves the volume, is longer than the volume, or reaches a free cluster.
func (v *Volume) chain(first uint32) ([]uint32, error) {
	var all []uint32
	for c := first; c < minEnd; c = v.table[c] {
		if !v.geometry.has(c) || len(all) > int(v.geometry.clusters) {
			return nil, fmt.Errorf("fat: damaged chain from cluster %d", first)
		}
		all = append(all, c)
	}
	return all, nil
}

// free returns n free clusters, the lowest first, so that images with the same files have
// the same bytes.
func (v *Volume) free(n int) ([]uint32, error) {
	found := make([]uint32, 0, n)
	for c := uint32(2); c < v.geometry.clusters+2 && len(found) < n; c++ {
		if v.table[c] == 0 {
			found = append(found, c)
		}
	}
	if len(found) < n {
		return nil, fmt.Errorf("fat: %w: %d bytes wanted, %d free", ErrFull,
			int64(n)*v.geometry.clusterSize, int64(len(found))*v.geometry.clusterSize)
	}
	return found, nil
}

// ErrFull is returned when a file does not fit.
var ErrFull = errors.New("no space left")

// setTable writes table entries, in the second copy first: the firmware reads
// the first. Neighbouring entries are written together.
func (v *Volume) setTable(clusters []uint32, value func(i int) uint32) error {
	for i, c := range clusters {
		v.table[c] = value(i)
	}
	sectors := make(map[int64]bool)
	for _, c := range clusters {
		sectors[int64(c)*4/sectorSize] = true
	}
	for copyNumber := v.geometry.tables - 1; copyNumber >= 0; copyNumber-- {
		base := v.geometry.reserved + int64(copyNumber)*v.geometry.tableSize
		for _, s := range sortedKeys(sectors) {
			block := make([]byte, sectorSize)
			for i := range sectorSize / 4 {
				if n := int(s)*sectorSize/4 + i; n < len(v.table) {
					binary.LittleEndian.PutUint32(block[4*i:], v.table[n])
				}
			}
			if _, err := v.dev.WriteAt(block, base+s*sectorSize); err != nil {
				return fmt.Errorf("fat: write the allocation table: %w", err)
			}
		}
		if err := v.dev.Sync(); err != nil {
			return fmt.Errorf("fat: sync the allocation table: %w", err)
		}
	}
	return nil
}

// link joins clusters to one chain.
func (v *Volume) link(clusters []uint32) error {
	return v.setTable(clusters, func(i int) uint32 {
		if i == len(clusters)-1 {
			return endOfChain
		}
		return clusters[i+1]
	})
}

// Free returns the bytes that are not in use.
func (v *Volume) Free() int64 {
	var n int64
	for _, next := range v.table[2:] {
		if next == 0 {
			n++
		}
	}
	return n * v.geometry.clusterSize
}
