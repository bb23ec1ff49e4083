package device

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"eidetic/internal/lab"
)

// The locale of a browser that is not told another one.
const (
	ownZone     = "UTC"
	ownLanguage = "en-GB"
)

// KnowsZone tells whether a browser can be given an offset from UTC.
func KnowsZone(offset string) bool { return offset == "" || zoneName(offset) != "" }

// zoneName is a zone that has an offset from UTC at all times, by its name in the time zone database, which
// is what browsers read; "" if there is none.
func zoneName(offset string) string {
	var sign byte
	var hours, minutes int
	if n, err := fmt.Sscanf(offset, "%c%02d:%02d", &sign, &hours, &minutes); n != 3 || err != nil {
		return ""
	}
	switch {
	case minutes != 0:
		return map[string]string{
			"+04:30": "Asia/Kabul", "+05:30": "Asia/Kolkata", "+05:45": "Asia/Kathmandu", "+06:30": "Asia/Yangon", "+08:45": "Australia/Eucla",
			"+09:30": "Australia/Darwin", "+03:30": "Asia/Tehran", "-09:30": "Pacific/Marquesas",
		}[offset]
	case hours == 0:
		return ownZone
	case sign == '+': // these names count to the west
		return fmt.Sprintf("Etc/GMT-%d", hours)
	}
	return fmt.Sprintf("Etc/GMT+%d", hours)
}

// isOwnLanguage tells that a browser has these languages without being told.
func isOwnLanguage(l lab.Locale) bool { return len(l.Languages) == 0 || l.Languages[0] == ownLanguage }

// zoneEnvironment is what a browser's environment needs for a locale.
func zoneEnvironment(l lab.Locale) []string {
	if name := zoneName(l.Zone); name != "" {
		return []string{"TZ=" + name}
	}
	return nil
}

// languageFlags tell Chromium its languages.
func languageFlags(l lab.Locale) []string {
	if isOwnLanguage(l) {
		return nil
	}
	return []string{"--lang=" + l.Languages[0], "--accept-lang=" + strings.Join(l.Languages, ",")}
}

// writeLanguages tells Firefox its languages: in a home in which it has preferences.
func writeLanguages(home string, l lab.Locale) error {
	if isOwnLanguage(l) {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(home, profileName, "user.js"), os.O_APPEND|os.O_WRONLY, 0)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "user_pref(%q, %q);\n", "intl.accept_languages", strings.Join(l.Languages, ", "))
	return err
}
