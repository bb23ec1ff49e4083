package replay

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/replay/match"
)

// ServeHTTP answers from the archive. r.URL must be absolute.
func (s *Session) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o := newOutput(w, r, s.o.Clock)
	s.begin(o)
	defer s.end(o)
	out := s.outcome(o)
	s.count(out.Entry)
	o.deliver(out)
}

// count counts the exchanges that were asked for.
func (s *Session) count(en *match.Entry) {
	if en == nil || en.Method == http.MethodOptions || s.o.Rest > 0 && en.Start > s.o.Rest {
		return
	}
	if s.o.Others && len(s.p.browsed) > 0 && !IsOfBrowser(&en.Request) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[askedKey(en)] = true
	s.stats.Asked = len(s.asked)
}

// outcome reads a request, finds the exchange that answers it, and makes the answer.
func (s *Session) outcome(o *output) outcome {
	if name, ok := annotationName(o.r); ok {
		return annotation(o, name, s.o.Annotate)
	}
	if out, ok := s.talk(o); ok {
		return out
	}
	body, err := o.readBody()
	if err != nil {
		return refusal(err, "The request's body could not be read.\n")
	}
	en, found := s.find(o, body)
	isSure := en != nil && found.Stage != lab.StageFuzzy
	switch {
	case !isSure && isPreflight(o.r):
		return preflight(o.r.Header)
	case en == nil && match.IsBrowsersOwn(o.r.Header):
		return notOfPage("the browser asked by itself")
	case en == nil && s.o.Others && s.p.isOfAnother(o.r):
		return notOfPage("another program of the device asked")
	case en == nil && s.o.Miss == MissFill:
		return s.fill(o, body)
	case en == nil && s.live != nil:
		return s.fetchLive(body)
	case en == nil && s.o.Match != match.Strict && match.IsBeacon(o.r.Method, o.r.Header):
		return beacon()
	case en == nil:
		return outcome{Result: found, answer: page(http.StatusNotFound, "This request is not in the archive.\n")}
	}
	return s.answered(o, en, found)
}

// answered is the outcome of a request for which there is an exchange.
func (s *Session) answered(o *output, en *entry, found match.Result) (out outcome) {
	switch {
	case en.IsFailed():
		out = outcome{breaks: true, answer: answer{first: s.o.Timing.firstByte(en.FirstByte), why: brokenWhy}}
	case en.IsPending():
		out = outcome{stream: s.leavePending}
	case en.Status == http.StatusSwitchingProtocols:
		return s.socket(o.r, en, found)
	case en.Truncated == "time" && o.r.Method != http.MethodHead:
		out = outcome{stream: func(o *output) { s.sendOpen(o, s.answer(o, en)) }}
	default:
		out = outcome{answer: s.answer(o, en)}
	}
	if len(found.Echoes) > 0 && out.stream == nil {
		out.answer.echo(found.Echoes)
	}
	out.Result, out.filled = found, en.filled
	if out.answer.why != "" {
		out.Why = out.answer.why
	}
	return out
}

// cutWhy is of an exchange whose body ended too early when it was recorded.
const cutWhy = "its origin cut the body off when it was recorded, and so does the replay"

// brokenWhy is of an exchange that failed when it was recorded.
const brokenWhy = "its origin gave no answer when it was recorded, nor does the replay"

