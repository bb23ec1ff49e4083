package dns

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSystemResolver(t *testing.T) {
	for content, want := range map[string]string{
		"# by hand\nsearch a.test\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n": "192.0.2.1:53",
		"nameserver nonsense\nnameserver 2001:db8::1\n":                          "[2001:db8::1]:53",
		"nameserver fe80::1%eth0\n":                                              "[fe80::1%eth0]:53",
		"search a.test\n":                                                        "",
	} {
		file := filepath.Join(t.TempDir(), "resolv.conf")
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := SystemResolver(file)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("SystemResolver() of %q = %v, %v; want an error that names the file", content, got, err)
			}
			continue
		}
		if err != nil || got.String() != want {
			t.Errorf("SystemResolver() of %q = %v, %v; want %s, nil", content, got, err, want)
		}
	}
	if got, err := SystemResolver(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Errorf("SystemResolver() of a missing file = %v, want an error", got)
	}
}
