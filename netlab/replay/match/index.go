package match

import (
	"cmp"
	"fmt"
	"strconv"

	"eidetic/internal/lab"
)

// Index holds entries by what requests are compared by. It is for one goroutine at
// a time while entries are added.
type Index struct {
	ignored *Ignored
	exact   map[string][]*Entry
	normal  map[string][]*Entry
	buckets map[string][]*Entry // by Request.bucketKey
	calls   map[string]*calls   // by method and URL
	failed  map[string]failing  // by origin
	// paths holds entries by their path in lower case: what a miss is compared with that shares
	// its bucket with nothing.
	paths map[string][]*Entry
}

// NewIndex returns an empty index whose normalised stage leaves out what ignored says.
func NewIndex(ignored *Ignored) *Index {
	return &Index{
		ignored: ignored, exact: map[string][]*Entry{}, normal: map[string][]*Entry{}, buckets: map[string][]*Entry{},
		calls: map[string]*calls{}, failed: map[string]failing{}, paths: map[string][]*Entry{},
	}
}

// Add adds an entry behind those that are there.
func (x *Index) Add(en *Entry) {
	exact, normal, bucket := en.request.exactKey(), en.request.normalKey(x.ignored), en.request.bucketKey()
	x.exact[exact] = append(x.exact[exact], en)
	x.normal[normal] = append(x.normal[normal], en)
	x.buckets[bucket] = append(x.buckets[bucket], en)
	x.addCall(en)
	if of := x.failed[en.request.origin]; en.IsFailed() && !of.answers {
		of.first = cmp.Or(of.first, en)
		x.failed[en.request.origin] = of
	} else {
		x.failed[en.request.origin] = failing{answers: true}
	}
	path := en.request.pathKey()
	x.paths[path] = append(x.paths[path], en)
}

// Recorded lists the entries with a method and a URL and without a body, in their order.
func (x *Index) Recorded(method, url string) []*Entry {
	return x.exact[string(appendExactKey(nil, method, url, ""))]
}

// Client is the state of one device: which entries it was given, and how often it asked
// for the last of a list again.
type Client struct {
	given map[*Entry]bool
	again map[*Entry]int
}

// NewClient returns the state of a device that has asked for nothing.
func NewClient() *Client { return &Client{given: map[*Entry]bool{}, again: map[*Entry]int{}} }

// next gives the entries of a list in their order, and the last one for ever: a
// page that asks more often than it did is answered as it last was. asked is how
// often the client has asked for the list.
func (c *Client) next(list []*Entry) (en *Entry, asked int) {
	for i, en := range list {
		if !c.given[en] {
			c.given[en] = true
			return en, i + 1
		}
	}
	last := list[len(list)-1]
	c.again[last]++
	return last, len(list) + c.again[last]
}

// repeated lowers the score of a request that was made much more often than it was
// recorded, and says so: a page in a loop is not the page that was recorded.
func (m *Result) repeated(asked, recorded int) {
	if asked <= recorded+max(2, recorded) {
		return
	}
	m.Score = float64(recorded) / float64(asked)
	var room [64]byte
	text := strconv.AppendInt(append(room[:0], "asked "...), int64(asked), 10)
	text = strconv.AppendInt(append(text, " times, recorded "...), int64(recorded), 10)
	m.Differs = append(m.Differs, string(append(text, ": a loop?"...)))
}

// Result is what was found for a request, and why.
type Result struct {
	Entry    *Entry // nil for a miss
	Stage    lab.Stage
	Score    float64  // 1 when the stage is sure, the similarity of a fuzzy match, 0 for a miss
	Differs  []string // what is not equal: "query cb: 1 → 9"
	RunnerUp string   // the next best entry of a fuzzy match, the best one of a miss
	Why      string   // why what differs was accepted, or nothing was
	Echoes   []Echo   // what the answer has to say otherwise than the recorded one
	Rule     string   // of a miss: flags of appliance archive edit that accept what differs, "" if no rule can
}

