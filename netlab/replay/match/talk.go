package match

import (
	"bytes"
	"strings"

	"eidetic/internal/lab"
)

// calls are what was recorded of a method of gRPC.
type calls struct {
	talks []*Entry // whose answers began before their bodies had ended
	whole bool     // there are others
}

// Talk says what is known of a call whose body is still coming.
type Talk int

// What may be known.
const (
	TalkUnknown Talk = iota // nothing of its path was recorded
	TalkWhole               // the answer comes after the whole body
	TalkWaits               // the device may still say how a recorded call begins
	TalkFound
	TalkMissed // it begins otherwise than all that were recorded
)

func (x *Index) addCall(en *Entry) {
	if !IsCall(&en.Request) {
		return
	}
	key := string(appendExactKey(nil, en.Method, en.URL, ""))
	c := x.calls[key]
	if c == nil {
		c = &calls{}
		x.calls[key] = c
	}
	if len(en.Sent) == 0 {
		c.whole = true
		return
	}
	c.talks = append(c.talks, en)
}

// Talk finds a call in which both sides talk, by so much of its body as the device has said: all that it had said in the
// recording when the answer began. What it says later is not known yet.
func (x *Index) Talk(p Policy, c *Client, method, url string, said []byte) (Result, Talk) {
	recorded := x.calls[string(appendExactKey(nil, method, url, ""))]
	if recorded == nil {
		if path := NewRequest(method, url, &lab.Message{}, nil).pathKey(); len(x.paths[path]) > 0 {
			return miss(), TalkWhole // an import may not say what is a call
		}
		return miss(), TalkUnknown
	}
	begun := filter(recorded.talks, func(en *Entry) bool { return bytes.HasPrefix(said, en.opening) })
	waits := filter(recorded.talks, func(en *Entry) bool { return bytes.HasPrefix(en.opening, said) })
	m := miss()
	switch {
	case len(begun) > 0:
		m.Entry, _ = c.next(begun)
		if m.Stage, m.Score = lab.StageExact, 1; len(begun) > 1 {
			m.Stage = lab.StageSequence
		}
	case len(waits) > 0:
		return m, TalkWaits
	case recorded.whole:
		return m, TalkWhole
	case p == Loose:
		m.Entry, _ = c.next(recorded.talks)
		m.Stage, m.Score = lab.StageFuzzy, Threshold
		m.Why = "the call begins otherwise than those recorded; the next of them, by their order"
	default:
		m.RunnerUp, m.Why = recorded.talks[0].describe(0), "the call begins otherwise than those recorded"
		return m, TalkMissed
	}
	return m, TalkFound
}

// IsCall tells a body of messages that come one by one, each behind its length: of gRPC over HTTP/2, and of Connect.
func IsCall(h Header) bool {
	kind, _, _ := strings.Cut(strings.ToLower(h.Get("Content-Type")), ";")
	kind, _, _ = strings.Cut(strings.TrimSpace(kind), "+")
	return kind == "application/grpc" || kind == "application/connect"
}
