package lab

import (
	"net/netip"
	"time"
)

// HeaderField is one header field as sent. A list of them keeps order, case and
// repetition, which http.Header does not.
type HeaderField struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Message is a request or a response. Its body keeps the content encoding; the transfer
// encoding is removed.
type Message struct {
	Header  []HeaderField
	Body    []byte
	Trailer []HeaderField
}

// Get returns the value of the first field with the name, ignoring case, or "".
func (m *Message) Get(name string) string {
	for _, f := range m.Header {
		if equalFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 0; i < len(a); i++ {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// Chunk is a piece of a response body as it arrived.
type Chunk struct {
	// At is the arrival of the piece's last byte, since the request was sent.
	At time.Duration `json:"at_ns"`
	// Bytes is the length of the piece.
	Bytes int `json:"bytes"`
}

// Sent is a piece of a request's body.
type Sent struct {
	// At is the arrival of the piece's last byte, since the request's header was sent on.
	At time.Duration
	// Bytes is the length of the piece; 0 is the end of the body.
	Bytes int
	// Heard is how many bytes of the answer's body had come by then; -1 if the answer had not begun.
	Heard int
}

// SocketPiece is raw frames that one side of an upgraded connection (a WebSocket) sent
// at once.
type SocketPiece struct {
	// At is the arrival, since the request was sent.
	At time.Duration
	// Device is set if the device sent the piece; otherwise the origin did.
	Device bool
	Data   []byte
}

// Interim is a response that came before the final one, such as 103 Early Hints.
type Interim struct {
	// At is the arrival, since the request was sent.
	At     time.Duration
	Status int // 102 to 199
	Header []HeaderField
}

// Exchange is one recorded request and its response.
type Exchange struct {
	// ID is the WARC-Record-ID of the response, without angle brackets.
	ID string
	// Order counts the requests of a recording from 0, by the time they were sent.
	Order int
	// Wall is when the request was sent, for freshness calculations and for people.
	Wall time.Time
	// Start is the same instant since the start of the recording.
	Start time.Duration

	Method string
	URL    string // absolute, as the device asked for it, without a fragment
	// Protocol is that of the origin: "http/1.0", "http/1.1", "h2" or "h3".
	Protocol string
	// TLS is "tls/1.2", "tls/1.3", or "" for plain HTTP.
	TLS string
	// Server is the origin's real address and port, not the synthetic one.
	Server netip.AddrPort

	Request  Message
	Status   int
	Reason   string
	Response Message

	// Interim holds the 1xx responses, in order.
	Interim []Interim
	// FirstByte is the time from request to response header.
	FirstByte time.Duration
	// Chunks holds the body's pieces in order; their lengths add up to len(Response.Body). A last one of length 0 is when
	// the origin cut the body off.
	Chunks []Chunk
	// Sent holds the pieces of the request's body, in order, if the answer began before the body had ended: a call in
	// which both sides talk. Their lengths add up to len(Request.Body).
	Sent []Sent
	// Socket holds what followed a 101 response, in order. A piece of the origin without data is when it ended the
	// connection.
	Socket []SocketPiece
	// Truncated says why the body is incomplete: "disconnect", "length", or "time" if it
	// was still being sent when the recording ended. It is "" for a complete body.
	Truncated string
	// OriginClosed is set if the origin closed an upgraded connection.
	OriginClosed bool
}

// IsPending says whether the response had not begun when the recording ended, as of a
// long poll. A pending exchange has no Status.
func (e *Exchange) IsPending() bool { return e.Status == 0 && !e.IsFailed() }

// Disconnected is Truncated of what ended with its connection.
const Disconnected = "disconnect"

// IsFailed says whether the origin refused the connection, or broke it before its response began. A failed exchange has
// no Status; FirstByte is when that was known.
func (e *Exchange) IsFailed() bool { return e.Status == 0 && e.Truncated == Disconnected }

// IsOpen says whether the exchange was still going on when the recording ended: it is
// pending, an event stream, or a body of which more may have come.
func (e *Exchange) IsOpen() bool {
	return e.IsPending() || e.Truncated == "time" && (IsStream(e.Response.Get("Content-Type")) || e.mayGoOn())
}

// mayGoOn tells a body without a stated length that a script or a player reads as it comes: it may have no end.
func (e *Exchange) mayGoOn() bool {
	switch e.Request.Get("Sec-Fetch-Dest") {
	case "empty", "audio", "video":
		return e.Response.Get("Content-Length") == ""
	}
	return false
}

// IsStream says whether bodies of a content type end only with their connection.
func IsStream(contentType string) bool {
	for _, kind := range []string{"text/event-stream", "multipart/x-mixed-replace"} {
		if len(contentType) >= len(kind) && equalFold(contentType[:len(kind)], kind) {
			return true
		}
	}
	return false
}
