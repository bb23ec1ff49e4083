package wire

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

func TestParsePriority(t *testing.T) {
	for field, want := range map[string]priority{
		"":                   {3, false},
		"u=0":                {0, false},
		"u=7, i":             {7, true},
		"i,u=1":              {1, true},
		"u=5;x=1\t, i=?1":    {5, true},
		"i, i=?0":            {3, false},
		"u=8":                {3, false},
		"u=-1, u=\"2\", i=1": {3, false},
		"u=1, u=4":           {4, false}, // the last counts (RFC 8941, 3.2)
		"a, b=?1, u":         {3, false},
	} {
		if got := parsePriority(field); got != want {
			t.Errorf("%q: %v, want %v", field, got, want)
		}
	}
}

// order returns which streams' frames leave when each has n bytes to send.
func order(t *testing.T, congested bool, n int, fields ...string) string {
	t.Helper()
	c := newConn2(connection{s: &Server{}}, nil)
	c.sendRoom, c.schedule.congested = 1<<30, congested
	// They wake up in no particular order.
	for i := len(fields) - 1; i >= 0; i-- {
		s := &stream{c: c, id: uint32(2*i + 1), room: 1 << 20, pending: make([]byte, n), last: true}
		s.taken.L = &c.mu
		s.priority = c.schedule.priority(s.id, http.Header{"Priority": {fields[i]}})
		c.schedule.add(s)
	}
	var out []string
	for len(c.schedule.waiting) > 0 {
		c.out = c.out[:0]
		c.fill()
		fr := http2.NewFramer(nil, bytes.NewReader(c.out))
		for {
			f, err := fr.ReadFrame()
			if err != nil {
				break
			}
			word := fmt.Sprint(f.Header().StreamID)
			if f.(*http2.DataFrame).StreamEnded() {
				word += "."
			}
			out = append(out, word)
		}
	}
	return strings.Join(out, " ")
}

