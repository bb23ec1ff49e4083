package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"
	"net/http"
	"sync"

	"eidetic/internal/lab"
	"eidetic/netlab/replay/match"
)

// talk answers a call in which both sides talk: a stream of gRPC, whose body may end only after the device has heard the
// answer. ok is false for a request whose body can be read to its end first.
func (s *Session) talk(o *output) (out outcome, ok bool) {
	if !isUpload(o.r) || !match.IsCall(o.r.Header) {
		return out, false
	}
	from, device := o.r.Body, s.device(o.conn.Client)
	said, buf := []byte(nil), make([]byte, 32<<10)
	for {
		found, en, state := s.findTalk(device, o, said)
		switch state {
		case match.TalkFound:
			return outcome{Result: found, filled: en.filled, stream: func(o *output) { s.replayTalk(o, en, said) }}, true
		case match.TalkUnknown, match.TalkMissed:
			if s.live != nil {
				o.r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(said), from))
				live := func(o *output) { s.live.ServeHTTP(o.w, o.r) }
				return outcome{Result: match.Result{Stage: lab.StageLive}, stream: live}, true
			}
			if o.r.Body = io.NopCloser(bytes.NewReader(said)); state == match.TalkUnknown {
				return out, false // nobody waits for the rest
			}
			return outcome{Result: found, answer: page(http.StatusNotFound, "This call is not in the archive.\n")}, true
		case match.TalkWhole:
			o.r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(said), from))
			return out, false
		}
		n, err := from.Read(buf)
		if said = append(said, buf[:n]...); err == io.EOF {
			o.r.Body = io.NopCloser(bytes.NewReader(said))
			return out, false
		}
		if err != nil {
			return refusal(err, "The request's body could not be read.\n"), true
		}
	}
}

// findTalk finds the call that a device has begun by saying so much.
func (s *Session) findTalk(device string, o *output, said []byte) (match.Result, *entry, match.Talk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	policy := s.o.Match
	if policy == match.Loose && s.live != nil { // nothing is guessed where the origin can be asked
		policy = match.Normal
	}
	c := s.client(device)
	found, state := s.p.index.Talk(policy, c, o.line.Method, o.line.URL, said)
	if s.filled == nil || state == match.TalkFound || state == match.TalkWaits {
		return found, s.p.entries[found.Entry], state
	}
	s.o.Fill.prepareInto(s.filled)
	found, state = s.filled.index.Talk(policy, c, o.line.Method, o.line.URL, said)
	return found, s.filled.entries[found.Entry], state
}

// replayTalk plays the origin's side of a call. What came after the device's n-th message comes after its n-th message
// now, and as much later as in the recording.
func (s *Session) replayTalk(o *output, en *entry, said []byte) {
	ctx, cancel := context.WithCancel(o.r.Context())
	defer cancel()
	a, pieces := s.answer(o, en), woven(en.Exchange)
	heard := &listener{received: newMessages(pieces, &callCounter{}), clock: s.o.Clock, sum: sha256.New()}
	if len(said) > 0 {
		heard.hear(said)
	}
	go heard.listen(o.r.Body) // ends with the request: nothing else ends a read
	to := &caller{o: o, a: a}
	_, whole := s.playPieces(ctx, o, pieces, &callCounter{}, to, heard.received)
	o.line.RequestSHA256 = heard.sha256()
	switch {
	case !whole:
	case en.Truncated == "time":
		s.rest(func() { <-ctx.Done() })
		o.line.Aborted = true
	case en.Truncated != "":
		o.incomplete, o.line.Why = true, cutWhy
	default:
		o.line.BodySHA256 = a.sum
		if want := match.BodySum(en.Request.Body); o.line.RequestSHA256 != want {
			o.line.Differs = append(o.line.Differs, "body: the device said something else after the call had begun")
		}
	}
}

// woven lists what both sides of a call said, in its order. The header of the answer is a piece without bytes.
func woven(e *lab.Exchange) (out []lab.SocketPiece) {
	said, heard, chunks := e.Request.Body, e.Response.Body, e.Chunks
	begun, at, used := false, 0, 0 // used are the bytes of the first of chunks that are in out
	hear := func(to int) {
		if !begun {
			out, begun = append(out, lab.SocketPiece{At: e.FirstByte}), true
		}
		for at < to && len(chunks) > 0 {
			n := min(chunks[0].Bytes-used, to-at)
			if n > 0 {
				out = append(out, lab.SocketPiece{At: chunks[0].At, Data: heard[at : at+n]})
			}
			if at, used = at+n, used+n; used == chunks[0].Bytes {
				chunks, used = chunks[1:], 0
			}
		}
	}
	for _, p := range e.Sent {
		if p.Heard >= 0 {
			hear(p.Heard)
		}
		out = append(out, lab.SocketPiece{At: p.At, Device: true, Data: said[:p.Bytes]})
		said = said[p.Bytes:]
	}
	hear(len(heard))
	return out
}

// callCounter counts the messages of a call (gRPC over HTTP/2, "Length-Prefixed-Message"), which come in pieces of any size.
// A piece without bytes is the end of the body, and counts as a message, since the other side may answer it.
type callCounter struct {
	head []byte // of the message whose length is not complete yet
	skip uint32 // bytes of the current message that are still to come
}

func (c *callCounter) feed(b []byte) (ended int) {
	if len(b) == 0 {
		return 1
	}
	const headSize = 5 // flags and length
	for len(b) > 0 {
		if c.skip == 0 {
			n := min(headSize-len(c.head), len(b))
			if c.head, b = append(c.head, b[:n]...), b[n:]; len(c.head) < headSize {
				break
			}
			if c.skip, c.head = binary.BigEndian.Uint32(c.head[1:]), c.head[:0]; c.skip == 0 {
				ended++
			}
			continue
		}
		n := int(min(int64(c.skip), int64(len(b))))
		if c.skip, b = c.skip-uint32(n), b[n:]; c.skip == 0 {
			ended++
		}
	}
	return ended
}

// listener hears what a device says.
type listener struct {
	received *messages
	clock    lab.Clock
	count    callCounter

	mu   sync.Mutex
	sum  hash.Hash
	some bool
}

func (l *listener) hear(b []byte) {
	l.received.add(l.count.feed(b), l.clock())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.some = l.some || len(b) > 0
	l.sum.Write(b)
}

func (l *listener) listen(body io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			l.hear(buf[:n])
		}
		if err == io.EOF {
			l.hear(nil)
		}
		if err != nil {
			return
		}
	}
}

// sha256 is that of what was heard so far, as match.BodySum writes it.
func (l *listener) sha256() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.some {
		return ""
	}
	return hex.EncodeToString(l.sum.Sum(nil))
}

// caller writes the answer to a call; what is written first comes behind its header.
type caller struct {
	o     *output
	a     answer
	begun bool
}

func (c *caller) Write(b []byte) (n int, err error) {
	if !c.begun {
		c.begun = true
		c.o.header(c.a.status, c.a.reason, c.a.fields)
	}
	if len(b) > 0 {
		if n, err = c.o.w.Write(b); err != nil {
			return n, err
		}
	}
	return n, http.NewResponseController(c.o.w).Flush()
}
