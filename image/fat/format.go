package fat

import (
	"encoding/binary"
	"fmt"
	"sort"
)

const (
	reservedSectors = 32
	clusterSectors  = 8 // 4 KiB, the size of a flash page and of the kernel's pages
)

// Format creates an empty volume of size bytes on dev, which must read as zeros
// wherever Format does not write. The caller chooses the serial number and the label (at
// most 11 capital letters and digits), so that the same input gives the same bytes.
func Format(dev Device, size int64, serial uint32, label string) error {
	if len(label) > 11 {
		return fmt.Errorf("fat: label %q has more than 11 letters", label)
	}
	sectors := size / sectorSize
	// Each cluster costs its sectors and 4 bytes in each of two tables.
	clusters := (sectors - reservedSectors) * sectorSize / (clusterSectors*sectorSize + 8)
	tableSectors := ((clusters+2)*4 + sectorSize - 1) / sectorSize
	clusters = (sectors - reservedSectors - 2*tableSectors) / clusterSectors
	if clusters < minClusters || clusters > maxClusters {
		return fmt.Errorf("fat: %d bytes give %d clusters; FAT32 wants %d to %d", size, clusters, minClusters, maxClusters)
	}
	le := binary.LittleEndian
	boot := make([]byte, sectorSize)
	copy(boot, "\xeb\x58\x90EIDETIC ")
	le.PutUint16(boot[11:], sectorSize)
	boot[13] = clusterSectors
	le.PutUint16(boot[14:], reservedSectors)
	boot[16] = 2    // tables
	boot[21] = 0xf8 // fixed disk
	le.PutUint16(boot[24:], 63)
	le.PutUint16(boot[26:], 255)
	le.PutUint32(boot[32:], uint32(sectors))
	le.PutUint32(boot[36:], uint32(tableSectors))
	le.PutUint32(boot[44:], 2) // root folder
	le.PutUint16(boot[48:], 1) // information sector
	le.PutUint16(boot[50:], 6) // copy of the boot sector
	boot[64] = 0x80
	boot[66] = 0x29
	le.PutUint32(boot[67:], serial)
	copy(boot[71:], fmt.Sprintf("%-11sFAT32   ", label))
	boot[510], boot[511] = 0x55, 0xaa

	info := make([]byte, sectorSize)
	copy(info, "RRaA")
	copy(info[484:], "rrAa")
	// The count of free clusters is marked as unknown, because an interruption would make it wrong.
	le.PutUint32(info[488:], 0xffffffff)
	le.PutUint32(info[492:], 0xffffffff)
	info[510], info[511] = 0x55, 0xaa

	head := make([]byte, 12)
	le.PutUint32(head, 0x0ffffff8)
	le.PutUint32(head[4:], endOfChain)
	le.PutUint32(head[8:], endOfChain) // the root folder's only cluster

	volume := make([]byte, entrySize)
	copy(volume, fmt.Sprintf("%-11s", label))
	volume[11] = attrVolume
	data := int64(reservedSectors+2*tableSectors) * sectorSize
	for _, part := range []struct {
		offset int64
		bytes  []byte
	}{
		{0, boot}, {sectorSize, info}, {6 * sectorSize, boot}, {7 * sectorSize, info},
		{reservedSectors * sectorSize, head},
		{(reservedSectors + tableSectors) * sectorSize, head},
		{data, volume},
	} {
		if _, err := dev.WriteAt(part.bytes, part.offset); err != nil {
			return fmt.Errorf("fat: format: %w", err)
		}
	}
	if err := dev.Sync(); err != nil {
		return fmt.Errorf("fat: format: %w", err)
	}
	return nil
}

func sortedKeys(set map[int64]bool) []int64 {
	keys := make([]int64, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i] < keys[j] })
	return keys
}
