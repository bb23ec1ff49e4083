package storytest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Phone is a device whose browser is stopped, cleared and started by commands, as Android's is. Its owner has made it
// trust the box once, which clearing the browser does not undo.
type Phone struct {
	*Device

	mu      sync.Mutex
	browser *exec.Cmd // nil while it is stopped
	app     *exec.Cmd // beside it
}

// PlugPhone turns a network namespace, whose interface is its port, into a phone.
func PlugPhone(t testing.TB, at Place, port string, width, height int) *Phone {
	t.Helper()
	return &Phone{Device: plug(t, at, port, width, height)}
}

// home is where the browser keeps everything.
func (p *Phone) home() string { return filepath.Join(p.dir, "phone") }

// Stop ends the browser.
func (p *Phone) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	end(&p.browser)
}

// Launch starts a program of a shell's words in front of the browser; "" ends it.
func (p *Phone) Launch(words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if end(&p.app); words != "" {
		p.app = p.run(words)
	}
}

func end(cmd **exec.Cmd) {
	if *cmd != nil {
		_ = syscall.Kill(-(*cmd).Process.Pid, syscall.SIGKILL)
		_ = (*cmd).Wait() // reports that it was killed
		*cmd = nil
	}
}

// Clear removes what the browser has stored.
func (p *Phone) Clear() {
	p.Stop()
	if err := os.RemoveAll(filepath.Join(p.home(), "profile")); err != nil {
		p.t.Error(err)
	}
}

// Open starts the browser at a URL. It is the one of the box's script, in a home that stays.
func (p *Phone) Open(url string) {
	p.Stop()
	edits := []string{
		`s|home=$(mktemp -d)|home='` + p.home() + `'; mkdir -p "$home"|`, `s|rm -rf "$home/profile"|:|`, `s|rm -rf "$home" .*|:|`,
		`s|\(certutil.* -N --empty-password\)|[ -e "$home/.pki/nssdb/cert9.db" ] \|\| \1|`, `s|http://box.test/start >|'` + url + `' >|`,
	}
	script := fmt.Sprintf(`curl -fsS --retry 20 --retry-all-errors http://box.test/kiosk.sh | sed -e %s | sh -s %d %d`,
		quoteAll(edits), p.width, p.height)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.browser = p.run(script)
}

func quoteAll(edits []string) string {
	var all []string
	for _, e := range edits {
		all = append(all, "'"+strings.ReplaceAll(e, "'", `'\''`)+"'")
	}
	return strings.Join(all, " -e ")
}
