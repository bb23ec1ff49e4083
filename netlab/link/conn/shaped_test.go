package conn

import (
	"testing"
	"time"
)

// TestLiftedDeadlineDoesNotExpire: a deadline that is lifted while its timer fires
// does not expire, however late the timer's function runs.
func TestLiftedDeadlineDoesNotExpire(t *testing.T) {
	d := newDeadline()
	d.set(time.Now().Add(time.Hour))
	c := d.c
	fired, late := make(chan struct{}), make(chan struct{})
	d.timer.Stop()
	d.timer = time.AfterFunc(0, func() {
		close(fired)
		<-late
		close(c)
	})
	<-fired
	d.set(time.Time{})
	close(late)
	<-c
	if isDone(d.expired()) {
		t.Error("the deadline has expired, want it lifted")
	}
}