func miss() Result { return Result{Stage: lab.StageMiss} }

// Exact is the first stage alone, for requests that are not taken apart yet; most
// are found by it. bodySum is BodySum of the request's body.
func (x *Index) Exact(c *Client, method, url, bodySum string, h Header) Result {
	var room [512]byte // most keys are shorter
	list := nearestFields(usable(x.exact[string(appendExactKey(room[:0], method, url, bodySum))], h), h)
	if len(list) == 0 {
		return miss()
	}
	en, asked := c.next(list)
	m := Result{Entry: en, Stage: lab.StageExact, Score: 1}
	if len(list) > 1 {
		m.Stage = lab.StageSequence
	}
	m.repeated(asked, len(list))
	return m
}

// Sure runs the stages that do not guess, as far as the policy has them.
func (x *Index) Sure(p Policy, c *Client, r *Request, h Header) Result {
	if m := x.Exact(c, r.method, r.url, r.sum, h); m.Entry != nil {
		return m
	}
	return x.normalised(p, c, r, h)
}

// normalised runs the stages of Sure that come after the exact one.
func (x *Index) normalised(p Policy, c *Client, r *Request, h Header) Result {
	if p == Strict {
		return miss()
	}
	var room [256]byte // most keys are shorter
	if list := nearestFields(usable(x.normal[string(r.appendNormalKey(room[:0], x.ignored))], h), h); len(list) > 0 {
		en, asked := c.next(list)
		differs := compare(en.request, r)
		m := Result{
			Entry: en, Stage: lab.StageNormalised, Score: 1, Differs: texts(differs), Why: x.ignored.whyNormal(r, differs),
			Echoes: echoes(en.request, r),
		}
		m.repeated(asked, len(list))
		return m
	}
	if r.method == "HEAD" {
		// A GET answers a HEAD; the writer of the response leaves the body out.
		get := *r
		get.method = "GET"
		if m := x.Sure(p, c, &get, h); m.Entry != nil {
			m.Stage = lab.StageNormalised
			m.Differs = append([]string{"method: GET → HEAD"}, m.Differs...)
			m.Why = joined("the answer to HEAD is that to GET without its body", m.Why)
			return m
		}
	}
	return miss()
}

// joined joins two texts of which either may be empty.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// Find runs all stages that the policy has.
func (x *Index) Find(p Policy, c *Client, r *Request, h Header) Result {
	if m := x.Exact(c, r.method, r.url, r.sum, h); m.Entry != nil {
		return m
	}
	return x.FindInexact(p, c, r, h)
}

// FindInexact runs the stages of Find for a request for which Exact has found nothing.
func (x *Index) FindInexact(p Policy, c *Client, r *Request, h Header) Result {
	if m := x.normalised(p, c, r, h); m.Entry != nil {
		return m
	}
	list := x.buckets[r.bucketKey()]
	if p == Strict {
		return x.missed(p, list, r)
	}
	candidates := usable(list, h)
	if m := c.follow(pollChain(candidates, r), r); m.Entry != nil {
		return m
	}
	same := filter(candidates, func(en *Entry) bool { return samePath(en.request, r, x.ignored) })
	why, whatever := settles(same, r, h)
	switch {
	case whatever, why != "" && p != Loose:
		candidates = same
	case p != Loose:
		return x.unanswered(p, c, list, r)
	default:
		why = fmt.Sprintf("the policy loose accepts the most similar request, from %.2f on", Threshold)
	}
	m := nearest(c, r, candidates, whatever)
	if m.Entry != nil {
		m.Why = why
		return m
	}
	if m = x.withoutBody(p, c, r, h); m.Entry != nil {
		return m
	}
	return x.unanswered(p, c, list, r)
}

