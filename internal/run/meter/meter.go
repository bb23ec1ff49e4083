// Package meter measures how fast this machine is at a moment: a fixed mixed load, in a process of its own, of what a
// browser does most (branches, pointers that miss the caches, walks through trees, memory that is filled). The command
// line of that process flows in, times flow out. They are covariates of the trial that follows (CUPED, Deng et al.
// 2013): the speed of a shared machine changes from minute to minute, and no arm can change what was measured before
// its browser was born.
package meter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
)

// Serve is the process: it carries the load out once and prints the reading.
func Serve(w io.Writer) error { return json.NewEncoder(w).Encode(load()) }

// limit is how long a reading may take: a machine that needs longer has no moment to be measured.
const limit = 5 * time.Second

// mostBytes bounds what the process prints.
const mostBytes = 1 << 10

// Read starts the process, whose whole command line is given, and returns its reading.
func Read(ctx context.Context, command []string) (lab.MeterReading, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out bytes.Buffer
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stdout = &out
	if err := c.Run(); ctx.Err() != nil {
		return lab.MeterReading{}, fmt.Errorf("this machine is too busy for it: what takes 60 ms on a quiet one did not end: %w", context.Cause(ctx))
	} else if err != nil {
		return lab.MeterReading{}, fmt.Errorf("measuring the machine's speed: %w", err)
	}
	var r lab.MeterReading
	if err := json.NewDecoder(io.LimitReader(&out, mostBytes)).Decode(&r); err != nil {
		return r, fmt.Errorf("measuring the machine's speed: %w", err)
	}
	return r, nil
}

// The sizes of the load: together about 60 ms on a processor of 2020.
const (
	cells    = 8 << 20 // of four bytes: 32 MB, more than the caches hold
	jumps    = 80_000
	branches = 700_000
	nodes    = 1 << 14
	walks    = 6
)

// load carries out the load on one thread, without the collector of memory.
func load() lab.MeterReading {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	debug.SetGCPercent(-1)
	wall, processor := time.Now(), threadTime()
	runtime.KeepAlive(fillAndJump() + branch() + tree()) // the compiler leaves nothing of it out
	return lab.MeterReading{Wall: ms(time.Since(wall)), Processor: ms(threadTime() - processor)}
}

// fillAndJump fills a table with the next index of each, a generator of full period, as a raster fills its tiles, and
// follows it.
func fillAndJump() (at uint32) {
	table := make([]uint32, cells)
	for i := range table {
		table[i] = (uint32(i)*1664525 + 1013904223) % cells
	}
	for range jumps {
		at = table[at]
	}
	return at
}

// branch decides by chance that no processor foresees.
func branch() (sum uint32) {
	x := uint32(2463534242)
	for range branches {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		switch {
		case x&3 == 0:
			sum += x
		case x&12 == 4:
			sum ^= x >> 3
		case x&16 != 0:
			sum--
		}
	}
	return sum
}

// node is one of a tree, like those that style and layout go through.
type node struct {
	first, next *node
	width, rule uint32
}

func tree() (sum uint32) {
	all := make([]node, nodes)
	x := uint32(88172645)
	for i := 1; i < nodes; i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		parent := &all[x%uint32(i)]
		all[i].rule = x >> 7
		all[i].next, parent.first = parent.first, &all[i]
	}
	for range walks {
		sum += all[0].walk(800)
	}
	return sum
}

// walk gives a node and those below it a width, from their parent's.
func (n *node) walk(width uint32) (height uint32) {
	n.width = width - n.rule%7
	for c := n.first; c != nil; c = c.next {
		height += c.walk(n.width)
	}
	return height + n.rule%19 + n.width%3
}

func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
