package trace

import (
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// TestMemory: a row for each process, the largest first; a stretch for each change, and one for the end with its share.
func TestMemory(t *testing.T) {
	const mb = 1 << 20
	at := func(ms lab.Time) lab.Time { return 5*second + ms*1e6 }
	readings := []lab.ProcessMemory{
		{At: at(0), PID: 3, Name: "browser", RSS: 90 * mb}, {At: at(0), PID: 9, Name: "renderer", RSS: 40 * mb},
		{At: at(100), PID: 9, Name: "renderer", RSS: 40*mb + 5}, {At: at(200), PID: 9, Name: "renderer", RSS: 140 * mb},
		{At: at(300), PID: 3, Name: "browser", RSS: 90 * mb, PSS: 50 * mb}, {At: at(300), PID: 9, Name: "renderer", RSS: 140 * mb, PSS: 100 * mb},
	}
	tracks, note := memory(readings)
	if len(tracks) != 2 || tracks[0].Name != "Memory: renderer (9)" || !strings.Contains(note, "2 processes have 150.0 MiB") {
		t.Fatalf("tracks %+v, note %q", tracks, note)
	}
	got := tracks[0].Events
	if len(got) != 3 || got[0].Name != "40.0 MiB" || got[0].End != at(200) || got[1].End != at(300) || got[2].Facts[1].Value != "104857600" {
		t.Errorf("the renderer's row is %+v", got)
	}
	tl := Of(Source{Trial: load().Trial, Memory: readings})
	if len(tl.Tracks) == 0 || !strings.Contains(strings.Join(tl.Notes, " "), "150.0 MiB") {
		t.Errorf("the timeline's notes are %q", tl.Notes)
	}
	var many []lab.ProcessMemory
	for pid := range 3 * mostMemoryTracks {
		many = append(many, lab.ProcessMemory{At: at(0), PID: pid, RSS: 1}, lab.ProcessMemory{At: at(9), PID: pid, RSS: 1})
	}
	if tracks, note := memory(many); len(tracks) != mostMemoryTracks || note != "" {
		t.Errorf("%d rows of %d processes, %q", len(tracks), 3*mostMemoryTracks, note)
	}
}
