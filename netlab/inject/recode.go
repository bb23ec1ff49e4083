package inject

import "fmt"

// Recodes tells whether a body with a content coding can be given another coding.
func Recodes(coding string) bool {
	switch coding {
	case "gzip", "x-gzip", "br", "zstd", "deflate":
		return true
	}
	return false
}

// NewRecoder returns a Stream that changes only the content coding, to "gzip" or "" (identity), for
// a device that does not accept the recorded one.
func NewRecoder(from, to string) (*Stream, error) {
	s := &Stream{plan: &Plan{encoding: from}, placed: true}
	var err error
	if s.encode, err = newEncoder(to, &s.out); err != nil {
		return nil, fmt.Errorf("recode: %w", err)
	}
	s.decode = newPusher(from)
	return s, nil
}
