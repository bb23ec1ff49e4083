package service

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOwnSocketInADeepFolder: the folder for temporary files may have a longer name than a socket's address holds.
func TestOwnSocketInADeepFolder(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("deep/", 30))
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RUNTIME_DIRECTORY", deep)
	l, remove, err := ownSocket()
	if err != nil {
		t.Fatal(err)
	}
	sockets, err := filepath.Glob(filepath.Join(deep, "*", "panel"))
	if err != nil || len(sockets) != 1 {
		t.Errorf("in the folder: %v, %v; want one socket", sockets, err)
	}
	conn, err := net.Dial(l.Addr().Network(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	remove()
	for _, socket := range sockets {
		if _, err := os.Stat(filepath.Dir(socket)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("afterwards: %v; want the folder gone", err)
		}
	}
}
