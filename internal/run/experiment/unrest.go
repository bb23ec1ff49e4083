package experiment

import (
	"fmt"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// unrest says what kept a page from coming to rest before the time limit, and what to do.
func unrest(t *lab.Trial, f facts) string {
	end, ok := endOf(t)
	if !ok {
		return "the page did not come to rest within the plan's time limit"
	}
	var why, advice []string
	if f.film.LastChange > end.Add(-f.still) {
		why = append(why, "its screen went on changing")
		advice = append(advice, "an endless animation or a caret")
	}
	if n, last := lateRequests(f.served, end, f.still); n > 0 {
		why = append(why, fmt.Sprintf("it went on asking (%d requests in the last %v, such as %s)", n, f.still, last))
		advice = append(advice, "a poll")
	}
	if len(why) == 0 {
		why = []string{"a request was still under way, or its main thread went on working"}
	}
	text := "the page did not come to rest within the plan's time limit: " + strings.Join(why, ", and ")
	if len(advice) > 0 {
		text += "; where that is " + strings.Join(advice, " or ") + ", the page says itself when it has loaded, with lab.done()"
	}
	return text
}

// endOf is when the trial's load ended.
func endOf(t *lab.Trial) (at lab.Time, ok bool) {
	for _, e := range t.Events {
		if e.Name == "end" {
			return e.Latest, true
		}
	}
	return 0, false
}

// lateRequests counts the requests that the page made, or whose answers ended, shortly before
// the end, and names the last one. A stream that was open all the while is none of them.
func lateRequests(served []lab.Served, end lab.Time, before time.Duration) (n int, last string) {
	for _, s := range served {
		answered := s.Time.Add(s.Duration)
		isLate := s.Time > end.Add(-before) && s.Time <= end || answered > end.Add(-before) && answered <= end
		if s.Stage != lab.StageBox && isLate {
			n++
			last = s.Method + " " + s.URL
		}
	}
	return n, last
}
