package main

import (
	"bytes"
	"io"
	"strings"
	"syscall"
	"testing"
)

// full is a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestOutputOnAFullDisk: a command whose words are lost says so, whether or not it looks at what its printing returns;
// a failure of its own stays what it was.
func TestOutputOnAFullDisk(t *testing.T) {
	for args, want := range map[string]int{
		"suite ls": exitCannot, "suite ls knobs-1": exitCannot, "version": exitCannot, "link names --json": exitCannot,
		"suite ls none-1": exitUsage,
	} {
		var said bytes.Buffer
		status := run(t.Context(), strings.Fields(args), &streams{nil, full{}, &said})
		if status != want || strings.Contains(said.String(), syscall.ENOSPC.Error()) != (want == exitCannot) {
			t.Errorf("%s: status %d, %q; want %d, and that the disk is full if nothing else was wrong", args, status, said.String(), want)
		}
		if status := run(t.Context(), strings.Fields(args), &streams{nil, io.Discard, io.Discard}); (status == exitGood) != (want == exitCannot) {
			t.Errorf("%s with room: status %d", args, status)
		}
	}
}
