package match

import (
	"slices"
	"strconv"

	"eidetic/internal/lab"
)

// pollScore is the score of a poll that continues another than the recorded one.
const pollScore = 0.9

// pollChain returns those of the entries that are the polls of one chain that r continues, in
// the order of the recording; nil if there is no such chain. Each poll of a chain asks
// for what has come since the last: the requests differ in one parameter, a counter that grows.
// A chain is known by its end, a poll that was pending when the recording ended, or by
// three polls or more. Its counters may be others in a replay, where a server
// made them of a clock.
func pollChain(list []*Entry, r *Request) []*Entry {
	var chain []*Entry
	name, last, grows, pending := "", int64(-1), true, false
	for _, en := range list {
		differs, ok := differingCounter(en.request, r)
		if !ok || name != "" && differs != name {
			continue
		}
		name = differs
		value, _ := counterOf(en.request, name)
		grows = grows && value > last
		pending = pending || en.IsPending()
		last = value
		chain = append(chain, en)
	}
	if !grows || !pending && len(chain) < 3 {
		return nil
	}
	return chain
}

// differingCounter names the one parameter in which two requests differ, if its values are counters.
func differingCounter(a, b *Request) (name string, ok bool) {
	if a.kind != b.kind || a.sum != b.sum || !slices.Equal(a.path, b.path) {
		return "", false
	}
	before, after := lasting(a.queryByName), lasting(b.queryByName)
	if len(before) != len(after) {
		return "", false
	}
	for i, p := range before {
		q := after[i]
		if p.name != q.name || p.value != q.value && (name != "" || !isDigits(p.value) || !isDigits(q.value)) {
			return "", false
		}
		if p.value != q.value {
			name = p.name
		}
	}
	return name, name != ""
}

// lasting are the pairs without those of time and chance.
func lasting(list []pair) []pair {
	passes := func(p pair) bool { return p.isVolatile() || p.value == "" && isEpoch36(p.name) }
	if !slices.ContainsFunc(list, passes) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), passes)
}

// counterOf returns the value of a parameter that is a number.
func counterOf(r *Request, name string) (int64, bool) {
	i := slices.IndexFunc(r.queryByName, func(p pair) bool { return p.name == name })
	if i < 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(r.queryByName[i].value, 10, 64)
	return n, err == nil
}

// follow gives the next entry of a chain; after the last one it is given again: one that is
// pending stays so.
func (c *Client) follow(chain []*Entry, r *Request) Result {
	if len(chain) == 0 {
		return miss()
	}
	en := chain[len(chain)-1]
	for _, next := range chain {
		if !c.given[next] {
			en = next
			break
		}
	}
	c.given[en] = true
	return Result{Entry: en, Stage: lab.StageFuzzy, Score: pollScore, Differs: differences(en.request, r),
		Why: "the next poll of a chain of polls gets the next recorded answer"}
}
