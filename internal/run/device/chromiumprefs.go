package device

import (
	"fmt"
	"os"
	"path/filepath"
)

// chromiumPreferences keep Chromium's offers to keep a password, an address or a card off the screen of a
// journey that logs in: they cover the page. No flag does. Notifications are refused before a page asks: the flag that
// keeps them away takes their interface from pages, which expect it in every browser.
const chromiumPreferences = `{"credentials_enable_service":false,"credentials_enable_autosignin":false,` +
	`"profile":{"password_manager_enabled":false,"password_manager_leak_detection":false,` +
	`"default_content_setting_values":{"notifications":2}},` +
	`"autofill":{"profile_enabled":false,"credit_card_enabled":false}}`

// writeChromiumPreferences writes them into a home, for a profile that has none of its own.
func writeChromiumPreferences(home string) error {
	file := filepath.Join(home, profileName, "Default", "Preferences")
	if _, err := os.Lstat(file); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("preparing the browser's preferences: %w", err)
	}
	if err := os.WriteFile(file, []byte(chromiumPreferences), 0o600); err != nil {
		return fmt.Errorf("preparing the browser's preferences: %w", err)
	}
	return nil
}
