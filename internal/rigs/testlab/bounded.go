package testlab

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"
)

// fuzzed bounds one input while a fuzzer looks for one that takes long: what nobody else waits for may be as slow as
// its machine.
const fuzzed = 20 * time.Second

// Bounded makes a call that reads one input of a parser, and fails if the call allocates more than so many bytes in
// all, or hangs. What it allocates is the same on every machine, and grows with what a parser takes; other goroutines'
// counts too, so it is for fuzz targets and for tests that run alone in their process. A call that hangs ends the
// process with its stack, and the fuzzer keeps its input.
func Bounded(t testing.TB, most uint64, call func()) {
	t.Helper()
	limit := Hang
	if f := flag.Lookup("test.fuzzworker"); f != nil && f.Value.String() == "true" {
		limit = fuzzed
	}
	hung := time.AfterFunc(limit, func() { panic(fmt.Sprintf("one input has been read for %v", limit)) })
	defer hung.Stop()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > most {
		t.Errorf("one input took %d MB of memory; want at most %d MB", took>>20, most>>20)
	}
}
