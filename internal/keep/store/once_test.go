package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func onceJob(id string, at time.Time) Job {
	return Job{ID: id, Device: "virtual", Created: at}
}

// A repeated request makes one job, also after a restart and after the job is done;
// another request cannot use its key.
func TestAddOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue.db")
	q, err := OpenQueue(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	ctx, now := t.Context(), time.Unix(1_800_000_000, 0)
	mine := Once{Key: "k1", Request: "r1"}
	if _, err := q.Known(ctx, mine); !errors.Is(err, ErrNotFound) {
		t.Errorf("Known() of a new key: %v; want ErrNotFound", err)
	}
	var all sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		all.Go(func() {
			id, err := q.AddOnce(ctx, onceJob(fmt.Sprintf("a%d", i), now), mine)
			if err != nil {
				t.Error(err)
			}
			ids[i] = id
		})
	}
	all.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Errorf("AddOnce() of one request made the jobs %v; want one ID", ids)
			break
		}
	}
	if jobs, err := q.Jobs(ctx); err != nil || len(jobs) != 1 {
		t.Errorf("%d jobs, %v; want 1, nil", len(jobs), err)
	}
	if _, err := q.AddOnce(ctx, onceJob("b", now), Once{"k1", "another"}); !errors.Is(err, ErrKeyUsed) {
		t.Errorf("AddOnce() of another request with the key: %v; want ErrKeyUsed", err)
	}
	if _, err := q.AddOnce(ctx, onceJob(ids[0], now), Once{"k2", "r1"}); !errors.Is(err, ErrExists) {
		t.Errorf("AddOnce() with the ID of a job: %v; want ErrExists", err)
	}
	if _, err := q.Known(ctx, Once{"k2", "r1"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("Known() of a key whose job was refused: %v; want ErrNotFound", err)
	}
	if err := errors.Join(q.Finish(ctx, ids[0]), q.Close()); err != nil {
		t.Fatal(err)
	}
	if q, err = OpenQueue(ctx, path); err != nil {
		t.Fatal(err)
	}
	if id, err := q.Known(ctx, mine); id != ids[0] || err != nil {
		t.Errorf("Known() after a restart = %q, %v; want the job's ID", id, err)
	}
	// Keys expire after a day.
	if _, err := q.AddOnce(ctx, onceJob("c", now.Add(keysKept+time.Second)), Once{"k3", "r3"}); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Known(ctx, mine); !errors.Is(err, ErrNotFound) {
		t.Errorf("Known() of an expired key: %v; want ErrNotFound", err)
	}
}
