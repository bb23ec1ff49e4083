package fat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode/utf16"
)

const (
	attrVolume = 0x08
	attrFolder = 0x10
	attrFile   = 0x20
	attrLong   = 0x0f

	deleted    = 0xe5
	longUnits  = 13 // UTF-16 units in one entry of a long name
	lastLong   = 0x40
	maxEntries = 65536 // entries of one folder, the specification's limit
)

// Entry is one name in a folder.
type Entry struct {
	Name   string
	Folder bool
	Size   int64
	Time   time.Time // of the last change, UTC, even seconds

	first uint32
	slots []slot // its directory entries, the short one last
}

// Same reports whether two entries are names of one file, which happens only when a
// rename was interrupted.
func (e Entry) Same(f Entry) bool { return e.first == f.first && e.first != 0 }

// slot is the offset of a directory entry on the device.
type slot int64

// rawFolder returns a folder's bytes and the slot of each of its entries.
func (v *Volume) rawFolder(first uint32) ([]byte, []slot, error) {
	chain, err := v.chain(first)
	if err != nil {
		return nil, nil, err
	}
	if int64(len(chain))*v.geometry.clusterSize > maxEntries*entrySize {
		return nil, nil, fmt.Errorf("fat: folder at cluster %d has more than %d entries", first, maxEntries)
	}
	var raw []byte
	var where []slot
	for _, c := range chain {
		block := make([]byte, v.geometry.clusterSize)
		if _, err := v.dev.ReadAt(block, v.geometry.offset(c)); err != nil {
			return nil, nil, fmt.Errorf("fat: read a folder: %w", err)
		}
		for i := int64(0); i < v.geometry.clusterSize; i += entrySize {
			where = append(where, slot(v.geometry.offset(c)+i))
		}
		raw = append(raw, block...)
	}
	return raw, where, nil
}

// readFolder returns the entries of the folder that begins at a cluster, in
// their order on the device, without "." and "..".
func (v *Volume) readFolder(first uint32) ([]Entry, error) {
	raw, where, err := v.rawFolder(first)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	var long longName
	for i := 0; i < len(where); i++ {
		b := raw[i*entrySize : (i+1)*entrySize]
		switch {
		case b[0] == 0:
			return entries, nil
		case b[0] == deleted:
			long = longName{}
			continue
		case b[11]&0x3f == attrLong:
			long.add(b, where[i])
			continue
		case b[11]&attrVolume != 0 || b[0] == '.':
			long = longName{}
			continue
		}
		e := Entry{
			Name:   long.name(b),
			Folder: b[11]&attrFolder != 0,
			Size:   int64(binary.LittleEndian.Uint32(b[28:])),
			Time:   parseTime(binary.LittleEndian.Uint16(b[24:]), binary.LittleEndian.Uint16(b[22:])),
			first:  uint32(binary.LittleEndian.Uint16(b[20:]))<<16 | uint32(binary.LittleEndian.Uint16(b[26:])),
		}
		if e.Name == "" {
			e.Name = shortName(b)
			e.slots = []slot{where[i]}
		} else {
			e.slots = append(long.slots, where[i])
		}
		entries = append(entries, e)
		long = longName{}
	}
	return entries, nil
}

// longName collects the entries of a long name. They precede the short entry, and the
// end of the name comes first.
type longName struct {
	units []uint16
	next  byte // the number of the next entry, counting down
	sum   byte
	slots []slot
}

func (l *longName) add(b []byte, at slot) {
	number := b[0]
	if number&lastLong != 0 {
		*l = longName{next: number &^ lastLong, sum: b[13]}
	}
	if l.next == 0 || number&^lastLong != l.next || b[13] != l.sum || l.next > 20 {
		*l = longName{}
		return
	}
	units := make([]uint16, 0, longUnits)
	for _, r := range [][2]int{{1, 11}, {14, 26}, {28, 32}} {
		for i := r[0]; i < r[1]; i += 2 {
			units = append(units, binary.LittleEndian.Uint16(b[i:]))
		}
	}
	l.units = append(units, l.units...)
	l.slots = append(l.slots, at)
	l.next--
}

// name returns the long name if it is complete and belongs to the short entry b, otherwise "".
func (l *longName) name(b []byte) string {
	if len(l.units) == 0 || l.next != 0 || l.sum != checksum(b[:11]) {
		return ""
	}
	units := l.units
	for i, u := range units {
		if u == 0 {
			units = units[:i]
			break
		}
	}
	return string(utf16.Decode(units))
}

func shortName(b []byte) string {
	name := strings.TrimRight(string(b[:8]), " ")
	if ext := strings.TrimRight(string(b[8:11]), " "); ext != "" {
		name += "." + ext
	}
	return name
}

