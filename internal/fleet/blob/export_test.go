package blob

// Known is the number of digests that are remembered.
func (l *Lister) Known() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.known)
}

// ParsePatch is parsePatch.
var ParsePatch = parsePatch // constant

// LockFile is lockFile.
var LockFile = lockFile // constant
