// Package backup writes all that a box keeps into one file, reads such a file, and puts its
// content in the place of a data folder.
//
// A backup is a POSIX tar file (pax) without compression, since most of what it holds is
// compressed: backup.json, which says what is in it, then the files in ascending order of
// their names, and at the end SHA256SUMS, which sha256sum -c can read. A backup without
// that last file is incomplete.
//
// A reader trusts nothing: only regular files of known names are accepted, none comes twice,
// sparse files and links are refused, and the bytes are counted before they are written. A
// restore takes place in two steps. [Stage] unpacks into a folder of its own beside the old
// content, checks everything, and gives the folder its final name; until then the old state
// counts, and from then on the new one. [Apply] then moves the files to their places, and
// goes on where a killed process stopped. It must run before anything opens the data folder.
package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// Format is the format that this version writes, and the only one that it reads.
const Format = "eidetic/backup/1"

const (
	manifestName = "backup.json"
	sumsName     = "SHA256SUMS"
	// ConfigName is the configuration's name in a backup, and in the data folder after a restore.
	ConfigName = "appliance.yaml"
	// mostFiles bounds the files of a backup: ten thousand runs of a hundred files each are a fifth of it.
	mostFiles = 5_000_000
	// maxManifest bounds backup.json.
	maxManifest = 1 << 20
	// maxName bounds a file's name, in bytes, and maxDepth its elements.
	maxName, maxDepth = 1000, 12
)

// Manifest says what is in a backup.
type Manifest struct {
	Format   string    `json:"format"`
	Made     time.Time `json:"made"`
	Software string    `json:"software"` // that made it
	// Secrets says whether tokens, keys, passwords and webhooks are in it.
	Secrets    bool  `json:"secrets"`
	Runs       int   `json:"runs"`
	Recordings int   `json:"recordings"`
	Bytes      int64 `json:"bytes"` // of all files, when the backup began
	// LeftOut names what is not in it, and why.
	LeftOut []string `json:"left_out,omitempty"`
}

// ErrHostile is in the error of a file that is no backup, or a damaged or forged one.
var ErrHostile = errors.New("this is no backup that can be restored") // constant

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrHostile, fmt.Errorf(format, args...))
}

// element is one element of a path that begins with no dot.
var element = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`) // constant

// plainNames are the files besides those of runs and recordings, each with whether it is a secret.
func plainNames() map[string]bool {
	return map[string]bool{
		"queue.db": false, "automation.db": false, ConfigName: false,
		"credentials/credentials.json": false, "credentials/audit.jsonl": false, "credentials/audit.jsonl.1": false,
		"token": true, "wifi.json": true,
	}
}

// secretFolders hold keys and certificates.
func secretFolders() []string { return []string{"ca", "panel"} }

// CheckName says why a file of a name may not be in a backup, or nil.
func CheckName(name string, secrets bool) error {
	first, rest, _ := strings.Cut(name, "/")
	switch secret, plain := plainNames()[name]; {
	case len(name) > maxName || !fs.ValidPath(name) || strings.ContainsFunc(name, unicode.IsControl):
		return refuse("%.100q is not the name of a file in a backup", name)
	case plain && secret && !secrets:
		return refuse("%q is a secret, and backup.json says that there are none", name)
	case plain:
		return nil
	case first == "archives" && element.MatchString(rest) && path.Ext(rest) == ".wacz":
		return nil
	case first == "runs":
		return checkRunFile(name, rest)
	}
	for _, dir := range secretFolders() {
		if first == dir && element.MatchString(rest) && secrets {
			return nil
		}
	}
	return refuse("%.100q is not a file that a backup has", name)
}

func checkRunFile(name, rest string) error {
	parts := strings.Split(rest, "/")
	if len(parts) < 2 || len(parts) > maxDepth || !element.MatchString(parts[0]) {
		return refuse("%.100q is not a file of a run", name)
	}
	for _, p := range parts[1:] {
		if len(p) > 255 || p[0] == '.' { // fs.ValidPath: none is empty
			return refuse("%.100q is not a file of a run", name)
		}
	}
	return nil
}

// follows says whether a name may come after another: names ascend element by element, so
// that none comes twice, and no file is a folder of another.
func follows(before, name string) bool {
	key := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
	return key(before) < key(name) && !strings.HasPrefix(name, before+"/")
}
