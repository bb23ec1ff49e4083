package x11

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// findCookie returns the MIT-MAGIC-COOKIE-1 for a display number from an
// Xauthority file; nil when there is none. An empty file name means
// $XAUTHORITY, else ~/.Xauthority, which need not exist.
func findCookie(file, number string) ([]byte, error) {
	named := file != ""
	if !named {
		file = os.Getenv("XAUTHORITY")
	}
	if file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, nil // a service without a home: no authorisation
		}
		file = filepath.Join(home, ".Xauthority")
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("authority file: %w", err)
	}
	host, _ := os.Hostname()
	return parseCookie(b, host, number), nil
}

// parseCookie reads entries of family, address, number, name and data, each
// with a big-endian length (libXau's file format), up to the first that fits.
func parseCookie(b []byte, host, number string) []byte {
	const local, wild = 256, 65535
	for len(b) >= 2 {
		family := binary.BigEndian.Uint16(b)
		b = b[2:]
		var field [4][]byte
		for i := range field {
			if len(b) < 2 {
				return nil
			}
			n := int(binary.BigEndian.Uint16(b))
			if len(b) < 2+n {
				return nil
			}
			field[i], b = b[2:2+n], b[2+n:]
		}
		fits := family == wild || family == local && string(field[0]) == host
		if fits && (len(field[1]) == 0 || string(field[1]) == number) &&
			string(field[2]) == "MIT-MAGIC-COOKIE-1" && len(field[3]) == 16 {
			return field[3]
		}
	}
	return nil
}
