package fat

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// List returns the entries of a folder; "" is the root.
func (v *Volume) List(path string) ([]Entry, error) {
	if path == "" {
		return v.readFolder(v.geometry.root)
	}
	_, _, entry, err := v.walk(path)
	if err != nil {
		return nil, err
	}
	if entry == nil || !entry.Folder || !v.geometry.has(entry.first) {
		return nil, fmt.Errorf("fat: folder %s: %w", path, fs.ErrNotExist)
	}
	return v.readFolder(entry.first)
}

// Open returns a reader of a file's bytes. It returns an error if the file's chain is
// shorter than its size in the folder.
func (v *Volume) Open(path string) (*io.SectionReader, error) {
	_, _, entry, err := v.walk(path)
	if err != nil {
		return nil, err
	}
	if entry == nil || entry.Folder {
		return nil, fmt.Errorf("fat: %s: %w", path, fs.ErrNotExist)
	}
	var chain []uint32
	if entry.Size > 0 {
		if chain, err = v.chain(entry.first); err != nil {
			return nil, fmt.Errorf("%w (%s)", err, path)
		}
	}
	if int64(len(chain))*v.geometry.clusterSize < entry.Size {
		return nil, fmt.Errorf("fat: %s: %d bytes in %d clusters", path, entry.Size, len(chain))
	}
	return io.NewSectionReader(&chainReader{v, chain}, 0, entry.Size), nil
}

// ReadFile returns a file of at most limit bytes.
func (v *Volume) ReadFile(path string, limit int64) ([]byte, error) {
	r, err := v.Open(path)
	if err != nil {
		return nil, err
	}
	if r.Size() > limit {
		return nil, fmt.Errorf("fat: %s has %d bytes, at most %d are read", path, r.Size(), limit)
	}
	return io.ReadAll(r)
}

type chainReader struct {
	v     *Volume
	chain []uint32
}

// ReadAt implements io.ReaderAt over the clusters of a chain.
func (r *chainReader) ReadAt(p []byte, off int64) (int, error) {
	size := r.v.geometry.clusterSize
	done := 0
	for done < len(p) {
		i, in := off/size, off%size
		if i >= int64(len(r.chain)) {
			return done, io.EOF
		}
		n := min(int64(len(p)-done), size-in)
		if _, err := r.v.dev.ReadAt(p[done:done+int(n)], r.v.geometry.offset(r.chain[i])+in); err != nil {
			return done, err
		}
		done += int(n)
		off += n
	}
	return done, nil
}

// Create writes a new file of size bytes from r. Before its last write the file does
// not exist; after it, the file is complete. It returns fs.ErrExist if the name is in use.
func (v *Volume) Create(path string, size int64, r io.Reader, at time.Time) error {
	if size < 0 || size > 1<<32-1 {
		return fmt.Errorf("fat: %s: %d bytes do not fit a FAT32 file", path, size)
	}
	folder, name, err := v.vacant(path)
	if err != nil {
		return err
	}
	clusters, err := v.free(int((size + v.geometry.clusterSize - 1) / v.geometry.clusterSize))
	if err != nil {
		return fmt.Errorf("%w (%s)", err, path)
	}
	block := make([]byte, v.geometry.clusterSize)
	for i, c := range clusters {
		n := min(v.geometry.clusterSize, size-int64(i)*v.geometry.clusterSize)
		if _, err := io.ReadFull(r, block[:n]); err != nil {
			return fmt.Errorf("fat: %s: the source ends after less than %d bytes: %w", path, size, err)
		}
		clear(block[n:])
		if _, err := v.dev.WriteAt(block, v.geometry.offset(c)); err != nil {
			return fmt.Errorf("fat: write %s: %w", path, err)
		}
	}
	if err := v.dev.Sync(); err != nil {
		return fmt.Errorf("fat: sync %s: %w", path, err)
	}
	var first uint32
	if len(clusters) > 0 {
		first = clusters[0]
		if err := v.link(clusters); err != nil {
			return err
		}
	}
	return v.publish(folder, name, false, first, size, at)
}

