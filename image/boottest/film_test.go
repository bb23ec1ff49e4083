package boottest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const filmPath = "/var/lib/appliance/film.reel"

// filmed is what a reel holds.
type filmed struct {
	Frames    int `json:"frames"`
	Lost      int `json:"lost"`
	Recovered []struct {
		What string `json:"what"`
	} `json:"recovered"`
}

// film starts a recording, and returns what its reel held five flushes ago:
// that much is on the disk.
func (b *Box) film(t *testing.T) filmed {
	t.Helper()
	appliance := b.Build(t, "./cmd/appliance")
	b.Run(t, fmt.Sprintf("rm -f %[2]s; (%[1]s capture --source synthetic:load --size 320x200 --out %[2]s >/dev/null 2>&1 &)", appliance, filmPath))
	b.Until(t, fmt.Sprintf("[ $(stat -c %%s %s) -gt 50000 ]", filmPath))
	held := b.filmed(t, appliance, filmPath)
	// A flush each second, beside others: of a disk or a machine that takes its
	// time the reel's own flushes get as much as these.
	for range 5 {
		b.Run(t, "sleep 1; dd if=/dev/zero of=/var/lib/appliance/flushed bs=64k count=1 conv=fsync status=none")
	}
	return held
}

// filmed says what a reel on the box holds.
func (b *Box) filmed(t *testing.T, appliance, path string) filmed {
	t.Helper()
	var f filmed
	if out := b.Run(t, appliance+" reel info --json "+path); json.Unmarshal([]byte(out), &f) != nil {
		t.Fatalf("reel info: %s", out)
	}
	return f
}

// filmSaved checks after a power cut that what was on the disk is there, that
// the damage is named, and that the rest can be recovered.
func (b *Box) filmSaved(t *testing.T, held filmed) {
	t.Helper()
	appliance := b.Build(t, "./cmd/appliance")
	got := b.filmed(t, appliance, filmPath)
	t.Logf("%d frames were in the reel five flushes before the power went, %d are there: %v", held.Frames, got.Frames, got.Recovered)
	if got.Frames < held.Frames || held.Frames == 0 || len(got.Recovered) == 0 {
		t.Errorf("the reel has %+v, five flushes before the power went it had %+v", got, held)
	}
	saved := filmPath + ".saved"
	b.Run(t, fmt.Sprintf("rm -f %[3]s; %[1]s reel recover %[2]s --out %[3]s", appliance, filmPath, saved))
	if out := b.Run(t, appliance+" reel verify "+saved); !strings.Contains(out, fmt.Sprintf("%d whole frames", got.Frames)) {
		t.Errorf("%d frames were in the cut reel, after recovery: %s", got.Frames, out)
	}
	b.Run(t, fmt.Sprintf("rm -f %s %s", filmPath, saved))
}
