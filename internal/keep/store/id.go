package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// NewID makes a run's identifier, such as 20261121-091400-demo, from the time and the
// name that the person gave. Other characters than those of an ID become a dash. Names
// are cut at 40 characters.
func NewID(at time.Time, name string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		switch {
		case b.Len() >= 40:
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name = strings.Trim(b.String(), "-.")
	if name == "" {
		name = "run"
	}
	return at.UTC().Format("20060102-150405") + "-" + name
}

// FreeID is NewID with a number appended if the store already has the ID.
func (s *Store) FreeID(at time.Time, name string) string {
	id := NewID(at, name)
	for n := 2; !s.Free(id); n++ {
		id = fmt.Sprintf("%s-%d", NewID(at, name), n)
	}
	return id
}

// Free says whether nothing at all is in the place of a run's folder.
func (s *Store) Free(id string) bool {
	_, err := os.Lstat(filepath.Join(s.root, runsDir, id))
	return errors.Is(err, fs.ErrNotExist)
}
