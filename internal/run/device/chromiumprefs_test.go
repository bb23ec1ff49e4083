package device

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// A browser offers to keep no password, and a profile that has preferences keeps them.
func TestChromiumPreferences(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, profileName, "Default", "Preferences")
	if err := writeChromiumPreferences(home); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	var got struct {
		Credentials bool `json:"credentials_enable_service"`
		Profile     struct {
			Settings struct {
				Notifications int
			} `json:"default_content_setting_values"`
		}
	}
	got.Credentials = true
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	const refused = 2
	if err != nil || got.Credentials || got.Profile.Settings.Notifications != refused {
		t.Errorf("the preferences are %s, %v; want JSON in which credentials_enable_service is false, and notifications are refused", text, err)
	}
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeChromiumPreferences(home); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); string(text) != "{}" {
		t.Errorf("the profile's own preferences became %s, %v", text, err)
	}
}
