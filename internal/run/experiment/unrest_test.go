package experiment

import (
	"testing"
	"time"

	"eidetic/internal/lab"
)

// A stream that has been open all the time is no request of the page's last moments.
func TestLateRequests(t *testing.T) {
	const end = lab.Time(60 * time.Second)
	served := func(name string, from, to time.Duration) lab.Served {
		return lab.Served{Method: "GET", URL: name, Time: lab.Time(from), Duration: to - from}
	}
	n, last := lateRequests([]lab.Served{
		served("early", time.Second, 2*time.Second),
		served("stream", time.Second, 61*time.Second),
		served("begun", 59*time.Second, 61*time.Second),
		served("answered", 10*time.Second, 59*time.Second),
	}, end, 1500*time.Millisecond)
	if n != 2 || last != "GET answered" {
		t.Errorf("lateRequests() = %d, %q; want the one that was begun and the one that was answered", n, last)
	}
}
