package experiment

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"eidetic/internal/lab"
)

// MemoryFile holds what memory the browser's processes had in a traced trial, and MemoryRole is its role.
const (
	MemoryFile = "memory.jsonl"
	MemoryRole = "memory"
)

// betweenReadings is how often memory is read. A reading takes less than a millisecond; still only trials that are
// traced, and so in no comparison with others, have it.
const betweenReadings = 100 * time.Millisecond

// memory reads the memory of the browser's processes until the function that it returns is called, which reads their
// shares too, and writes all.
func (r *Runner) memory(ctx context.Context, p Plan, t *lab.Trial, dir string) (end func() error) {
	if !p.traced || r.Memory == nil {
		return func() error { return nil }
	}
	var list []lab.ProcessMemory
	add := func(shares bool) {
		if list = append(list, r.Memory(shares)...); len(list) > lab.MostMemory {
			list = list[:lab.MostMemory]
		}
	}
	ctx, stop := context.WithCancel(ctx)
	var reader sync.WaitGroup
	reader.Go(func() {
		for add(false); ; add(false) {
			if lab.Wait(ctx, betweenReadings) != nil {
				return
			}
		}
	})
	return func() error {
		stop()
		reader.Wait()
		if len(list) == lab.MostMemory { // room for the end
			list = list[:len(list)/2]
		}
		add(true)
		if len(list) == 0 { // a device whose processes are not seen
			return nil
		}
		t.Files[MemoryRole] = MemoryFile
		return writeLines(filepath.Join(dir, MemoryFile), list)
	}
}
