package inject

import (
	"fmt"
	"slices"
)

// Recodes tells whether a body with content codings can be given others.
func Recodes(coding string) bool {
	list := codings(coding)
	return len(list) > 0 && len(list) <= maxCodings && !slices.ContainsFunc(list, func(one string) bool { return !isKnown(one) })
}

func isKnown(coding string) bool {
	switch coding {
	case "gzip", "br", "zstd", "deflate":
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
