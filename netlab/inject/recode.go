package inject

import "fmt"

// Recodes tells whether a body of a content coding can be given another.
func Recodes(coding string) bool {
	switch coding {
	case "gzip", "x-gzip", "br", "zstd", "deflate":
		return true
	}
	return false
}

// NewRecoder returns a Stream that changes nothing but the content coding, to
// "gzip" or "" (identity), for a device that does not take the recorded one.
func NewRecoder(from, to string) (*Stream, error) {
	s := &Stream{plan: &Plan{encoding: from}, placed: true}
	var err error
	if s.encode, err = newEncoder(to, &s.out); err != nil {
		return nil, fmt.Errorf("recode: %w", err)
	}
	s.decode = newPusher(from)
	return s, nil
}
