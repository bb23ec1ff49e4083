package blob

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// MinGrace is the shortest grace time of Collect. It covers the time between the moment when somebody is told that a
// blob is there (Has, which makes it at most Renewal old) and the moment when the reference to it is noted.
const MinGrace = 2 * Renewal

// Collection is what Collect removed, or would remove.
type Collection struct {
	Removed      int
	RemovedBytes int64
	// Kept are all others: those that something refers to, and those within the grace time.
	Kept      int
	KeptBytes int64
}

// Collect removes the blobs that nothing refers to and whose time is more than a grace time before now, and what is
// left of puts that never ended. It lists the blobs before it reads the references, and looks at each one's time again
// when it removes it: a blob that is being put, or that somebody has just been told of, stays. An error of the
// references removes nothing. say, unless nil, is told of each blob that goes; a dry run removes none.
func Collect(
	ctx context.Context, s Store, referenced iter.Seq2[string, error], now time.Time, grace time.Duration, dry bool, say func(Info),
) (c Collection, err error) {
	if grace < MinGrace {
		return c, fmt.Errorf("collect blobs: a grace time of %s is shorter than %s", grace, MinGrace)
	}
	before := now.Add(-grace)
	old := map[string]Info{}
	for info, err := range s.List(ctx) {
		if err != nil {
			return c, fmt.Errorf("collect blobs: %w", err)
		}
		c.Kept++
		c.KeptBytes += info.Bytes
		if info.Time.Before(before) {
			old[info.Digest] = info
		}
	}
	for digest, err := range referenced {
		if err == nil {
			err = CheckDigest(digest)
		}
		if err != nil {
			return c, fmt.Errorf("collect blobs: nothing is removed, because the references cannot be read: %w", err)
		}
		delete(old, digest)
	}
	for digest, info := range old {
		if err := ctx.Err(); err != nil {
			return c, err
		}
		removed := dry
		if !dry {
			if removed, err = s.Remove(ctx, digest, before); err != nil {
				return c, fmt.Errorf("collect blobs: %w", err)
			}
		}
		if removed {
			c.Kept--
			c.KeptBytes -= info.Bytes
			c.Removed++
			c.RemovedBytes += info.Bytes
			if say != nil {
				say(info)
			}
		}
	}
	if s, ok := s.(sweeper); ok && !dry {
		if err := s.sweep(ctx, before); err != nil {
			return c, fmt.Errorf("collect blobs: %w", err)
		}
	}
	return c, nil
}

// sweeper is a store that removes what is left of puts that never ended.
type sweeper interface {
	sweep(ctx context.Context, before time.Time) error
}
