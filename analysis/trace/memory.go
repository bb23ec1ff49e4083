package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"eidetic/internal/lab"
)

// Memory is the kind of the tracks of processes' memory.
const Memory = "memory"

// Bounds of the tracks of memory.
const (
	mostMemoryTracks = 20
	// sameMemory is by how much memory may change without that being shown.
	sameMemory = 1 << 20
	// lastReading is for how long a process is taken to be there after its last reading.
	lastReading = lab.Time(100e6)
)

// memory lays out what memory each process had: a stretch is as long as it stays the same within 1 MiB. Processes with
// the most come first.
func memory(readings []lab.ProcessMemory) (out []Track, note string) {
	byPID := map[int][]lab.ProcessMemory{}
	var pids []int
	for _, m := range readings[:min(len(readings), lab.MostMemory)] {
		if byPID[m.PID] == nil {
			pids = append(pids, m.PID)
		}
		byPID[m.PID] = append(byPID[m.PID], m)
	}
	peak := func(pid int) (most int64) {
		for _, m := range byPID[pid] {
			most = max(most, m.RSS)
		}
		return most
	}
	slices.SortStableFunc(pids, func(a, b int) int { return cmp.Compare(peak(b), peak(a)) })
	shares, known := int64(0), 0
	for n, pid := range pids {
		list := byPID[pid]
		slices.SortStableFunc(list, func(a, b lab.ProcessMemory) int { return cmp.Compare(a.At, b.At) })
		if share := list[len(list)-1].PSS; share > 0 {
			shares, known = shares+share, known+1
		}
		if n >= mostMemoryTracks {
			continue
		}
		name := "Memory: " + cmp.Or(list[len(list)-1].Name, "process")
		track := Track{Kind: Memory, Name: fmt.Sprintf("%s (%d)", name, pid), Nested: true}
		for _, m := range list {
			last := len(track.Events) - 1
			if last >= 0 {
				track.Events[last].End = m.At
			}
			if last < 0 || m.PSS > 0 || max(m.RSS-heldBy(track.Events[last]), heldBy(track.Events[last])-m.RSS) >= sameMemory {
				track.Events = append(track.Events, memoryEvent(m))
			}
		}
		track.Events = slices.DeleteFunc(track.Events, Event.Instant)
		out = append(out, track)
	}
	if known > 0 {
		note = fmt.Sprintf("the browser's %d processes have %s at the trial's end, what they share counted once (PSS); the rows count it in each (RSS)", known, mebibytes(shares))
	}
	return out, note
}

func memoryEvent(m lab.ProcessMemory) Event {
	e := Event{
		Name: mebibytes(m.RSS), Start: m.At, End: m.At + lastReading, Earliest: m.At, Latest: m.At,
		Facts: []Fact{{"RSS", strconv.FormatInt(m.RSS, 10)}},
	}
	if m.PSS > 0 {
		e.Facts = append(e.Facts, Fact{"PSS", strconv.FormatInt(m.PSS, 10)})
	}
	return e
}

// heldBy is the memory that an event shows.
func heldBy(e Event) int64 {
	n, err := strconv.ParseInt(e.Facts[0].Value, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