func TestOrderOfBodies(t *testing.T) {
	for name, c := range map[string]struct {
		congested bool
		n         int
		fields    []string
		want      string
	}{
		"one after the other":     {true, 20_000, []string{"", "", ""}, "1 1. 3 3. 5 5."},
		"the urgent first":        {true, 20_000, []string{"u=3", "u=5", "u=0"}, "5 5. 1 1. 3 3."},
		"in turn":                 {true, 8192, []string{"i", "i", "i"}, "1 3 5 1. 3. 5."},
		"in larger turns":         {false, 32768, []string{"i", "i"}, "1 3 1. 3."},
		"whole ones before parts": {true, 8192, []string{"i", "", "i", ""}, "3. 7. 1 5 1. 5."},
	} {
		if got := order(t, c.congested, c.n, c.fields...); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestNewcomersComeNext: what is small is not behind what was begun long ago.
func TestNewcomersComeNext(t *testing.T) {
	c := newConn2(connection{s: &Server{}}, nil)
	c.sendRoom, c.schedule.congested, c.schedule.batch = 1<<30, true, turnSize
	join := func(id uint32, n int) {
		s := &stream{c: c, id: id, room: 1 << 20, pending: make([]byte, n), last: true, priority: priority{3, true}}
		s.taken.L = &c.mu
		c.schedule.add(s)
	}
	join(1, 1<<20)
	for range 10 {
		c.out = c.out[:0]
		c.fill()
	}
	join(3, 100)
	c.out = c.out[:0]
	c.fill()
	f, err := http2.NewFramer(nil, bytes.NewReader(c.out)).ReadFrame()
	if err != nil || f.Header().StreamID != 3 {
		t.Errorf("the first frame is %v, %v; want one of stream 3", f, err)
	}
}

// TestBatchesGrow on a link that takes what it is given, and only there.
func TestBatchesGrow(t *testing.T) {
	q := &newConn2(connection{s: &Server{}}, nil).schedule
	for range 3 {
		q.learn(false)
	}
	if q.batch <= minBatch {
		t.Errorf("the batch is %d bytes on a fast link, want more than %d", q.batch, minBatch)
	}
	for range 10 {
		q.learn(false)
	}
	if q.batch > maxBuffered {
		t.Errorf("the batch is %d bytes, want at most %d", q.batch, maxBuffered)
	}
	if q.learn(true); q.batch != minBatch || !q.congested {
		t.Errorf("the batch is %d bytes on a full link, congested: %v; want %d, true", q.batch, q.congested, minBatch)
	}
}

// TestSlowLinksStaySlow: what slow start takes at once teaches nothing there.
func TestSlowLinksStaySlow(t *testing.T) {
	q := &newConn2(connection{s: &Server{}, drainer: slow{}}, nil).schedule
	for range 10 {
		q.learn(false)
	}
	if !q.congested || q.batch != minBatch {
		t.Errorf("the batch is %d bytes, congested: %v; want %d, true", q.batch, q.congested, minBatch)
	}
}

type slow struct{}

func (slow) Drained() (bool, error) { return false, nil }
func (slow) Slow() bool             { return true }

// TestPriorityUpdate (RFC 9218, 7.1): before a stream begins and while it runs.
func TestPriorityUpdate(t *testing.T) {
	s := newStand(t, "h2", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) })
	for name, c := range map[string]struct {
		stream  uint32
		payload string
		want    http2.ErrCode
	}{
		"good":                  {0, "\x00\x00\x00\x01u=1", http2.ErrCodeNo},
		"too short":             {0, "\x00\x00\x01", http2.ErrCodeFrameSize},
		"on a stream":           {1, "\x00\x00\x00\x01u=1", http2.ErrCodeProtocol},
		"of the connection":     {0, "\x00\x00\x00\x00u=1", http2.ErrCodeProtocol},
		"of a stream of ours":   {0, "\x00\x00\x00\x02u=1", http2.ErrCodeProtocol},
		"with nonsense in it":   {0, "\x00\x00\x00\x01\xff\x00=,;", http2.ErrCodeNo},
		"of a stream far ahead": {0, "\x7f\xff\xff\xffu=1", http2.ErrCodeNo},
	} {
		p := newPeer(t, s)
		p.must(p.WriteRawFrame(http2.FramePriorityUpdate, 0, c.stream, []byte(c.payload)))
		if c.want == http2.ErrCodeNo {
			p.get(1, true)
		}
		err := p.until(func(f http2.Frame) bool {
			switch f := f.(type) {
			case *http2.DataFrame:
				return c.want == http2.ErrCodeNo && f.StreamEnded()
			case *http2.GoAwayFrame:
				return f.ErrCode == c.want
			}
			return false
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEarlyPrioritiesAreBounded: a device cannot fill memory with streams that
// it never begins.
func TestEarlyPrioritiesAreBounded(t *testing.T) {
	c := newConn2(connection{s: &Server{}}, nil)
	for id := uint32(1); id < 4*maxStreams; id += 2 {
		var b bytes.Buffer
		_ = http2.NewFramer(&b, nil).WriteRawFrame(http2.FramePriorityUpdate, 0, 0, append([]byte{0, 0, byte(id >> 8), byte(id)}, "u=1"...))
		f, err := http2.NewFramer(nil, &b).ReadFrame()
		if err == nil {
			err = c.take(f)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.schedule.early); n != maxStreams {
		t.Errorf("%d priorities are kept, want %d", n, maxStreams)
	}
	if p := c.schedule.priority(1, nil); p.urgency != 1 {
		t.Errorf("the first stream has the priority %v, want urgency 1", p)
	}
}

// full is a connection that takes bytes when it is told to.
type full struct {
	drained chan struct{}
	asked   chan struct{}
}

func (f *full) Slow() bool { return false }

func (f *full) Drained() (bool, error) {
	f.asked <- struct{}{}
	<-f.drained
	return true, nil
}

// TestChosenLate: while a full link keeps a batch waiting, a more urgent answer
// overtakes what waited first.
func TestChosenLate(t *testing.T) {
	link := &full{make(chan struct{}), make(chan struct{}, 100)}
	wrote := &kept{}
	c := newConn2(connection{s: &Server{}, nc: wrote, drainer: link}, nil)
	c.sendRoom = 1 << 30
	body := func(id uint32, urgency uint8) *stream {
		s := &stream{c: c, id: id, room: 1 << 20, priority: priority{urgency: urgency}}
		s.taken.L = &c.mu
		return s
	}
	var both sync.WaitGroup
	send := func(s *stream) {
		both.Go(func() {
			if err := s.data(make([]byte, 100_000), true); err != nil {
				t.Error(err)
			}
		})
	}
	send(body(1, 5))
	<-link.asked
	send(body(3, 0))
	for deadline := time.Now().Add(patience); ; {
		c.mu.Lock()
		n := len(c.schedule.waiting)
		c.mu.Unlock()
		if n == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the second stream is not waiting at the deadline")
		}
	}
	close(link.drained)
	both.Wait()
	c.done.Wait()
	var ended []uint32
	for fr := http2.NewFramer(nil, &wrote.Buffer); ; {
		f, err := fr.ReadFrame()
		if err != nil {
			break
		}
		if f.(*http2.DataFrame).StreamEnded() {
			ended = append(ended, f.Header().StreamID)
		}
	}
	if !slices.Equal(ended, []uint32{3, 1}) {
		t.Errorf("the streams ended in the order %v, want [3 1]", ended)
	}
}

// kept is a connection that takes all at once.
type kept struct {
	net.Conn
	bytes.Buffer
}

func (k *kept) Write(b []byte) (int, error) { return k.Buffer.Write(b) }
func (k *kept) Read(b []byte) (int, error)  { return k.Buffer.Read(b) }
