package testlab

import (
	"testing"
	"time"
)

// One that ends late is no leak, one that does not is.
func TestLeaked(t *testing.T) {
	late := time.NewTimer(2 * time.Second)
	over, forever := make(chan struct{}), make(chan struct{})
	go func() { <-late.C; close(over) }()
	go func() { <-forever }()
	if err := leaked(time.Millisecond); err == nil {
		t.Error("two goroutines, and no leak")
	}
	close(forever)
	if err := leaked(time.Minute); err != nil {
		t.Error(err)
	}
	<-over
}
