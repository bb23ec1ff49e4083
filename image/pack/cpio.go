package pack

import (
	"fmt"
	"io"
)

// WriteCPIO writes the tree as a newc archive: sorted, every time the same
// mtime (seconds since 1970), inode numbers counted from 1. The kernel unpacks
// it into the root of its first file system.
func (t Tree) WriteCPIO(w io.Writer, mtime int64) error {
	c := cpio{w: w, mtime: mtime}
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
	inode int
	at    int64
	err   error
}

func (c *cpio) entry(name string, n *Node) {
	links, mtime := 1, c.mtime
	if n.Mode&typeMask == TypeFolder {
		links = 2
	}
	if n.Mode == 0 { // the trailer
		mtime = 0
	} else {
		c.inode++
	}
	c.write([]byte(fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		c.inode, n.Mode, n.UID, n.GID, links, mtime, len(n.Data), 0, 0, n.Major, n.Minor, len(name)+1, 0)))
	c.write([]byte(name + "\x00"))
	c.pad(4)
	c.write(n.Data)
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
