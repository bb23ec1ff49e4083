package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"eidetic/internal/lab"
)

// maxMemory bounds the bytes that are read of what memory the processes of a trial had.
const maxMemory = 16 << 20

// ReadMemory reads the memory of a trial's processes. What is no reading, or too much, is counted and left out.
func ReadMemory(r io.Reader) (list []lab.ProcessMemory, left int, err error) {
	in := bufio.NewReaderSize(io.LimitReader(r, maxMemory), 64<<10)
	for {
		line, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return list, left, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var m lab.ProcessMemory
			if json.Unmarshal(line, &m) != nil || m.At < 0 || m.RSS < 0 || m.PSS < 0 || len(list) == lab.MostMemory {
				left++
			} else {
				m.Name = lab.OneLine(m.Name, 60)
				list = append(list, m)
			}
		}
		if err != nil {
			return list, left, nil
		}
	}
}