// find matches under the state of the device that asks. Most requests are recorded
// exactly, so that a request is taken apart only if it is not.
func (s *Session) find(o *output, body []byte) (*entry, match.Result) {
	line, h, device := &o.line, o.r.Header, s.device(o.conn.Client)
	s.mu.Lock()
	found := s.p.index.Exact(s.client(device), line.Method, line.URL, line.RequestSHA256, h)
	s.mu.Unlock()
	if found.Entry != nil {
		return s.p.entries[found.Entry], found
	}
	request := match.NewRequest(line.Method, line.URL, h, body)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.client(device)
	if s.live == nil {
		found = s.p.index.FindInexact(s.o.Match, c, request, h)
		return s.p.entries[found.Entry], found
	}
	policy := s.o.Match
	if policy == match.Loose { // nothing is guessed where the origin can be asked
		policy = match.Normal
	}
	found = s.p.index.FindInexact(policy, c, request, h)
	if found.Entry != nil && found.Stage == lab.StageFuzzy && found.Entry.IsFailed() {
		found = match.Result{Stage: lab.StageMiss} // the origin may answer now
	}
	if found.Entry != nil || s.filled == nil {
		return s.p.entries[found.Entry], found
	}
	s.o.Fill.prepareInto(s.filled)
	found = s.filled.index.Find(policy, c, request, h)
	return s.filled.entries[found.Entry], found
}

// fill fetches a request for which there is nothing, once: a request that is made again before
// its first answer is there waits for that, and gets the same.
func (s *Session) fill(o *output, body []byte) outcome {
	mayWait := o.r.Method == http.MethodGet && !isSocket(o.r) && !lab.IsStream(o.r.Header.Get("Accept"))
	if !mayWait {
		return s.fetchLive(body)
	}
	end, first := s.o.Fill.begin(o.line.URL)
	if first != nil {
		timeout := time.NewTimer(fillWait)
		defer timeout.Stop()
		select {
		case <-first:
		case <-timeout.C:
		case <-o.r.Context().Done():
		}
		if en, found := s.find(o, body); en != nil {
			return s.answered(o, en, found)
		}
	}
	out := s.fetchLive(body)
	fetch := out.stream
	out.stream = func(o *output) {
		defer end()
		fetch(o)
	}
	return out
}

// fillWait bounds the wait for an answer that is being fetched for an equal request.
const fillWait = 10 * time.Second

// fetchLive leaves a request to the origin. The recorder logs it.
func (s *Session) fetchLive(body []byte) outcome {
	return outcome{Result: match.Result{Stage: lab.StageLive}, stream: func(o *output) {
		o.r.Body = io.NopCloser(bytes.NewReader(body))
		s.live.ServeHTTP(o.w, o.r)
	}}
}

// leavePending never answers, as the origin did not until the recording ended.
func (s *Session) leavePending(o *output) {
	s.rest(func() { <-o.r.Context().Done() })
	o.line.Aborted = true
}

// sendOpen sends what was recorded of a body that had not ended when the recording did,
// and leaves the response open.
func (s *Session) sendOpen(o *output, a answer) {
	a.truncated = ""
	o.send(a)
	if o.line.Aborted {
		return
	}
	o.flush()
	s.rest(func() { <-o.r.Context().Done() })
	o.line.Aborted = true
}

// rest waits while a request is not in flight: nothing more comes of it by itself.
func (s *Session) rest(wait func()) {
	count := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stats.InFlight += n
	}
	s.mu.Lock()
	s.stats.LastActivity = s.o.Clock()
	s.mu.Unlock()
	count(-1)
	defer count(1)
	wait()
}

// begin counts an arrival.
func (s *Session) begin(o *output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Requests++
	s.stats.InFlight++
	s.stats.LastActivity = o.line.Time
	s.stats.noteWorker(o.r)
}

// end counts and logs a request whose outcome was delivered.
func (s *Session) end(o *output) {
	line, now := &o.line, s.o.Clock()
	line.Duration = now.Sub(line.Time)
	s.mu.Lock()
	s.stats.InFlight--
	s.stats.LastActivity = now
	if line.Stage == lab.StageLive {
		s.stats.Live++
	}
	if line.Stage == lab.StageMiss {
		s.stats.Misses++
		s.stats.Failed = s.stats.Failed || s.o.Miss == MissFail
	}
	s.mu.Unlock()
	if line.Stage != lab.StageLive { // the recorder logs its own
		s.o.Log(*line)
	}
	if o.incomplete {
		panic(http.ErrAbortHandler) // the server then closes the connection or resets the stream
	}
}
