package testlab

import (
	"flag"
	"fmt"
	"runtime/metrics"
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
	defer bound(t, most)()
	call()
}

// Input is Bounded of all that a fuzz target does with one input, until done is called: at most 1 GiB, for a parser
// whose need of memory nobody has looked at more closely.
func Input(t testing.TB) (done func()) {
	t.Helper()
	return bound(t, 1<<30)
}

func bound(t testing.TB, most uint64) (done func()) {
	limit := Hang
	if f := flag.Lookup("test.fuzzworker"); f != nil && f.Value.String() == "true" {
		limit = fuzzed
	}
	hung := time.AfterFunc(limit, func() { panic(fmt.Sprintf("one input has been read for %v", limit)) })
	before := allocated()
	return func() {
		t.Helper()
		hung.Stop()
		if took := allocated() - before; took > most {
			t.Errorf("one input took %d MB of memory; want at most %d MB", took>>20, most>>20)
		}
	}
}

// allocated is how many bytes the process has allocated so far, small objects by the span. Unlike a reading of
// runtime.MemStats, which a fuzzer would do twice for each input, it does not stop the world.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
