package store

import (
	"errors"
	"fmt"
	"testing"
)

// A script in a loop cannot fill the disk with runs that wait, nor with jobs that failed.
func TestQueueIsBounded(t *testing.T) {
	q, err := MemoryQueue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	for i := range MaxWaiting {
		if err := q.Add(t.Context(), Job{ID: fmt.Sprintf("run-%d", i), Device: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Add(t.Context(), Job{ID: "more", Device: "b"}); !errors.Is(err, ErrFull) {
		t.Errorf("Add() to a full queue = %v, want ErrFull", err)
	}
	if _, err := q.AddOnce(t.Context(), Job{ID: "more", Device: "b"}, Once{Key: "k", Request: "r"}); !errors.Is(err, ErrFull) {
		t.Errorf("AddOnce() to a full queue = %v, want ErrFull", err)
	}
	for i := range MaxWaiting {
		if err := q.Leave(t.Context(), fmt.Sprintf("run-%d", i), StateFailed, "x"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		id := fmt.Sprintf("late-%d", i)
		if err := errors.Join(q.Add(t.Context(), Job{ID: id, Device: "a"}), q.Leave(t.Context(), id, StateFailed, "x")); err != nil {
			t.Fatal(err)
		}
	}
	jobs, err := q.Jobs(t.Context())
	if err != nil || len(jobs) != maxLeft || jobs[0].ID != "late-9" {
		t.Errorf("%d jobs that failed (%v), the newest %s; want %d, late-9", len(jobs), err, jobs[0].ID, maxLeft)
	}
}
