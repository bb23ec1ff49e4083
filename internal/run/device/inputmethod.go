package device

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"eidetic/internal/base/programs"
	"eidetic/internal/run/isolate"
)

// engine is an engine of uim: an input method that GTK loads into the program itself, so that it needs no server and no
// message bus.
type engine struct {
	name, file string // as uim calls it, and the file of its programs that registers it, without .scm
	needs      []programs.Program
}

// engines are those of a plan's input methods.
func engines() map[string]engine {
	module := programs.Uim()
	return map[string]engine{
		"anthy":  {"anthy-utf8", "anthy-utf8", []programs.Program{module, programs.Anthy()}},
		"byeoru": {"byeoru", "byeoru", []programs.Program{module}},
		"pinyin": {"py", "pyload", []programs.Program{module}},
	}
}

// engineFiles is where Debian keeps which engines are installed, outside of the system's folders.
const engineFiles = "/var/lib/uim"

// checkInputMethod returns an error for an input method that this machine lacks; "" is none.
func checkInputMethod(name string) error {
	e, ok := engines()[name]
	if name != "" && !ok {
		return fmt.Errorf("input_method: there is none %q", name)
	}
	if err := programs.Missing(e.needs); err != nil {
		return fmt.Errorf("input_method: %w", err)
	}
	return nil
}

// engineSettings are what an engine reads in a home.
const engineSettings = "uim.scm"

// writeEngine writes what an input method reads in a home in which no program has run yet.
func writeEngine(home, name string) error {
	if name == "" {
		return nil
	}
	e := engines()[name]
	text := fmt.Sprintf("(define enabled-im-list '(%s direct))\n(require-module %q)\n(define default-im-name '%s)\n", e.name, e.file, e.name)
	return errors.Join(
		os.WriteFile(filepath.Join(home, engineSettings), []byte(text), 0o644),
		// Where its folder in $XDG_RUNTIME_DIR cannot be made, it starts no daemon, which would outlive the program.
		os.WriteFile(filepath.Join(home, "uim"), nil, 0o644))
}

// engineEnvironment is what a program's environment needs for an input method.
func engineEnvironment(home, name string, s isolate.Sandbox) ([]string, error) {
	switch {
	case name == "":
		return nil, nil
	case s == isolate.SandboxNone:
		return nil, fmt.Errorf("input_method: %s learns, and without the sandbox it would learn in your own home: leave out --no-sandbox", name)
	}
	return []string{"GTK_IM_MODULE=uim", "LIBUIM_USER_SCM_FILE=" + filepath.Join(home, engineSettings)}, nil
}
