package store

import (
	"errors"
	"fmt"
	"testing"

	"eidetic/internal/lab"
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

// Plans whose files are large fill the queue sooner, and what is left of those that failed; a list has no files.
func TestPlansInTheQueueAreBounded(t *testing.T) {
	q, err := MemoryQueue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	const size = 3 << 20 // 4 MiB in Base64
	most := lab.MostPlanBytes/(4<<20) - 1
	job := func(i int) Job {
		files := map[string][]byte{"lamp.png": make([]byte, size)}
		return Job{ID: fmt.Sprintf("run-%d", i), Device: "a", Plan: lab.Plan{Name: "large", Files: files}}
	}
	list := func() []Job {
		jobs, err := q.Jobs(t.Context())
		for _, j := range jobs {
			err = errors.Join(err, j.PlanError)
			if j.Plan.Name != "large" || j.Plan.Files != nil {
				t.Errorf("Jobs() has %s with %q and %d files; want its name alone", j.ID, j.Plan.Name, len(j.Plan.Files))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	for i := range most {
		if err := q.Add(t.Context(), job(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Add(t.Context(), job(most)); !errors.Is(err, ErrFull) {
		t.Errorf("Add() beyond %d large plans = %v, want ErrFull", most, err)
	}
	if err := q.Add(t.Context(), Job{ID: "small", Plan: lab.Plan{Name: "large"}}); err != nil {
		t.Errorf("Add() of a small plan beside them = %v, want nil", err)
	}
	if n := len(list()); n != most+1 {
		t.Errorf("%d runs wait, want %d", n, most+1)
	}
	taken, err := q.Next(t.Context())
	if err != nil || len(taken.Plan.Files["lamp.png"]) != size {
		t.Errorf("Next() = %s with a file of %d bytes, %v; want all %d", taken.ID, len(taken.Plan.Files["lamp.png"]), err, size)
	}
	if err := q.Add(t.Context(), job(most)); err != nil {
		t.Errorf("Add() once another has begun = %v, want nil", err)
	}
	for i := range most + 1 {
		if err := q.Leave(t.Context(), fmt.Sprintf("run-%d", i), StateFailed, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if jobs := list(); len(jobs) != most+1 || jobs[0].ID != fmt.Sprintf("run-%d", most) || jobs[len(jobs)-1].ID != "run-1" {
		t.Errorf("%d jobs are left, from %s to %s; want the newest %d that failed and the one that waits",
			len(jobs), jobs[0].ID, jobs[len(jobs)-1].ID, most)
	}
}