// checksum computes the checksum by which a long name refers to its short entry.
func checksum(short []byte) byte {
	var sum byte
	for _, c := range short {
		sum = sum>>1 | sum<<7
		sum += c
	}
	return sum
}

// encode makes the directory entries of a name, the short one last. A name that is
// not 8.3 in capitals gets a short name that no boot loader takes for a program: if the
// long name were damaged, the file would be ignored instead of booted without its counter.
func encode(name string, folder bool, first uint32, size int64, at time.Time, taken func(short string) bool) ([][]byte, error) {
	if name == "" || len(name) > 255 || strings.ContainsAny(name, "\\/:*?\"<>|\x00") || strings.Trim(name, " .") != name {
		return nil, fmt.Errorf("fat: %q is not a valid name", name)
	}
	short := make([]byte, entrySize)
	long := !isShort(name, short)
	for n := 1; long; n++ {
		copy(short, fmt.Sprintf("LONG%04XNAM", n))
		if n > 0xffff {
			return nil, errors.New("fat: no short name is left")
		}
		if !taken(shortName(short)) {
			break
		}
	}
	short[11] = attrFile
	if folder {
		short[11] = attrFolder
	}
	date, clock := formatTime(at)
	le := binary.LittleEndian
	le.PutUint16(short[14:], clock) // created
	le.PutUint16(short[16:], date)
	le.PutUint16(short[18:], date) // read
	le.PutUint16(short[20:], uint16(first>>16))
	le.PutUint16(short[22:], clock)
	le.PutUint16(short[24:], date)
	le.PutUint16(short[26:], uint16(first))
	le.PutUint32(short[28:], uint32(size))
	if !long {
		return [][]byte{short}, nil
	}
	units := utf16.Encode([]rune(name))
	count := (len(units) + longUnits - 1) / longUnits
	var set [][]byte
	for number := count; number >= 1; number-- {
		b := make([]byte, entrySize)
		b[0] = byte(number)
		if number == count {
			b[0] |= lastLong
		}
		b[11], b[13] = attrLong, checksum(short[:11])
		i := (number - 1) * longUnits
		for _, r := range [][2]int{{1, 11}, {14, 26}, {28, 32}} {
			for at := r[0]; at < r[1]; at += 2 {
				unit := uint16(0xffff)
				if i < len(units) {
					unit = units[i]
				} else if i == len(units) {
					unit = 0
				}
				le.PutUint16(b[at:], unit)
				i++
			}
		}
		set = append(set, b)
	}
	return append(set, short), nil
}

// isShort writes name to the short entry b if it is 8.3 in capitals.
func isShort(name string, b []byte) bool {
	base, ext, _ := strings.Cut(name, ".")
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if base == "" || len(base) > 8 || len(ext) > 3 || strings.Trim(base+ext, allowed) != "" || strings.HasSuffix(name, ".") {
		return false
	}
	copy(b, fmt.Sprintf("%-8s%-3s", base, ext))
	return true
}

func formatTime(t time.Time) (date, clock uint16) {
	t = t.UTC()
	if t.Year() < 1980 {
		t = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return uint16(t.Year()-1980)<<9 | uint16(t.Month())<<5 | uint16(t.Day()),
		uint16(t.Hour())<<11 | uint16(t.Minute())<<5 | uint16(t.Second()/2)
}

func parseTime(date, clock uint16) time.Time {
	return time.Date(1980+int(date>>9), time.Month(date>>5&15), int(date&31),
		int(clock>>11), int(clock>>5&63), int(clock&31)*2, 0, time.UTC)
}

// walk finds the folder of a path ("EFI/Linux") and the entry of its last part.
// The entry is nil if only the last part does not exist.
func (v *Volume) walk(path string) (folder uint32, base string, entry *Entry, err error) {
	folder = v.geometry.root
	parts := strings.Split(path, "/")
	for i, part := range parts {
		entries, err := v.readFolder(folder)
		if err != nil {
			return 0, "", nil, err
		}
		entry = nil
		for j := range entries {
			if strings.EqualFold(entries[j].Name, part) {
				entry = &entries[j]
			}
		}
		if i == len(parts)-1 {
			return folder, part, entry, nil
		}
		if entry == nil || !entry.Folder || !v.geometry.has(entry.first) {
			return 0, "", nil, fmt.Errorf("fat: %s: %w", strings.Join(parts[:i+1], "/"), fs.ErrNotExist)
		}
		folder = entry.first
	}
	return 0, "", nil, fs.ErrNotExist
}
