package fleettest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"eidetic/internal/fleet"
)

// The head in memory is for boxes what the real one is.
func TestFleetConformance(t *testing.T) {
	Try(t, func(t *testing.T) Suite {
		h := NewHead(t)
		parts := 0
		return Suite{
			Link: func(*testing.T) string { return h.Link() },
			Add: func(*testing.T) string {
				parts++
				id := fmt.Sprint("part-", parts)
				h.Add(fleet.Assignment{Part: id, Run: id, Device: "virtual", Archives: []fleet.ArchiveFile{h.AddSource("site.wacz", []byte(Recording))}})
				return id
			},
			Lapse: func(*testing.T) {
				for _, p := range h.Parts {
					h.Expire(p.ID)
				}
			},
			Cancel: func(_ *testing.T, part string) {
				h.Lock()
				defer h.Unlock()
				h.Part(part).Cancel = true
			},
			Left: func(t *testing.T, _ fleet.Assignment) string {
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte("{}"), 0o644); err != nil {
					t.Fatal(err)
				}
				return dir
			},
			Want: func(_ *testing.T, part, path, digest string) {
				h.Lock()
				defer h.Unlock()
				if one := (fleet.Wanted{Part: part, Path: path, SHA256: digest}); !slices.Contains(h.Wanted, one) {
					h.Wanted = append(h.Wanted, one)
				}
				h.tell()
			},
			Has: func(_ *testing.T, digest string) bool { return h.whole(digest) },
		}
	})
}
