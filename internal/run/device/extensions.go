package device

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"eidetic/internal/lab"
)

// maxManifest bounds the manifest of an extension.
const maxManifest = 1 << 20

// CheckExtensions returns an error for a browser one of whose extensions is none.
func CheckExtensions(b *lab.Browser) error {
	if b == nil {
		return nil
	}
	for _, folder := range b.Extensions {
		if strings.ContainsRune(folder, ',') {
			return fmt.Errorf("extensions: %s: Chromium takes a comma for the end of a name; give the folder another", folder)
		}
		f, err := os.Open(filepath.Join(folder, "manifest.json"))
		if err != nil {
			return fmt.Errorf("extensions: %s is no folder of an unpacked extension: %w", folder, err)
		}
		var manifest struct {
			Version int `json:"manifest_version"`
		}
		err = json.NewDecoder(io.LimitReader(f, maxManifest)).Decode(&manifest)
		_ = f.Close() // it was only read
		if err != nil || manifest.Version == 0 {
			return fmt.Errorf("extensions: %s: manifest.json is no extension's manifest (%v)", folder, err)
		}
	}
	return nil
}

// withExtensions lets a command line of ours, which switches extensions off, load these.
func withExtensions(args, folders []string) (out []string) {
	list := strings.Join(folders, ",")
	for _, a := range args {
		switch {
		case a == "--disable-extensions":
			out = append(out, "--disable-extensions-except="+list, "--load-extension="+list)
		case strings.HasPrefix(a, "--disable-features="):
			out = append(out, a+",DisableLoadExtensionCommandLineSwitch")
		default:
			out = append(out, a)
		}
	}
	return out
}