// withoutBody finds what was recorded of a request without the body that it had: some exporters leave bodies out. What
// else such requests to one address asked for is not known, so they get their answers in the order of the recording.
func (x *Index) withoutBody(p Policy, c *Client, r *Request, h Header) Result {
	if p != Loose || r.kind == "" {
		return miss()
	}
	bare := *r
	bare.kind, bare.sum, bare.called, bare.body, bare.bodyByName = "", "", "", nil, nil
	m := x.Sure(Normal, c, &bare, h)
	if m.Entry == nil || m.Entry.Request.Get("Content-Length") == "0" {
		return miss()
	}
	m.Stage, m.Score, m.Differs = lab.StageFuzzy, min(m.Score, Threshold), differences(m.Entry.request, r)
	m.Why = "the recording lacks the body of this request; the next of those without one, by their order"
	return m
}

// missed explains a miss by the most similar entry: of the request's bucket, or else of the same
// path elsewhere. It gives nothing to the client.
func (x *Index) missed(p Policy, bucket []*Entry, r *Request) Result {
	m := miss()
	t := bestTwo{client: NewClient()}
	for _, en := range bucket {
		t.offer(candidate{en, similarity(en.request, r)})
	}
	best := t.best
	if best.entry == nil {
		const most = 100 // that are compared: the path alone is equal
		list := x.paths[r.pathKey()]
		for _, en := range list[:min(len(list), most)] {
			t.offer(candidate{en, elsewhere(en.request, r)})
		}
		if best = t.best; best.entry == nil {
			m.Why = "nothing like it was recorded"
			return m
		}
	}
	differs := compare(best.entry.request, r)
	m.RunnerUp, m.Differs = best.entry.describe(best.score), texts(differs)
	if p != Strict {
		m.Rule = ruleFor(best.entry.request, r, differs)
	}
	switch {
	case len(differs) == 0:
		m.Why = "what was recorded of it cannot answer this request: it is a part of the body, or a 304 for a cache"
	case p == Strict:
		m.Why = "the policy strict accepts only the recorded method, URL and body"
	case len(bucket) == 0 || t.best.score < Threshold:
		m.Why = "what differs may change the answer, and the request is not similar enough for the policy loose either"
	case p == Loose:
		m.Why = "what was recorded of it cannot answer this request: it is a part of the body, or a 304 for a cache"
	default:
		m.Why = "what differs may change the answer; the policy loose would accept it"
	}
	return m
}

// nearest gives the most similar entry, unless that is below Threshold. Of equally similar entries the first that the
// client was not given yet wins. whatever says that query and body do not count against an entry.
func nearest(c *Client, r *Request, list []*Entry, whatever bool) Result {
	t := bestTwo{client: c}
	least := int64(0)
	if whatever {
		least = one / 2
	}
	for _, en := range list {
		t.offer(candidate{en, similarityFrom(en.request, r, least)})
	}
	switch best, second := t.best, t.second; {
	case best.entry == nil:
		return miss()
	case best.score < Threshold:
		return Result{Stage: lab.StageMiss, RunnerUp: best.entry.describe(best.score)}
	default:
		c.given[best.entry] = true
		m := Result{
			Entry: best.entry, Stage: lab.StageFuzzy, Score: best.score, Differs: differences(best.entry.request, r),
			Echoes: echoes(best.entry.request, r),
		}
		if second.entry != nil {
			m.RunnerUp = second.entry.describe(second.score)
		}
		return m
	}
}

// candidate is an entry with its similarity to a request.
type candidate struct {
	entry *Entry
	score float64
}

// bestTwo keeps the two most similar of the candidates that are offered in their order.
type bestTwo struct {
	client       *Client
	best, second candidate
}

func (t *bestTwo) offer(c candidate) {
	switch {
	case t.beats(c, t.best):
		t.best, t.second = c, t.best
	case t.beats(c, t.second):
		t.second = c
	}
}

// beats tells whether c goes before another candidate that was offered earlier.
func (t *bestTwo) beats(c, than candidate) bool {
	if c.score != than.score {
		return c.score > than.score
	}
	return c.score > 0 && than.entry != nil && t.client.given[than.entry] && !t.client.given[c.entry]
}