// Mkdir makes an empty folder.
func (v *Volume) Mkdir(path string, at time.Time) error {
	folder, name, err := v.vacant(path)
	if err != nil {
		return err
	}
	clusters, err := v.free(1)
	if err != nil {
		return err
	}
	block := make([]byte, v.geometry.clusterSize)
	parent := folder
	if parent == v.geometry.root {
		parent = 0
	}
	// encode refuses the names "." and "..", so make entries with other names and replace the names.
	for i, c := range []uint32{clusters[0], parent} {
		set, err := encode("D", true, c, 0, at, nil)
		if err != nil {
			return err
		}
		copy(block[i*entrySize:], set[0])
		copy(block[i*entrySize:], fmt.Sprintf("%-11s", ".."[:i+1]))
	}
	if _, err := v.dev.WriteAt(block, v.geometry.offset(clusters[0])); err != nil {
		return fmt.Errorf("fat: write %s: %w", path, err)
	}
	if err := v.link(clusters); err != nil {
		return err
	}
	return v.publish(folder, name, true, clusters[0], 0, at)
}

// Rename gives a file a new name in its folder. If it is interrupted, the file
// has its old name, its new one, or both ([Entry.Same]).
func (v *Volume) Rename(path, name string) error {
	folder, _, entry, err := v.walk(path)
	if err != nil {
		return err
	}
	if entry == nil {
		return fmt.Errorf("fat: %s: %w", path, fs.ErrNotExist)
	}
	if _, _, err := v.vacant(path[:strings.LastIndex(path, "/")+1] + name); err != nil {
		return err
	}
	if err := v.publish(folder, name, entry.Folder, entry.first, entry.Size, entry.Time); err != nil {
		return err
	}
	return v.unpublish(entry)
}

// Remove removes a file. Its clusters stay allocated if another name has them.
func (v *Volume) Remove(path string) error {
	folder, _, entry, err := v.walk(path)
	if err != nil {
		return err
	}
	if entry == nil || entry.Folder {
		return fmt.Errorf("fat: %s: %w", path, fs.ErrNotExist)
	}
	if err := v.unpublish(entry); err != nil {
		return err
	}
	left, err := v.readFolder(folder)
	if err != nil {
		return err
	}
	for _, e := range left {
		if e.Same(*entry) {
			return nil
		}
	}
	if entry.Size == 0 || !v.geometry.has(entry.first) {
		return nil
	}
	chain, err := v.chain(entry.first)
	if err != nil {
		return err
	}
	return v.setTable(chain, func(int) uint32 { return 0 })
}

// Reclaim frees clusters that no name leads to, which interrupted work leaves behind. It
// returns the number of bytes freed.
func (v *Volume) Reclaim() (int64, error) {
	used := make(map[uint32]bool)
	if err := v.mark(v.geometry.root, true, used, 0); err != nil {
		return 0, err
	}
	var lost []uint32
	for c := uint32(2); c < v.geometry.clusters+2; c++ {
		if v.table[c] != 0 && !used[c] {
			lost = append(lost, c)
		}
	}
	if len(lost) == 0 {
		return 0, nil
	}
	return int64(len(lost)) * v.geometry.clusterSize, v.setTable(lost, func(int) uint32 { return 0 })
}

// maxDepth bounds how deep Reclaim follows folders.
const maxDepth = 16

func (v *Volume) mark(first uint32, folder bool, used map[uint32]bool, depth int) error {
	if depth > maxDepth {
		return errors.New("fat: folders are nested too deep")
	}
	chain, err := v.chain(first)
	if err != nil {
		return err
	}
	for _, c := range chain {
		used[c] = true
	}
	if !folder {
		return nil
	}
	entries, err := v.readFolder(first)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.first == 0 || (e.Folder && used[e.first]) {
			continue
		}
		if err := v.mark(e.first, e.Folder, used, depth+1); err != nil {
			return fmt.Errorf("%w (%s)", err, e.Name)
		}
	}
	return nil
}

// vacant returns the folder and the last part of a path at which nothing exists yet.
func (v *Volume) vacant(path string) (uint32, string, error) {
	folder, name, entry, err := v.walk(path)
	if err != nil {
		return 0, "", err
	}
	if entry != nil {
		return 0, "", fmt.Errorf("fat: %s: %w", path, fs.ErrExist)
	}
	return folder, name, nil
}

