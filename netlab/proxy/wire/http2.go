package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	maxStreams = 250     // of a device at once
	window     = 1 << 20 // bytes of request bodies that wait for their handlers, of a connection
	// maxUnread bounds the replies (to PING, SETTINGS, …) that wait for a device that does not read.
	maxUnread = 1 << 20
	frameSize = 16 << 10 // of what is read and, unless the device can take less, written
)

// conn2 is a connection of HTTP/2. One goroutine reads frames and starts another for each
// request. Headers are appended to a common buffer; bodies wait in order of priority (see
// schedule.go) for room in it. A goroutine that finds no other one sending sends what is
// in the buffer.
type conn2 struct {
	connection
	r       *bufio.Reader
	framer  *http2.Framer // reads
	touched bool          // since the timer last looked; under mu
	done    sync.WaitGroup

	mu      sync.Mutex // guards what follows
	idle    *sync.Cond // signals that no goroutine is sending
	streams map[uint32]*stream
	cut     map[uint32]struct{} // streams that were reset here before the device had ended them
	lastID  uint32
	running int // handlers, including those of reset streams
	leaving bool
	err     error // why nothing can be written any more

	out, spare []byte
	sending    bool
	ending     frameRef // the last frame of out that may still get END_STREAM
	schedule   schedule

	encoder   *hpack.Encoder
	block     bytes.Buffer
	sendRoom  int64 // window that the device gives the connection
	newRoom   int64 // and each new stream
	maxFrame  int
	received  int64 // bytes of bodies that wait, of all streams
	owed      int64 // bytes to be given back to the connection's window
	idleTimer *time.Timer
}

// frameRef says where in out a frame begins.
type frameRef struct {
	stream uint32
	at     int
}

func newConn2(c connection, r *bufio.Reader) *conn2 {
	c2 := &conn2{
		connection: c, r: r, streams: map[uint32]*stream{}, cut: map[uint32]struct{}{},
		sendRoom: 65535, newRoom: 65535, maxFrame: frameSize,
	}
	c2.idle = sync.NewCond(&c2.mu)
	c2.schedule.batch = minBatch
	if c.drainer != nil && c.drainer.Slow() {
		c2.schedule.slow, c2.schedule.congested = true, true
	}
	c2.encoder = hpack.NewEncoder(&c2.block)
	c2.framer = http2.NewFramer(nil, &continuations{r: c2.r})
	c2.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c2.framer.MaxHeaderListSize = uint32(c.s.MaxHeader)
	c2.framer.SetMaxReadFrameSize(frameSize)
	c2.framer.SetReuseFrames()
	return c2
}

func (c *conn2) serve() {
	defer c.done.Wait()
	err := c.open()
	if err == nil {
		c.idleTimer = time.AfterFunc(c.s.IdleTimeout, c.leaveIfIdle)
		err = c.read()
		c.idleTimer.Stop()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, http2.ErrFrameTooLarge) {
		err = http2.ConnectionError(http2.ErrCodeFrameSize)
	}
	if code := http2.ConnectionError(0); errors.As(err, &code) {
		c.s.Log.Debug("an HTTP/2 connection broke the protocol", "from", c.remote, "error", err, "detail", c.framer.ErrorDetail())
		c.goAway(http2.ErrCode(code))
		_ = c.nc.SetWriteDeadline(time.Now().Add(time.Second))
		c.pump()
		for c.sending {
			c.idle.Wait()
		}
		if c.err == nil {
			c.mu.Unlock()
			c.linger()
			c.mu.Lock()
		}
	}
	c.fail(errClosed)
}

var errClosed = errors.New("the connection is closed")

// fail ends all streams. The caller holds the lock.
func (c *conn2) fail(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	for _, s := range c.streams {
		s.abort(err)
	}
	_ = c.nc.SetDeadline(time.Unix(1, 0)) // who reads or writes comes back
}

