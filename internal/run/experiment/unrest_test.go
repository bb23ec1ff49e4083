package experiment

import (
	"strings"
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

// TestUnrest: what keeps a page from coming to rest is told with an end that it does not keep from coming.
func TestUnrest(t *testing.T) {
	const end = lab.Time(60 * time.Second)
	trial := &lab.Trial{Events: []lab.Event{{Name: "end", Earliest: end, Latest: end}}}
	polls := []lab.Served{{Method: "GET", URL: "https://a.test/poll", Time: end - 1, Duration: 1}}
	for name, c := range map[string]struct {
		changed lab.Time
		served  []lab.Served
		want    string
	}{
		"a video":            {end, nil, "changing; where that is an endless animation, a video or a caret, end the load otherwise: by --end 'network 1s' "},
		"a poll":             {0, polls, "such as GET https://a.test/poll); where that is a poll, end the load otherwise: by --end 'still 1s' "},
		"both":               {end, polls, "a caret or a poll, end the load otherwise: by --end 'still 1s in 0%,0%,100%,50%' "},
		"a page that thinks": {0, nil, "or its main thread went on working"},
	} {
		got := unrest(trial, facts{film: FilmStatus{LastChange: c.changed}, served: c.served, still: time.Second})
		if !strings.Contains(got, c.want) || (c.changed == 0 && c.served == nil) != strings.HasSuffix(got, c.want) {
			t.Errorf("%s: unrest() = %q; want %q in it", name, got, c.want)
		}
	}
	for _, text := range []string{"network 1s", "still 1s", "still 1s in 0%,0%,100%,50%"} {
		if _, err := lab.ParseEnd(text); err != nil {
			t.Errorf("the advice %q is no end: %v", text, err)
		}
	}
}
