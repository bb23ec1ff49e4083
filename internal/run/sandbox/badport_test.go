package sandbox

import (
	"strings"
	"testing"
)

// TestBadPorts: a port at which no browser opens a page is told before one tries, and what to do.
func TestBadPorts(t *testing.T) {
	for port, want := range map[string]string{
		"6000": "another one", "06000": "another one", "5060": "ERR_UNSAFE_PORT", "80": "", "8080": "", "10081": "",
	} {
		err := checkPort(port)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("checkPort(%s) = %v; want an error with %q, or none for none", port, err, want)
		}
	}
}