// open exchanges prefaces (RFC 9113, 3.4).
func (c *conn2) open() error {
	_ = c.nc.SetReadDeadline(time.Now().Add(c.s.HeaderTimeout))
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.r, preface); err != nil {
		return err
	}
	if string(preface) != http2.ClientPreface {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.mu.Lock()
	c.appendSettings([]http2.Setting{
		{ID: http2.SettingMaxConcurrentStreams, Val: maxStreams},
		{ID: http2.SettingInitialWindowSize, Val: window},
		{ID: http2.SettingMaxHeaderListSize, Val: uint32(c.s.MaxHeader)},
		{ID: http2.SettingNoRFC7540Priorities, Val: 1},
	})
	c.appendUint32(http2.FrameWindowUpdate, 0, window-65535)
	c.pump()
	c.mu.Unlock()
	f, err := c.framer.ReadFrame()
	if err != nil {
		return err
	}
	settings, ok := f.(*http2.SettingsFrame)
	if !ok || settings.IsAck() {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	_ = c.nc.SetReadDeadline(time.Time{})
	return c.settings(settings)
}

// resetStuck ends the streams whose answers the device has given no window for since the last
// two looks: each holds a handler and a piece of its answer. The caller holds the lock.
func (c *conn2) resetStuck() {
	found := false
	for id, s := range c.streams {
		blocked := len(s.pending) > 0 && (s.room <= 0 || c.sendRoom <= 0)
		switch {
		case !blocked || s.stuckAt != s.turn:
			s.stuck = 0
		case s.stuck > 0:
			c.reset(id, http2.ErrCodeCancel)
			found = true
			continue
		}
		if blocked {
			s.stuck, s.stuckAt = s.stuck+1, s.turn
		}
	}
	if found {
		c.flushSoon()
	}
}

// leaveIfIdle closes an idle connection: one without streams, or whose streams all wait for
// more of their request.
func (c *conn2) leaveIfIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.resetStuck()
	waits := true
	for _, s := range c.streams {
		waits = waits && s.reading && !s.answered
	}
	if !c.touched && waits {
		c.goAway(http2.ErrCodeNo)
		_ = c.nc.SetWriteDeadline(time.Now().Add(time.Second))
		c.pump()
		c.fail(errClosed)
		return
	}
	c.touched = false
	c.idleTimer.Reset(c.s.IdleTimeout)
}

// read takes frames until the connection ends.
func (c *conn2) read() error {
	for {
		f, err := c.framer.ReadFrame()
		if bad := (http2.StreamError{}); errors.As(err, &bad) {
			c.mu.Lock()
			c.lastID = max(c.lastID, bad.StreamID)
			c.reset(bad.StreamID, bad.Code)
			c.flushSoon()
			c.mu.Unlock()
			continue
		}
		if err != nil {
			return err
		}
		if err := c.take(f); err != nil {
			return err
		}
		c.mu.Lock()
		c.touched = true
		full := len(c.out) > maxUnread
		ended := c.err != nil || c.leaving && len(c.streams) == 0
		if !c.wholeFrame() {
			c.flushSoon()
		}
		c.mu.Unlock()
		switch {
		case full:
			return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
		case ended:
			return errClosed
		}
	}
}

// wholeFrame tells whether the next frame can be read without waiting.
func (c *conn2) wholeFrame() bool {
	const header = 9
	if c.r.Buffered() < header {
		return false
	}
	b, _ := c.r.Peek(header) // it is there
	return c.r.Buffered() >= header+(int(b[0])<<16|int(b[1])<<8|int(b[2]))
}

// take acts on a frame. Frames of unknown kinds and of RFC 7540's priorities are skipped
// (RFC 9113, 5.3.2 and 5.5).
func (c *conn2) take(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return c.headers(f)
	case *http2.DataFrame:
		return c.data(f)
	case *http2.SettingsFrame:
		return c.settings(f)
	case *http2.WindowUpdateFrame:
		return c.windowUpdate(f)
	case *http2.RSTStreamFrame:
		c.mu.Lock()
		defer c.mu.Unlock()
		if f.StreamID > c.lastID {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		delete(c.cut, f.StreamID)
		if s := c.streams[f.StreamID]; s != nil {
			s.abort(errClosed)
			delete(c.streams, f.StreamID)
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			c.mu.Lock()
			c.appendFrame(http2.FramePing, http2.FlagPingAck, 0, f.Data[:])
			c.mu.Unlock()
		}
	case *http2.GoAwayFrame:
		c.mu.Lock()
		c.leaving = true
		c.mu.Unlock()
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case *http2.PriorityUpdateFrame:
		return c.priorityUpdate(f)
	}
	return nil
}

func (c *conn2) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return err
		}
		switch s.ID {
		case http2.SettingInitialWindowSize:
			grown := int64(s.Val) - c.newRoom
			c.newRoom = int64(s.Val)
			for _, st := range c.streams {
				if st.room += grown; st.room > math.MaxInt32 {
					return http2.ConnectionError(http2.ErrCodeFlowControl)
				}
			}
		case http2.SettingMaxFrameSize:
			c.maxFrame = min(frameSize, int(s.Val))
		case http2.SettingHeaderTableSize:
			c.encoder.SetMaxDynamicTableSizeLimit(min(s.Val, 64<<10))
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.appendFrame(http2.FrameSettings, http2.FlagSettingsAck, 0, nil)
	return nil
}

