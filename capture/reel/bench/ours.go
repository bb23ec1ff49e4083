package main

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"

	"eidetic/capture/reel"
	"eidetic/internal/lab"
)

const reelName = "reel"

// ours writes the frames to a reel in memory, and checks that it is lossless.
func ours(f lab.Format, pix [][]byte, threads, runs int) (measured, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	total := float64(len(pix) * f.FrameSize())
	file := bytes.NewBuffer(make([]byte, 0, 2*len(pix)*f.FrameSize()))
	var speeds []float64
	for range runs {
		file.Reset()
		took, err := timed(threads, func() error { return write(file, f, pix) })
		if err != nil {
			return measured{}, err
		}
		speeds = append(speeds, total/1e6/took.Seconds())
	}
	slices.Sort(speeds)
	r, err := reel.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		return measured{}, err
	}
	for i, p := range pix {
		got, err := r.Pixels(i)
		if err != nil || !bytes.Equal(got, p) {
			return measured{}, fmt.Errorf("frame %d is not what was written (%v)", i, err)
		}
	}
	seek, err := worstSeek(r)
	return measured{reelName, threads, speeds[len(speeds)/2], total / float64(file.Len()), seek}, err
}

// timed returns the processor time of fn on one thread, else the time by the clock.
func timed(threads int, fn func() error) (time.Duration, error) {
	runtime.GC() // garbage of earlier measurements must not count
	start, used := time.Now(), processorTime()
	err := fn()
	if threads == 1 {
		return processorTime() - used, err
	}
	return time.Since(start), err
}

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("bench: getrusage: " + err.Error()) // for the process itself it cannot fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// write writes the frames as from a grabber: what changed is not known.
func write(file *bytes.Buffer, f lab.Format, pix [][]byte) error {
	w, err := reel.NewWriter(file, reel.Header{Format: f})
	if err != nil {
		return err
	}
	for i, p := range pix {
		fr := lab.Frame{Pix: p}
		fr.Seq, fr.Time = uint64(i), lab.Time(i)*16_666_667
		fr.Changed = append(fr.Changed, f.Bounds())
		if err := w.WriteFrame(fr); err != nil {
			return err
		}
	}
	return w.Close()
}

// worstSeek returns the longest time, in ms, to any of 40 frames. They are
// asked for backwards, so that every one starts at a key frame; each counts with
// the better of two times.
func worstSeek(r *reel.Reader) (float64, error) {
	worst := 0.0
	for i := r.Len() - 1; i >= 0; i -= 1 + r.Len()/40 {
		best := time.Hour
		for range 2 {
			if _, err := r.Pixels(r.Len() - 1); err != nil { // away from i
				return 0, err
			}
			start := time.Now()
			if _, err := r.Pixels(i); err != nil {
				return 0, err
			}
			best = min(best, time.Since(start))
		}
		worst = max(worst, best.Seconds()*1e3)
	}
	return worst, nil
}
