package service

import (
	"errors"
	"strings"
	"testing"

	"eidetic/image/box"

	"github.com/google/go-cmp/cmp"
)

// What a mistake leaves of a configuration, and that the password on the line
// beside it does not reach the journal.
func TestBoxConfigWithAMistake(t *testing.T) {
	lab7 := box.DefaultConfig()
	lab7.Hostname = "lab7"
	for _, c := range []struct {
		text, says string
		want       box.Config
	}{
		{"box: {hostname: lab7}\n", "", lab7},
		{"box: {hostname: lab7}\n# secret\nnews: 1\n", "unknown field", box.DefaultConfig()},
		{"box: {hostname: lab7} # secret\nlog: loud\n", "loud", box.DefaultConfig()},
		{"box: {hostname: lab7} # secret\nnetwork: {trust: /nowhere}\n", "/nowhere", lab7},
	} {
		got, err := CheckBoxConfig("appliance.yaml", []byte(c.text))
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("CheckBoxConfig(%q) (-want +got):\n%s", c.text, d)
		}
		if (err != nil) != (c.says != "") ||
			err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("CheckBoxConfig(%q) = %v; want %q, and no password", c.text, err, c.says)
		}
		if trust := strings.Contains(c.text, "trust"); errors.Is(err, ErrTrust) != trust {
			t.Errorf("CheckBoxConfig(%q) = %v; want ErrTrust: %v", c.text, err, trust)
		}
	}
}
