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
	var why, causes []string
	otherwise := ""
	if f.film.LastChange > end.Add(-f.still) {
		why, causes = append(why, "its screen went on changing"), append(causes, "an endless animation, a video or a caret")
		otherwise = "network 1s"
	}
	if n, last := lateRequests(f.served, end, f.still); n > 0 {
		why = append(why, fmt.Sprintf("it went on asking (%d requests in the last %v, such as %s)", n, f.still, last))
		causes = append(causes, "a poll")
		if otherwise = "still 1s"; len(why) > 1 {
			otherwise = "still 1s in 0%,0%,100%,50%" // the part that rests
		}
	}
	if len(why) == 0 {
		why = []string{"a request was still under way, or its main thread went on working"}
	}
	text := "the page did not come to rest within the plan's time limit: " + strings.Join(why, ", and ")
	if len(causes) > 0 {
		text += fmt.Sprintf("; where that is %s, end the load otherwise: by --end '%s' (in a plan the end of a step), or by lab.done() "+
			"in the page", strings.Join(causes, " or "), otherwise)
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
