package adbserver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

const (
	maxChunk = 64 << 10 // of a file, by SYNC.TXT
	fileMode = 0o100644 // a file that its owner writes and all read
)

// Push writes a file of the phone. Its folder must exist.
func (c Client) Push(ctx context.Context, serial, path string, data []byte) error {
	if strings.ContainsAny(path, ",\x00") || len(path) > 1024 {
		return fmt.Errorf("adb: %.100q is no name of a file on a phone", path)
	}
	conn, err := c.Open(ctx, "host:transport:"+serial, "sync:")
	if err != nil {
		return err
	}
	defer conn.Close()
	message := func(id string, n int, text string) []byte {
		return append(binary.LittleEndian.AppendUint32([]byte(id), uint32(n)), text...)
	}
	name := fmt.Sprintf("%s,%d", path, fileMode)
	out := message("SEND", len(name), name)
	for chunk := range slices.Chunk(data, maxChunk) {
		out = append(append(out, message("DATA", len(chunk), "")...), chunk...)
	}
	out = append(out, message("DONE", 1, "")...) // the number is the file's time, in seconds since 1970
	if _, err := conn.Write(out); err != nil {
		return fmt.Errorf("adb: sending %s: %w", path, err)
	}
	if err := readPushed(conn); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("adb: the phone does not take %s: %w", path, err)
	}
	_, _ = conn.Write(message("QUIT", 0, ""))
	return nil
}

// readPushed reads the phone's answer to a file.
func readPushed(r io.Reader) error {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(head[4:])
	switch id := string(head[:4]); {
	case id == "OKAY":
		return nil
	case id == "FAIL" && n <= maxMessage:
		reason := make([]byte, n)
		if _, err := io.ReadFull(r, reason); err != nil {
			return err
		}
		return errors.New(lab.Clip(strings.TrimSpace(string(reason)), 300))
	}
	return fmt.Errorf("% x is no answer to a file", head)
}
