package raced

import "testing"

func TestRaced(t *testing.T) {
	n, over := 0, make(chan bool)
	go func() { n++; close(over) }()
	n++
	<-over
	t.Log(n)
}
