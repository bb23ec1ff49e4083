package repotest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// make vuln says success only when govulncheck read its database and found nothing.
func TestVulnClaimsNothing(t *testing.T) {
	for _, c := range []struct {
		name, script string
		status       int
		says         string
	}{
		{"nothing found", "echo 'No vulnerabilities found.'", 0, "No known vulnerability"},
		{"found", "echo 'Vulnerability #1'; exit 3", 1, "Known vulnerabilities are called"},
		{"found, by go run", "echo 'Vulnerability #1'; echo 'exit status 3'; exit 1", 1, "Known vulnerabilities are called"},
		{"no database", "echo 'govulncheck: fetching vulnerabilities: no such host'; exit 1", 2, "NOT CHECKED"},
		{"it does not install", "echo 'go: no such module'; exit 1", 2, "NOT CHECKED"},
		{"killed", "kill -9 $$", 2, "NOT CHECKED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake := filepath.Join(t.TempDir(), "govulncheck")
			if err := os.WriteFile(fake, []byte("#!/bin/bash\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "../../../scripts/vuln.sh", "./...")
			cmd.Env = append(os.Environ(), "GOVULNCHECK="+fake)
			out, err := cmd.CombinedOutput()
			status := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				status = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if status != c.status || !strings.Contains(string(out), c.says) {
				t.Errorf("status %d, %q; want %d and %q", status, out, c.status, c.says)
			}
			if c.status != 0 && strings.Contains(string(out), "No known vulnerability") {
				t.Errorf("it claims success: %q", out)
			}
		})
	}
}
