package device

import (
	"os"
	"path/filepath"
)

// steadyCaret writes into a home folder the setting of the desktop by which Chromium and
// Firefox draw the caret of a text field without blinking, as they do for people whom
// it distracts. A page whose script focuses a field, as a login form does, would never
// be at rest otherwise, and its last picture would be with or without the caret by chance.
func steadyCaret(home string) error {
	for _, version := range []string{"gtk-3.0", "gtk-4.0"} {
		folder := filepath.Join(home, ".config", version)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "settings.ini"), []byte("[Settings]\ngtk-cursor-blink=0\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}
