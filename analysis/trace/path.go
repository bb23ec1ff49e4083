package trace

import (
	"cmp"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// Bounds of a critical path.
const (
	mostPathSteps    = 2000
	mostPathRequests = 2000
	// restless is how long a thread may wait without that being taken for waiting.
	restless = lab.Time(1e6)
	// onTheWay is by how much an answer may come to the page later than the box has sent it, where the browser does not
	// say when.
	onTheWay = lab.Time(50e6)
	// toScreen is how long painting may be before the picture that shows it.
	toScreen = lab.Time(200e6)
)

// PathSource is what a critical path is found in.
type PathSource struct {
	Zero, End lab.Time // the input, and the picture that the path leads to
	Page      string
	Work      []Stretch // of the page's thread
	Fetches   []Fetch
	Served    []lab.Served
}

// CriticalPath goes back from a picture to the input, always to what ended last of what had to be before: while the
// page's thread works, that is its work; where it waits, the answer that it then works on, or the last that came. The
// steps follow each other without gaps, so that their times add up to the picture's.
//
// What the thread did, and how the box answered, is measured. Which answer a thread waited for is inferred, unless it
// works on that answer later; and so is what made a request, unless the browser says when it was asked for.
func CriticalPath(s PathSource) []lab.PathStep {
	w := walker{PathSource: s, work: sane(s.Work), requests: pathRequests(s), needs: map[string]bool{}, at: s.End}
	w.screen()
	for w.at > s.Zero && len(w.steps) < mostPathSteps {
		w.step()
	}
	w.add(lab.PathStep{Kind: lab.PathIdle, Inferred: true, Why: "what comes before has more steps than are kept"}, s.Zero)
	slices.Reverse(w.steps)
	return w.merged()
}

// pathRequest is a request as the box and the page saw it.
type pathRequest struct {
	url                           string
	sent, asked, first, end, done lab.Time // sent and done are 0 where the browser does not say
}

// start is the first that is known of a request, and there the last.
func (r *pathRequest) start() lab.Time {
	if r.sent != 0 {
		return min(r.sent, r.asked)
	}
	return r.asked
}

func (r *pathRequest) there() lab.Time { return max(r.end, r.done) }

// pathRequests joins the box's requests to the browser's, by URL and order.
func pathRequests(s PathSource) (out []*pathRequest) {
	fetches := map[string][]Fetch{}
	for _, f := range s.Fetches[:min(len(s.Fetches), mostFetches)] {
		url := shortURL(f.URL)
		fetches[url] = append(fetches[url], f)
	}
	for _, list := range fetches {
		slices.SortStableFunc(list, func(a, b Fetch) int { return cmp.Compare(a.Sent, b.Sent) })
	}
	served := slices.Clone(s.Served)
	slices.SortStableFunc(served, func(a, b lab.Served) int { return cmp.Compare(a.Time, b.Time) })
	for _, one := range served {
		if one.Stage == lab.StageBox || one.Time < s.Zero || one.Time >= s.End || len(out) == mostPathRequests {
			continue
		}
		r := &pathRequest{url: shortURL(one.URL), asked: one.Time}
		r.first = r.asked.Add(max(one.FirstByte, 0))
		r.end = max(r.asked.Add(one.Duration), r.first)
		if list := fetches[r.url]; len(list) > 0 {
			// What the browser asked for later than it came here is of another request.
			if f := list[0]; f.Sent >= s.Zero && f.Sent <= r.asked {
				r.sent, fetches[r.url] = f.Sent, list[1:]
				if f.Done >= r.first {
					r.done = f.Done
				}
			}
		}
		out = append(out, r)
	}
	return out
}

type walker struct {
	PathSource
	work     []Stretch
	requests []*pathRequest
	needs    map[string]bool // URLs that the path works on
	at       lab.Time
	steps    []lab.PathStep // the last first
}

// add puts a step before those that are known, from an instant to where the path is.
func (w *walker) add(step lab.PathStep, from lab.Time) {
	from = max(from, w.Zero)
	if from >= w.at {
		return
	}
	step.What = relative(step.What, w.Page)
	step.FromMS, step.ToMS = float64(from-w.Zero)/1e6, float64(w.at-w.Zero)/1e6
	w.steps, w.at = append(w.steps, step), from
}

// before is the last stretch that begins before the path is; −1 if there is none.
func (w *walker) before() int {
	n, _ := slices.BinarySearchFunc(w.work, w.at, func(s Stretch, at lab.Time) int { return cmp.Compare(s.Start, at) })
	return n - 1
}

// screen goes from the picture to the last painting before it.
func (w *walker) screen() {
	for i := w.before(); i >= 0 && w.work[i].End >= w.at-toScreen; i-- {
		if s := w.work[i]; s.Group == PaintGroup && s.End <= w.at {
			w.add(lab.PathStep{Kind: lab.PathScreen, Inferred: true, Why: "the last painting of the page's thread before the picture"}, s.End)
			return
		}
	}
	if i := w.before(); i >= 0 && w.work[i].End < w.at {
		w.add(lab.PathStep{Kind: lab.PathScreen, Inferred: true, Why: "no painting of the page's thread is seen; its last work before the picture"},
			max(w.work[i].End, w.at-toScreen))
	}
}

// step goes one step back: it always moves the path.
func (w *walker) step() {
	i := w.before()
	from := w.Zero
	if i >= 0 {
		from = w.work[i].End
	}
	if i >= 0 && from >= w.at-restless { // the thread works
		s := w.work[i]
		w.needs[s.URL] = true
		w.add(lab.PathStep{Kind: lab.PathWork, Group: lab.OneLine(string(s.Group), 40), What: s.URL}, s.Start)
		return
	}
	if r, why, isNeeded := w.awaited(from); r != nil {
		w.request(r, why, !isNeeded)
		return
	}
	if slices.ContainsFunc(w.requests, func(r *pathRequest) bool { return r.start() < w.at }) {
		w.add(lab.PathStep{Kind: lab.PathIdle, Inferred: true, Why: "no answer came at its end: a timer, a frame, or another thread"}, from)
		return
	}
	w.add(lab.PathStep{Kind: lab.PathStart, Inferred: true, Why: "before the first request"}, w.Zero)
}

// awaited is the request that the page's thread waits for from an instant to where the path is.
func (w *walker) awaited(from lab.Time) (best *pathRequest, why string, isNeeded bool) {
	rank := 0
	for _, r := range w.requests {
		if r.start() >= w.at {
			continue
		}
		slack := onTheWay
		if r.done != 0 {
			slack = restless
		}
		there, now := r.there(), 0
		needed := w.needs[r.url] && r.url != ""
		switch {
		case needed && there > from-slack && there <= w.at+restless:
			now = 3
		case needed && r.first < w.at && there > w.at:
			now = 2
		case there > from && there <= w.at+restless:
			now = 1
		}
		if now > rank || now == rank && now > 0 && there >= best.there() {
			best, rank = r, now
		}
	}
	switch rank {
	case 3:
		return best, "the page's thread works on this answer next", true
	case 2:
		return best, "the page's thread works on this answer, which comes meanwhile", true
	case 1:
		return best, "the last answer before the page's thread works again", false
	}
	return nil, "", false
}

// request goes back through a request, to when it was asked for.
func (w *walker) request(r *pathRequest, why string, inferred bool) {
	step := lab.PathStep{What: r.url, Inferred: inferred, Why: why}
	was := w.at
	if r.done != 0 {
		step.Kind = lab.PathIdle
		w.add(step, min(r.there(), w.at))
	}
	step.Kind = lab.PathDeliver
	w.add(step, r.end)
	step.Kind = lab.PathReceive
	w.add(step, r.first)
	step.Kind = lab.PathWait
	w.add(step, r.asked)
	step.Kind = lab.PathSend
	from := r.start()
	if r.asked-from > onTheWay {
		if end, ok := w.worked(from, r.asked); ok {
			from, step.Inferred, step.Why = end, true, "the browser held this request back until the page's thread had done what precedes"
		}
	}
	w.add(step, from)
	if w.at == was { // it was asked for at this instant
		w.add(lab.PathStep{Kind: lab.PathIdle, Inferred: true, Why: "nothing is known of it"}, was-1)
	}
}

// worked is when the page's thread ended its last work of some length between two instants.
func (w *walker) worked(from, to lab.Time) (end lab.Time, ok bool) {
	n, _ := slices.BinarySearchFunc(w.work, to, func(s Stretch, at lab.Time) int { return cmp.Compare(s.End, at) })
	for i := n - 1; i >= 0 && w.work[i].End > from; i-- {
		if w.work[i].End-w.work[i].Start >= restless {
			return w.work[i].End, true
		}
	}
	return 0, false
}

// merged joins steps that are alike.
func (w *walker) merged() (out []lab.PathStep) {
	for _, s := range w.steps {
		n := len(out) - 1
		if n >= 0 && out[n].Kind == s.Kind && out[n].Group == s.Group && out[n].What == s.What {
			out[n].ToMS, out[n].Inferred = s.ToMS, out[n].Inferred || s.Inferred
			continue
		}
		s.What = lab.OneLine(strings.TrimSpace(s.What), mostTraceURL)
		out = append(out, s)
	}
	return out
}
