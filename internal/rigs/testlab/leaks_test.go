package testlab

import (
	"testing"
	"time"
)

// A goroutine that ends late is no leak; one that does not end is.
func TestLeaked(t *testing.T) {
	late := time.NewTimer(2 * time.Second)
	over, forever := make(chan struct{}), make(chan struct{})
	go func() { <-late.C; close(over) }()
	go func() { <-forever }()
	if err := leaked(time.Millisecond); err == nil {
		t.Error("leaked() = nil with two goroutines running, want an error")
	}
	close(forever)
	if err := leaked(time.Minute); err != nil {
		t.Error(err)
	}
	<-over
}
