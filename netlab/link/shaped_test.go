package link

import (
	"testing"
	"time"
)

// A deadline that is lifted as it comes does not come any more, however late its
// timer gets to say so.
func TestLiftedDeadlineDoesNotCome(t *testing.T) {
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
		t.Error("it came")
	}
}
