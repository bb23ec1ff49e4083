package repotest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each kind of device has a page that says of each way to see, drive and begin it how it was tried: no cell is empty.
func TestDevicePagesSayWhatWasTried(t *testing.T) {
	said := regexp.MustCompile(`^(real parts|emulated by .+|not tried|cannot be)(:.*|;.*)?$`)
	pages, err := filepath.Glob("../../../docs/devices/*.md")
	if err != nil || len(pages) < 8 {
		t.Fatalf("%d pages, %v; want those of six kinds of devices, and two more", len(pages), err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); name == "index.md" || name == "states.md" {
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		_, part, _ := strings.Cut(string(text), "\n## What was tried\n")
		rows := 0
		for block := range strings.SplitSeq(part, "\n\n") {
			for i, line := range strings.Split(strings.TrimSpace(block), "\n") {
				if !strings.HasPrefix(line, "| ") || i < 2 {
					continue
				}
				rows++
				for _, cell := range strings.Split(strings.Trim(line, "| "), " | ")[1:] {
					if !said.MatchString(strings.TrimSpace(cell)) {
						t.Errorf("%s: the cell %q of %q says neither real parts, emulated by …, not tried nor cannot be", page, cell, line)
					}
				}
				if strings.Count(line, "|") != strings.Count(strings.Split(strings.TrimSpace(block), "\n")[0], "|") {
					t.Errorf("%s: %q has not as many cells as the head of its table", page, line)
				}
			}
		}
		if rows < 4 {
			t.Errorf("%s has %d rows under \"What was tried\"; want those of its controls and its states", page, rows)
		}
	}
}
