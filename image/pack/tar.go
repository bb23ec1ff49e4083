package pack

import (
	"archive/tar"
	"fmt"
	"io"
	"time"
)

// WriteTar writes the tree as a tar archive: sorted, every time the same mtime (seconds since
// 1970). A file with several names is a file and hard links to it.
func (t Tree) WriteTar(w io.Writer, mtime int64) error {
	tw := tar.NewWriter(w)
	first := make(map[*Node]string) // a file's first name
	for _, name := range t.Names() {
		n := t[name]
		h := &tar.Header{
			Name: name, Mode: int64(n.Mode & permissions), Uid: n.UID, Gid: n.GID, ModTime: time.Unix(mtime, 0), Format: tar.FormatPAX,
		}
		data := n.Data
		switch known := first[n]; {
		case known != "":
			h.Typeflag, h.Linkname, data = tar.TypeLink, known, nil
		case n.Mode&typeMask == TypeFolder:
			h.Typeflag, h.Name, data = tar.TypeDir, name+"/", nil
		case n.Mode&typeMask == TypeLink:
			h.Typeflag, h.Linkname, data = tar.TypeSymlink, string(n.Data), nil
		case n.Mode&typeMask == typeChar:
			h.Typeflag, h.Devmajor, h.Devminor, data = tar.TypeChar, n.Major, n.Minor, nil
		default:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(data))
			first[n] = name
		}
		if err := tw.WriteHeader(h); err != nil {
			return fmt.Errorf("write tar: %s: %w", name, err)
		}
		if _, err := tw.Write(data); err != nil {
			return fmt.Errorf("write tar: %s: %w", name, err)
		}
	}
	if err := tw.Close(); err != nil {
		return fmt.Errorf("write tar: %w", err)
	}
	return nil
}
