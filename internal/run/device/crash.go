package device

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"eidetic/internal/lab"
	"eidetic/internal/run/isolate"
)

// dumps is where Chromium, and programs that are made of it, leave a minidump for each of their processes that crashes,
// below the home; --disable-breakpad keeps them from sending it only.
const dumps = ".config/*/Cr*/pending/*.dmp"

const (
	// noDump is in what Chromium prints when its handler of crashes was called and was refused ptrace, as by the filter
	// of isolate: then there is no minidump.
	noDump = "crashpad/util/linux/scoped_ptrace_attach.cc"
	// outOfMemory begins what it prints when a page's scripts have all the memory that it grants them.
	outOfMemory = "V8 javascript OOM ("
)

// Crashed implements [experiment.Crasher]: Chromium goes on and shows a sad tab in place of the page. Firefox tells nobody
// of its crashed tabs; that the kernel ended one for want of memory is seen of both.
func (b *Browser) Crashed() string {
	if isolate.MemoryKills() > b.kills {
		return "the memory that the run may have was used up, and the kernel ended a process"
	}
	printed := b.process.log.String()
	if _, why, ok := strings.Cut(printed, outOfMemory); ok {
		why, _, _ = strings.Cut(why, ")")
		return "its scripts took more memory than the browser grants (" + lab.OneLine(why, 80) + ")"
	}
	if strings.Contains(printed, noDump) || hasDump(b.home) {
		return "a process of the browser ended by a fault, as when a page takes more memory than there is"
	}
	return ""
}

// Crashed is that of the browser, once it has started.
func (d *Dormant) Crashed() string {
	if b := d.awake(); b != nil {
		return b.Crashed()
	}
	return ""
}

// hasDump does not follow links out of the home, in which a page may have made some if it has taken the browser over.
func hasDump(home string) bool {
	root, err := os.OpenRoot(home)
	if err != nil {
		return false // it was stopped
	}
	defer root.Close()
	found, err := fs.Glob(root.FS(), dumps)
	return err == nil && len(found) > 0 // the pattern is constant
}

// forgetDumps removes what an earlier browser left in a home that was copied.
func forgetDumps(home string) error {
	old, err := filepath.Glob(filepath.Join(home, dumps))
	for _, path := range old {
		if err = os.Remove(path); err != nil {
			return err
		}
	}
	return err
}