func (c *conn2) windowUpdate(f *http2.WindowUpdateFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.StreamID == 0 {
		if c.sendRoom += int64(f.Increment); c.sendRoom > math.MaxInt32 {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		return nil
	}
	if f.StreamID > c.lastID {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if s := c.streams[f.StreamID]; s != nil {
		if s.room += int64(f.Increment); s.room > math.MaxInt32 {
			c.reset(f.StreamID, http2.ErrCodeFlowControl)
		}
	}
	return nil
}

// data gives a piece of a request's body to its stream.
func (c *conn2) data(f *http2.DataFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.StreamID > c.lastID {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	size := int64(f.Length)
	if c.received+c.owed+size > window {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	s := c.streams[f.StreamID]
	if s == nil || s.ended || s.failed != nil {
		c.give(nil, size)
		if !c.wasCut(f.StreamID, f.StreamEnded()) && (s == nil || s.ended) {
			c.reset(f.StreamID, http2.ErrCodeStreamClosed)
		}
		return nil
	}
	c.received += int64(len(f.Data()))
	s.body.Write(f.Data())
	s.got += int64(len(f.Data()))
	if f.StreamEnded() {
		s.ended = true
	}
	c.give(s, size-int64(len(f.Data()))) // padding
	if s.declared >= 0 && (s.got > s.declared || s.ended && s.got < s.declared) {
		c.reset(f.StreamID, http2.ErrCodeProtocol)
	}
	s.arrived.Broadcast()
	return nil
}

// wasCut tells whether the device sent a frame for a stream before it could know that the
// stream was reset: such a frame is skipped (RFC 9113, 5.1). The caller holds the lock.
func (c *conn2) wasCut(id uint32, last bool) bool {
	_, ok := c.cut[id]
	if ok && last {
		delete(c.cut, id)
	}
	return ok
}

// give opens the flow-control windows again by the bytes that were taken off the buffers; s
// is nil when its stream is to get nothing more. The caller holds the lock.
func (c *conn2) give(s *stream, n int64) {
	const step = window / 4
	if c.owed += n; c.owed >= step {
		c.appendUint32(http2.FrameWindowUpdate, 0, uint32(c.owed))
		c.owed = 0
	}
	if s == nil || s.ended {
		return
	}
	if s.owed += n; s.owed >= step {
		c.appendUint32(http2.FrameWindowUpdate, s.id, uint32(s.owed))
		s.owed = 0
	}
}

// headers begins a request, or ends its body with trailers.
func (c *conn2) headers(f *http2.MetaHeadersFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := f.StreamID
	if s := c.streams[id]; s != nil {
		if s.ended {
			c.reset(id, http2.ErrCodeStreamClosed)
			return nil
		}
		if !f.StreamEnded() || f.PseudoValue("method") != "" {
			c.reset(id, http2.ErrCodeProtocol)
			return nil
		}
		for _, h := range f.RegularFields() {
			if s.trailer != nil {
				s.trailer.Add(h.Name, h.Value)
			}
		}
		s.ended = true
		if s.declared >= 0 && s.got < s.declared {
			c.reset(id, http2.ErrCodeProtocol)
		}
		s.arrived.Broadcast()
		return nil
	}
	if c.wasCut(id, f.StreamEnded()) {
		return nil
	}
	if id%2 == 0 || id <= c.lastID {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.lastID = id
	switch {
	case c.err != nil: // nothing would end the stream
		return c.err
	case c.leaving:
		return nil
	case c.running >= 2*maxStreams: // the device resets streams as fast as it opens them
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	case len(c.streams) >= maxStreams:
		c.reset(id, http2.ErrCodeRefusedStream)
		return nil
	}
	r, err := request(f)
	if err != nil {
		c.reset(id, http2.ErrCodeProtocol)
		return nil
	}
	r.RemoteAddr, r.TLS = c.remote, c.tls
	s := &stream{c: c, id: id, room: c.newRoom, declared: r.ContentLength, ended: f.StreamEnded(), trailer: r.Trailer}
	s.arrived.L, s.taken.L = &c.mu, &c.mu
	s.priority = c.schedule.priority(id, r.Header)
	s.ctx.Context = c.base
	s.w = response{p: s, head: r.Method == http.MethodHead, framed: true}
	if s.ended {
		r.Body = http.NoBody
		if r.ContentLength > 0 {
			c.reset(id, http2.ErrCodeProtocol)
			return nil
		}
		r.ContentLength = 0
	} else {
		r.Body = (*body2)(s)
	}
	s.expect = r.Header.Get("Expect") == "100-continue"
	c.streams[id] = s
	c.running++
	r, tooLarge := r.WithContext(&s.ctx), f.Truncated // the frame is used again
	c.done.Go(func() { s.handle(r, tooLarge) })
	return nil
}
