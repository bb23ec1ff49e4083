package boottest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const filmPath = "/var/lib/appliance/film.reel"

// filmed is the content of a reel.
type filmed struct {
	Frames    int `json:"frames"`
	Lost      int `json:"lost"`
	Recovered []struct {
		What string `json:"what"`
	} `json:"recovered"`
}

// film starts a recording, and returns the content of its reel as of five flushes ago, which
// is certainly on the disk.
func (b *Box) film(t *testing.T) filmed {
	t.Helper()
	appliance := b.Build(t, "./cmd/appliance")
	b.Run(
		t,
		fmt.Sprintf(
			"rm -f %[2]s; (%[1]s capture --source synthetic:load --size 320x200 --out %[2]s >/dev/null 2>&1 &)",
			appliance,
			filmPath,
		),
	)
	b.Until(t, fmt.Sprintf("[ $(stat -c %%s %s) -gt 50000 ]", filmPath))
	held := b.filmed(t, appliance, filmPath)
	// The reel and other programs flush each second: on a slow disk or machine, the reel's
	// own flushes take as long as these.
	for range 5 {
		b.Run(t, "sleep 1; dd if=/dev/zero of=/var/lib/appliance/flushed bs=64k count=1 conv=fsync status=none")
	}
	return held
}

// filmed returns the content of a reel on the box.
func (b *Box) filmed(t *testing.T, appliance, path string) filmed {
	t.Helper()
	var f filmed
	if out := b.Run(t, appliance+" reel info --json "+path); json.Unmarshal([]byte(out), &f) != nil {
		t.Fatalf("reel info: %s", out)
	}
	return f
}

// filmSaved checks after a power cut that the frames on the disk are still there, that
// reel info names the damage, and that reel recover saves the rest.
func (b *Box) filmSaved(t *testing.T, held filmed) {
	t.Helper()
	appliance := b.Build(t, "./cmd/appliance")
	got := b.filmed(t, appliance, filmPath)
	t.Logf("the reel had %d frames five flushes before the cut and has %d now: %v", held.Frames, got.Frames, got.Recovered)
	if got.Frames < held.Frames || held.Frames == 0 || len(got.Recovered) == 0 {
		t.Errorf("the reel has %+v, want at least the content five flushes before the cut, %+v", got, held)
	}
	saved := filmPath + ".saved"
	b.Run(t, fmt.Sprintf("rm -f %[3]s; %[1]s reel recover %[2]s --out %[3]s", appliance, filmPath, saved))
	if out := b.Run(t, appliance+" reel verify "+saved); !strings.Contains(out, fmt.Sprintf("%d whole frames", got.Frames)) {
		t.Errorf("the damaged reel has %d frames; want as many after recovery, which printed: %s", got.Frames, out)
	}
	b.Run(t, fmt.Sprintf("rm -f %s %s", filmPath, saved))
}
