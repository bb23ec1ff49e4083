package pack

import (
	"fmt"
	"io"
)

// WriteCPIO writes the tree as a newc archive: sorted, every time the same
// mtime (seconds since 1970), inode numbers counted from 1. Names of one file are
// hard links, the first of which has the content. The kernel unpacks
// it into the root of its first file system.
func (t Tree) WriteCPIO(w io.Writer, mtime int64) error {
	c := cpio{w: w, mtime: mtime, names: make(map[*Node]int), inodes: make(map[*Node]int)}
	for _, n := range t {
		c.names[n]++
	}
	for _, name := range t.Names() {
		c.entry(name, t[name])
	}
	c.entry("TRAILER!!!", &Node{})
	c.pad(512)
	if c.err != nil {
		return fmt.Errorf("write cpio: %w", c.err)
	}
	return nil
}

type cpio struct {
	w     io.Writer
	mtime int64
	inode int // the last one
	at    int64
	err   error
	// names counts the names of each file, and inodes are those of files that have been written.
	names, inodes map[*Node]int
}

func (c *cpio) entry(name string, n *Node) {
	links, mtime, data, inode := 1, c.mtime, n.Data, c.inode
	switch n.Mode & typeMask {
	case TypeFolder:
		links = 2
	case TypeFile:
		links = c.names[n]
	}
	switch written := c.inodes[n]; {
	case n.Mode == 0: // the trailer
		mtime = 0
	case written != 0 && links > 1:
		inode, data = written, nil
	default:
		c.inode++
		inode = c.inode
		c.inodes[n] = inode
	}
	c.write([]byte(fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		inode, n.Mode, n.UID, n.GID, links, mtime, len(data), 0, 0, n.Major, n.Minor, len(name)+1, 0)))
	c.write([]byte(name + "\x00"))
	c.pad(4)
	c.write(data)
	c.pad(4)
}

func (c *cpio) write(b []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(b)
		c.at += int64(len(b))
	}
}

func (c *cpio) pad(to int64) {
	c.write(make([]byte, (to-c.at%to)%to))
}
