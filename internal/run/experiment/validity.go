package experiment

import (
	"fmt"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// facts is what is known of a trial besides its pixels.
type facts struct {
	served       []lab.Served
	filmed       bool
	still        time.Duration // the plan's
	film         FilmStatus
	cut          bool // by an interruption that matters
	link         LinkReport
	offsetBefore time.Duration // wall clock minus monotonic clock
	offsetAfter  time.Duration
	expectBlank  bool  // the plan's
	crash        error // that of the device's browser
}

// clockStep is the smallest change between wall and monotonic clock that counts as a step;
// NTP's slewing (500 ppm at most) stays below it over a trial.
const clockStep = 50 * time.Millisecond

// leastAsked is the least share of a page's recorded exchanges that a load of it requests.
// Occasional requests, such as advertisements or a favicon, are a smaller share.
const leastAsked = 0.75

// mostService is the largest share of a core that the service may take beside a trial. Half of a core has doubled the
// time of a first change, with no frame lost and no packet late.
const mostService = 0.2

// judge returns why a trial is invalid, each with advice. Late instruments are not judged
// here but by the blur that they cause.
func judge(t *lab.Trial, f facts) (reasons []string) {
	if f.crash != nil {
		reasons = append(reasons, f.crash.Error())
	}
	if t.FramesLost > 0 && len(t.FrameTimes) == 0 { // when the frames were lost, and so the blur, is unknown
		reasons = append(reasons, fmt.Sprintf("%d of %d frames were lost: the machine could not film at the full rate beside its other "+
			"work", t.FramesLost, t.Frames+t.FramesLost))
	}
	if t.Misses > 0 {
		reasons = append(reasons, fmt.Sprintf("%d of %d requests were not in the archive, first %s: see the replay log", t.Misses,
			t.Requests, firstMiss(f.served)))
	}
	if t.Filled > 0 {
		reasons = append(reasons, fmt.Sprintf("%d of %d requests were not in the archive, first %s, and were fetched from their origins: "+
			"their times are those of the origins; later trials get the same answers from what was fetched", t.Filled, t.Requests,
			firstFetched(t.FilledRequests)))
	}
	if url := dialogue(f.served); url != "" {
		reasons = append(reasons, fmt.Sprintf("%s answers 401 and makes the browser ask for a password, in a dialogue over the page: if the "+
			"answer behind it is meant, record the page with its credentials (https://USER:PASSWORD@…, or --header 'Authorization: Basic …')", url))
	}
	for _, d := range t.Dialogues {
		if !d.Answered {
			reasons = append(reasons, d.Shown())
			break // a second one tells nothing more
		}
	}
	if n, first := aborted(f.served); n > 0 {
		reasons = append(reasons, fmt.Sprintf("%d answers failed on our side, first %s", n, first))
	}
	if isShort(t.Asked, t.Recorded) {
		reasons = append(reasons, fmt.Sprintf("the page asked for only %d of the %d exchanges that were recorded of it: %s, or it is another "+
			"page now; see the replay log", t.Asked, t.Recorded, tooEarly(t)))
	}
	if t.NoLoad != "" && !f.expectBlank {
		reasons = append(reasons, t.NoLoad+"; look at its video, and say expect_blank in the plan, or --expect-blank, if the page is to show nothing")
	}
	if t.Machine != nil && t.Machine.Service > mostService {
		reasons = append(reasons, t.Machine.Beside()+": close pages of the panel, and let no strangers reach its port")
	}
	if b, ok := blueOf(t); ok {
		reasons = append(reasons, fmt.Sprintf("the grabber showed nothing but one blue for %.1f s, as sticks do without a signal and after the "+
			"device's mode has changed: hold the mode steady; if the page itself is so, let it have another shade", b.To.Sub(b.From).Seconds()))
	}
	if f.link.Invalid != "" {
		reasons = append(reasons, f.link.Invalid)
	}
	if t.Ended == lab.EndLimit && len(t.Steps) == 0 && f.crash == nil { // a step says itself what it waited for
		reasons = append(reasons, unrest(t, f))
	}
	if step := f.offsetAfter - f.offsetBefore; step > clockStep || step < -clockStep {
		reasons = append(reasons, fmt.Sprintf("%s by %v", lab.ClockStepped, step.Round(time.Millisecond)))
	}
	return reasons
}

// tooEarly says what may have taken a page for loaded that was not.
func tooEarly(t *lab.Trial) string {
	if len(t.Steps) == 1 && t.Steps[0].Expect != "" && !t.Steps[0].Default { // in a journey it may be any step's
		return fmt.Sprintf("its end (%s) may have held before it had loaded, as over a picture that it shows meanwhile: say a longer time, or a "+
			"colour or picture that it shows only then", t.Steps[0].Expect)
	}
	return "it was taken for loaded too early"
}

// blueOf returns the first stretch without a signal between a trial's start and its end.
func blueOf(t *lab.Trial) (lab.Blue, bool) {
	end, ended := endOf(t)
	if t.Capture == nil {
		return lab.Blue{}, false
	}
	for _, b := range t.Capture.Blue {
		if b.To > t.StartTime && (!ended || b.From < end) {
			return b, true
		}
	}
	return lab.Blue{}, false
}

// dialogue returns the first address for which the browser asks for a password, and gets no other answer later.
func dialogue(served []lab.Served) (url string) {
	for _, s := range served {
		switch {
		case s.AsksPassword && url == "":
			url = s.URL
		case s.URL == url && !s.AsksPassword:
			url = ""
		}
	}
	return url
}

func firstMiss(served []lab.Served) string {
	for _, s := range served {
		if s.Stage == lab.StageMiss {
			return s.Method + " " + s.URL
		}
	}
	return ""
}

// fetched lists the requests that origins answered. offset is the wall clock minus the monotonic one.
func fetched(served []lab.Served, offset time.Duration) (list []lab.FilledRequest) {
	const most = 100 // requests of a trial; replay.jsonl has all
	const longest = 500
	for _, s := range served {
		if s.Stage != lab.StageLive || len(list) == most {
			continue
		}
		f := lab.FilledRequest{
			Time: s.Time, Wall: time.Unix(0, int64(s.Time)).Add(offset).UTC(), Method: s.Method, URL: s.URL,
			Status: s.Status, Bytes: s.Bytes, Exchange: s.Exchange, Error: s.Error,
		}
		if len(f.URL) > longest {
			f.URL = strings.ToValidUTF8(f.URL[:longest], "") + "…"
		}
		list = append(list, f)
	}
	return list
}

func firstFetched(list []lab.FilledRequest) string {
	if len(list) == 0 {
		return "one that is not in the log"
	}
	return list[0].Method + " " + list[0].URL
}

// aborted counts the responses that failed on the box's side; a device that closes a
// connection is not counted.
func aborted(served []lab.Served) (n int, first string) {
	for _, s := range served {
		if s.Error == "" || s.Stage == lab.StageMiss || s.Aborted {
			continue
		}
		if n == 0 {
			first = s.Method + " " + s.URL + ": " + s.Error
		}
		n++
	}
	return n, first
}

// clockOffset is the wall clock minus the monotonic clock.
func (r *Runner) clockOffset() time.Duration {
	return time.Duration(r.Host.Wall().UnixNano() - int64(r.Clock()))
}