// publish puts a name into a folder. It writes everything except the first byte of each
// entry, then these first bytes, the short entry's last: every reader ignores a long
// name without its short entry.
func (v *Volume) publish(folder uint32, name string, isFolder bool, first uint32, size int64, at time.Time) error {
	entries, err := v.readFolder(folder)
	if err != nil {
		return err
	}
	set, err := encode(name, isFolder, first, size, at, func(short string) bool { return v.shortTaken(folder, short) })
	if err != nil {
		return err
	}
	slots, err := v.vacantSlots(folder, len(set), entries)
	if err != nil {
		return err
	}
	for i, b := range set {
		hidden := append([]byte{deleted}, b[1:]...)
		if _, err := v.dev.WriteAt(hidden, int64(slots[i])); err != nil {
			return fmt.Errorf("fat: write the name %s: %w", name, err)
		}
	}
	if err := v.dev.Sync(); err != nil {
		return fmt.Errorf("fat: sync the name %s: %w", name, err)
	}
	for i, b := range set {
		if i == len(set)-1 {
			if err := v.dev.Sync(); err != nil {
				return fmt.Errorf("fat: sync the name %s: %w", name, err)
			}
		}
		if _, err := v.dev.WriteAt(b[:1], int64(slots[i])); err != nil {
			return fmt.Errorf("fat: write the name %s: %w", name, err)
		}
	}
	if err := v.dev.Sync(); err != nil {
		return fmt.Errorf("fat: sync the name %s: %w", name, err)
	}
	return nil
}

// unpublish removes a name, the short entry first.
func (v *Volume) unpublish(entry *Entry) error {
	for i := len(entry.slots) - 1; i >= 0; i-- {
		if _, err := v.dev.WriteAt([]byte{deleted}, int64(entry.slots[i])); err != nil {
			return fmt.Errorf("fat: remove the name %s: %w", entry.Name, err)
		}
		if err := v.dev.Sync(); err != nil {
			return fmt.Errorf("fat: remove the name %s: %w", entry.Name, err)
		}
	}
	return nil
}

func (v *Volume) shortTaken(folder uint32, short string) bool {
	raw, where, err := v.rawFolder(folder)
	if err != nil {
		return true
	}
	for i := range where {
		b := raw[i*entrySize:]
		if b[0] != deleted && b[11]&0x3f != attrLong && shortName(b) == short {
			return true
		}
	}
	return false
}

// vacantSlots finds n neighbouring free entries, and adds a cluster to the
// folder if there are none.
func (v *Volume) vacantSlots(folder uint32, n int, entries []Entry) ([]slot, error) {
	raw, where, err := v.rawFolder(folder)
	if err != nil {
		return nil, err
	}
	// The entries of a long name without its short one are free too: an interruption
	// left them.
	used := make(map[slot]bool)
	for _, e := range entries {
		for _, s := range e.slots {
			used[s] = true
		}
	}
	ended := false
	run := 0
	for i, s := range where {
		b := raw[i*entrySize : (i+1)*entrySize]
		ended = ended || b[0] == 0
		special := b[0] == '.' || b[0] != deleted && b[11]&0x3f != attrLong && b[11]&attrVolume != 0
		if !ended && (used[s] || special) {
			run = 0
			continue
		}
		if run++; run == n {
			return where[i-n+1 : i+1], nil
		}
	}
	chain, err := v.chain(folder)
	if err != nil {
		return nil, err
	}
	added, err := v.free(1)
	if err != nil {
		return nil, err
	}
	if _, err := v.dev.WriteAt(make([]byte, v.geometry.clusterSize), v.geometry.offset(added[0])); err != nil {
		return nil, fmt.Errorf("fat: grow a folder: %w", err)
	}
	if err := v.dev.Sync(); err != nil {
		return nil, fmt.Errorf("fat: grow a folder: %w", err)
	}
	// Write the new end of the chain first, then the link to it.
	if err := v.link(added); err != nil {
		return nil, err
	}
	if err := v.setTable(chain[len(chain)-1:], func(int) uint32 { return added[0] }); err != nil {
		return nil, err
	}
	return v.vacantSlots(folder, n, entries)
}
