package device

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Chromium and Firefox read the setting from the home folder; package appsuite has a page with a caret.
func TestSteadyCaret(t *testing.T) {
	home := t.TempDir()
	if err := steadyCaret(home); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(home, ".config/gtk-3.0/settings.ini"))
	if err != nil || !strings.Contains(string(text), "gtk-cursor-blink=0") {
		t.Errorf("the settings are %q, %v; want a caret that does not blink", text, err)
	}
}
