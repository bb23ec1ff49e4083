// Package tape is where a recording that a person asked for goes: a reel's file,
// or memory that is written to the file at the end, so that no disk is waited
// for; in both cases behind a pre-roll ring or not. In go a reel's header and the
// recorder's frames, gaps and events; out comes the file.
package tape

import (
	"errors"
	"fmt"
	"os"
	"time"

	"eidetic/capture"
	"eidetic/capture/preroll"
	"eidetic/capture/reel"
)

// maxMemory bounds Options.Memory.
const maxMemory = 1 << 40

// Options of a tape.
type Options struct {
	File   string // the reel; it must not exist yet
	Header reel.Header
	// PreRoll is how much is kept before the recording is triggered; 0 records at once.
	PreRoll time.Duration
	// Memory is how many bytes the recording may take of memory; 0 records into the file.
	Memory int64
}

// Tape takes one recording.
type Tape struct {
	w      *reel.Writer
	ring   *preroll.Ring // nil without a pre-roll
	memory *reel.Memory  // nil when the file is written at once
	file   *os.File      // where the memory goes
}

// Create makes the file.
func Create(o Options) (t *Tape, err error) {
	t = &Tape{}
	switch {
	case o.Memory < 0 || o.Memory > maxMemory:
		return nil, fmt.Errorf("a recording in memory of %d MiB is outside 1 … %d MiB", o.Memory>>20, maxMemory>>20)
	case o.Memory > 0:
		if t.file, err = os.OpenFile(o.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
			return nil, err
		}
		t.memory = reel.NewMemory(o.Memory)
		t.w, err = reel.NewWriter(t.memory, o.Header)
	default:
		t.w, err = reel.Create(o.File, o.Header)
	}
	if err != nil {
		return nil, err
	}
	if o.PreRoll > 0 {
		if t.ring, err = preroll.New(t.w, preroll.Options{Format: o.Header.Format, Length: o.PreRoll}); err != nil {
			_ = t.w.Close()
			_ = os.Remove(o.File) // it is empty
			return nil, err
		}
	}
	return t, nil
}

// Sink is what the recorder writes to.
func (t *Tape) Sink() capture.Sink {
	if t.ring != nil {
		return t.ring
	}
	return t.w
}

// Waits says whether the recording waits for a trigger.
func (t *Tape) Waits() bool { return t.ring != nil }

// Trigger begins a recording that waits, with the frames that are kept.
func (t *Tape) Trigger() {
	if t.ring != nil {
		t.ring.Trigger()
	}
}

// Begun says whether the recording has begun.
func (t *Tape) Begun() bool { return t.ring == nil || t.ring.Begun() }

// Frames is how many frames are on the tape.
func (t *Tape) Frames() int { return t.w.Frames() }

// Close ends the reel, and writes it to the file if it is in memory.
func (t *Tape) Close() error {
	err := t.w.Close()
	if t.memory == nil {
		return err
	}
	_, writeErr := t.memory.WriteTo(t.file)
	return errors.Join(err, writeErr, t.file.Close())
}
