// Package pack makes a bootable disk from a Debian file system: it prunes the
// tree, adds our files, writes the tree as a cpio archive, joins that with the kernel
// to one EFI program, and puts the program on a GPT disk with a boot loader.
//
// In flow a tar archive as mmdebstrap writes it, the binary and lists of
// patterns; out flow the EFI program and the raw disk. The same input gives
// the same bytes: paths are sorted, times and inode numbers are fixed, and
// identifiers come from the caller.
//
// Formats: cpio "newc" as the kernel reads it
// (Documentation/driver-api/early-userspace/buffer-format.rst), PE sections as
// the UAPI group's Unified Kernel Image specification names them.
package pack

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"sort"
	"strings"
)

// File types, as in st_mode.
const (
	typeMask    = 0o170000
	TypeFile    = 0o100000
	TypeFolder  = 0o040000
	TypeLink    = 0o120000
	typeChar    = 0o020000
	setIDs      = 0o6000
	permissions = 0o7777
)

// Node is one file of a tree.
type Node struct {
	Mode  uint32 // type and permissions, as in st_mode
	UID   int
	GID   int
	Data  []byte // content, or the target of a symbolic link
	Major int64
	Minor int64
}

// Tree is a file system, by path without a leading slash.
type Tree map[string]*Node

// maxTree bounds the bytes read from a tar archive.
const maxTree = 4 << 30

// ReadTar reads a tree without the files for which drop is true.
func ReadTar(r io.Reader, drop func(name string) bool) (Tree, error) {
	t := make(Tree)
	var total int64
	links := make(map[string]string)
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the file system: %w", err)
		}
		name := Clean(h.Name)
		if name == "" || drop(name) {
			continue
		}
		n := &Node{Mode: uint32(h.Mode & permissions), UID: h.Uid, GID: h.Gid}
		switch h.Typeflag {
		case tar.TypeReg:
			if total += h.Size; total > maxTree {
				return nil, fmt.Errorf("read the file system: more than %d bytes", int64(maxTree))
			}
			n.Mode |= TypeFile
			if n.Data, err = io.ReadAll(tr); err != nil {
				return nil, fmt.Errorf("read the file system: %s: %w", name, err)
			}
		case tar.TypeDir:
			n.Mode |= TypeFolder
		case tar.TypeSymlink:
			n.Mode = TypeLink | 0o777
			n.Data = []byte(h.Linkname)
		case tar.TypeLink:
			links[name] = Clean(h.Linkname)
			continue
		case tar.TypeChar:
			n.Mode |= typeChar
			n.Major, n.Minor = h.Devmajor, h.Devminor
		default:
			continue // a socket or a pipe that a package left behind
		}
		// No user logs in, so no program needs the setuid or setgid bit.
		if n.Mode&typeMask == TypeFile {
			n.Mode &^= setIDs
		}
		t[name] = n
	}
	for name, target := range links {
		n, ok := t[target]
		if !ok {
			continue // the target was dropped, and with it this name
		}
		t[name] = n
	}
	return t, nil
}

// Clean normalises a path of a tree: "./usr/bin/" becomes "usr/bin".
func Clean(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}

// Add adds a file owned by root, with the folders above it.
func (t Tree) Add(name string, mode uint32, data []byte) {
	name = Clean(name)
	t.folders(name)
	t[name] = &Node{Mode: TypeFile | mode, Data: data}
}

// Link adds a symbolic link.
func (t Tree) Link(name, target string) {
	name = Clean(name)
	t.folders(name)
	t[name] = &Node{Mode: TypeLink | 0o777, Data: []byte(target)}
}

// Folder adds a folder.
func (t Tree) Folder(name string, mode uint32) {
	name = Clean(name)
	t.folders(name)
	t[name] = &Node{Mode: TypeFolder | mode}
}

func (t Tree) folders(name string) {
	for dir := path.Dir(name); dir != "." && t[dir] == nil; dir = path.Dir(dir) {
		t[dir] = &Node{Mode: TypeFolder | 0o755}
	}
}

// Drop removes the files for which drop is true, and everything below them.
func (t Tree) Drop(drop func(name string) bool) {
	for name := range t {
		if drop(name) {
			delete(t, name)
		}
	}
	for _, name := range t.Names() {
		if dir := path.Dir(name); dir != "." && t[dir] == nil {
			delete(t, name)
		}
	}
}

// Names returns all paths, sorted, so that a folder comes before its content.
func (t Tree) Names() []string {
	names := make([]string, 0, len(t))
	for name := range t {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Size is the sum of the files' bytes, of several names of one file once.
func (t Tree) Size() int64 {
	var n int64
	counted := make(map[*Node]bool, len(t))
	for _, node := range t {
		if !counted[node] {
			n += int64(len(node.Data))
		}
		counted[node] = true
	}
	return n
}
