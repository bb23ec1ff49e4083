package replay

import (
	"fmt"
	"net/http"
	"strings"

	"eidetic/internal/lab"
)

// client is the match state of one device: which exchanges it was given.
type client struct{ used map[*entry]bool }

// match is what was found for a request, and why.
type match struct {
	entry    *entry
	stage    lab.Stage
	score    float64
	differs  []string
	runnerUp string
}

// find runs the stages. h is the header of the request.
func (p *Prepared) find(c *client, s *shape, h http.Header) match {
	if m := p.sure(c, s, h); m.entry != nil {
		return m
	}
	return p.nearest(c, s, h)
}

// sure runs the stages that do not guess.
func (p *Prepared) sure(c *client, s *shape, h http.Header) match {
	var room [256]byte // most keys are shorter
	if m := p.exactly(c, p.exact[string(appendExactKey(room[:0], s.method, s.url, s.sum))], h); m.entry != nil {
		return m
	}
	if list := usable(p.normal[string(s.appendNormalKey(room[:0], &p.learned))], h); len(list) > 0 {
		en := c.next(list)
		return match{entry: en, stage: lab.StageNormalised, score: 1, differs: differences(en.shape, s)}
	}
	if s.method == http.MethodHead {
		// A GET answers a HEAD; the writer leaves the body out.
		get := *s
		get.method = http.MethodGet
		if m := p.sure(c, &get, h); m.entry != nil {
			m.stage = lab.StageNormalised
			m.differs = append([]string{"method: GET → HEAD"}, m.differs...)
			return m
		}
	}
	return match{stage: lab.StageMiss}
}

// exactly chooses among the exchanges of one exact key.
func (p *Prepared) exactly(c *client, list []*entry, h http.Header) match {
	if list = usable(list, h); len(list) == 0 {
		return match{stage: lab.StageMiss}
	}
	m := match{entry: c.next(list), stage: lab.StageExact, score: 1}
	if len(list) > 1 {
		m.stage = lab.StageSequence
	}
	return m
}

// next gives the exchanges of a list in their order, and the last one for
// ever: what a page asks more often than it did is answered as it last was.
func (c *client) next(list []*entry) *entry {
	for _, en := range list {
		if !c.used[en] {
			c.used[en] = true
			return en
		}
	}
	return list[len(list)-1]
}

// nearest is the fuzzy stage. Of equally near exchanges the first that the
// client was not given yet wins.
func (p *Prepared) nearest(c *client, s *shape, h http.Header) match {
	t := podium{client: c}
	if n := p.near[nearKey(s)]; n != nil {
		n.find(&t, s, h)
	}
	if t.best.entry == nil {
		return match{stage: lab.StageMiss}
	}
	if t.best.score < threshold {
		return match{stage: lab.StageMiss, runnerUp: describe(t.best)}
	}
	c.used[t.best.entry] = true
	t.best.stage, t.best.differs = lab.StageFuzzy, differences(t.best.entry.shape, s)
	if t.second.entry != nil {
		t.best.runnerUp = describe(t.second)
	}
	return t.best
}

// podium keeps the two nearest of the exchanges that are offered in their order.
type podium struct {
	client       *client
	best, second match
}

func (t *podium) offer(en *entry, score float64) {
	switch {
	case t.better(score, en, t.best):
		t.second = t.best
		t.best = match{entry: en, score: score}
	case t.better(score, en, t.second):
		t.second = match{entry: en, score: score}
	}
}

func (t *podium) better(score float64, en *entry, than match) bool {
	return score > than.score || score == than.score && score > 0 && than.entry != nil && t.client.used[than.entry] && !t.client.used[en]
}

func describe(m match) string {
	return fmt.Sprintf("%s %s (%s, %.2f)", m.entry.Method, m.entry.URL, m.entry.ID, m.score)
}

// usable leaves the exchanges of a list that can answer a request with this
// header: ranges that fit, no 304 for who has nothing cached, no cut-off body
// where there is a whole one, the representation that Vary names.
func usable(list []*entry, h http.Header) []*entry {
	if len(list) == 1 && list[0].plain() && h.Get("Range") == "" {
		return list // the common case
	}
	conditional := h.Get("If-None-Match") != "" || h.Get("If-Modified-Since") != ""
	if r := h.Get("Range"); r != "" {
		if same := filter(list, func(en *entry) bool { return en.reqRange == r && en.Truncated == "" }); len(same) > 0 {
			return same
		}
		list = filter(list, func(en *entry) bool { return en.span == nil && en.Status != 206 || en.span.covers(r) })
	} else {
		whole := filter(list, func(en *entry) bool { return en.Status != 206 && en.Status != 416 })
		if len(whole) == 0 {
			whole = filter(list, func(en *entry) bool { return en.span.whole() })
		}
		list = whole
	}
	if fresh := filter(list, func(en *entry) bool { return en.Status != 304 }); len(fresh) > 0 || !conditional {
		list = fresh
	}
	list = prefer(list, func(en *entry) bool { return en.Truncated == "" })
	return prefer(list, func(en *entry) bool { return en.varies(h) })
}

// plain exchanges need none of usable's questions.
func (en *entry) plain() bool {
	return en.Status != 304 && en.Status != 206 && en.Status != 416
}

func filter(list []*entry, keep func(*entry) bool) []*entry {
	var out []*entry
	for _, en := range list {
		if keep(en) {
			out = append(out, en)
		}
	}
	return out
}

// prefer filters unless nothing would be left.
func prefer(list []*entry, keep func(*entry) bool) []*entry {
	if out := filter(list, keep); len(out) > 0 {
		return out
	}
	return list
}

// varies tells whether a request has the same values as the recorded one in
// the fields that Vary names.
func (en *entry) varies(h http.Header) bool {
	for _, name := range en.varyNames() {
		if en.Request.Get(name) != h.Get(name) {
			return false
		}
	}
	return true
}

// varyNames lists them, but for those that differ between browsers or loads
// without changing what is meant.
func (en *entry) varyNames() []string {
	var out []string
	for _, f := range en.Response.Header {
		if !strings.EqualFold(f.Name, "Vary") {
			continue
		}
		for _, name := range strings.Split(f.Value, ",") {
			switch name = strings.ToLower(strings.TrimSpace(name)); name {
			case "", "*", "accept-encoding", "user-agent", "cookie", "referer":
			default:
				out = append(out, name)
			}
		}
	}
	return out
}
