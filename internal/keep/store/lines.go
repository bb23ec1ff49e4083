package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// readList reads JSON lines that may come from anyone, up to so many bytes and values. Lines that are none, those that
// tidy refuses and those beyond the most are counted and left out.
func readList[T any](r io.Reader, bound int64, most int, tidy func(*T) bool) (list []T, left int, err error) {
	in := bufio.NewReaderSize(io.LimitReader(r, bound), 64<<10)
	for {
		line, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return list, left, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var one T
			if json.Unmarshal(line, &one) != nil || len(list) == most || !tidy(&one) {
				left++
			} else {
				list = append(list, one)
			}
		}
		if err != nil {
			return list, left, nil
		}
	}
}
