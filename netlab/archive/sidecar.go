package archive

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"eidetic/internal/lab"
)

// The content types of our metadata records.
const (
	typeExchange = "application/vnd.eidetic.exchange+json"
	typeDNS      = "application/vnd.eidetic.dns+json"
	typePage     = "application/vnd.eidetic.page+json"
)

// sidecar is the metadata that a WARC record has no field for, as JSON in a metadata record that is
// concurrent to the response. docs/formats/archive.md specifies it.
type sidecar struct {
	Version   int    `json:"v"` // 1
	Order     int    `json:"order"`
	Wall      string `json:"wall"` // RFC 3339 with nanoseconds
	Start     int64  `json:"start_ns"`
	Protocol  string `json:"protocol"`
	TLS       string `json:"tls,omitempty"`
	Server    string `json:"server,omitempty"` // address and port
	FirstByte int64  `json:"first_byte_ns"`
	// Chunks are pairs: arrival since the request in ns, bytes.
	Chunks [][2]int64 `json:"chunks,omitempty"`
	// Sent are triples of a call in which both sides talk: arrival of a piece of the request's body in ns, its bytes (0: the
	// end), bytes of the answer that had come by then (-1: it had not begun).
	Sent [][3]int64 `json:"sent,omitempty"`
	// Socket is the traffic after a 101: arrival in ns, sender, raw frames.
	Socket []socketPiece `json:"socket,omitempty"`
	// OriginClosed is about an upgraded connection; Pending is an exchange that has no response record,
	// because the recording ended first or, with Failed, because the origin refused or broke the connection.
	OriginClosed    bool              `json:"origin_closed,omitempty"`
	Pending         bool              `json:"pending,omitempty"`
	Failed          bool              `json:"failed,omitempty"`
	Interim         []interim         `json:"interim,omitempty"` // 1xx responses
	HostAdded       bool              `json:"host_added,omitempty"`
	RequestTrailer  []lab.HeaderField `json:"request_trailer,omitempty"`
	ResponseTrailer []lab.HeaderField `json:"response_trailer,omitempty"`
}

// interim is a lab.Interim.
type interim struct {
	At     int64             `json:"at_ns"`
	Status int               `json:"status"`
	Header []lab.HeaderField `json:"header,omitempty"`
}

// socketPiece is a lab.SocketPiece; Data is base64 in JSON.
type socketPiece struct {
	At     int64  `json:"at_ns"`
	Device bool   `json:"device,omitempty"`
	Data   []byte `json:"data"`
}

func newSidecar(e *lab.Exchange, hostAdded bool) *sidecar {
	s := &sidecar{
		Version: 1, Order: e.Order, Wall: e.Wall.UTC().Format(time.RFC3339Nano), Start: int64(e.Start),
		Protocol: e.Protocol, TLS: e.TLS, FirstByte: int64(e.FirstByte), HostAdded: hostAdded,
		RequestTrailer: e.Request.Trailer, ResponseTrailer: e.Response.Trailer,
		OriginClosed: e.OriginClosed, Pending: e.Status == 0, Failed: e.IsFailed(),
	}
	if e.Server.IsValid() {
		s.Server = e.Server.String()
	}
	for _, c := range e.Chunks {
		s.Chunks = append(s.Chunks, [2]int64{int64(c.At), int64(c.Bytes)})
	}
	for _, p := range e.Sent {
		s.Sent = append(s.Sent, [3]int64{int64(p.At), int64(p.Bytes), int64(p.Heard)})
	}
	for _, i := range e.Interim {
		s.Interim = append(s.Interim, interim{int64(i.At), i.Status, i.Header})
	}
	for _, p := range e.Socket {
		s.Socket = append(s.Socket, socketPiece{int64(p.At), p.Device, p.Data})
	}
	return s
}

// maxTime bounds the times in a file: a day.
const maxTime = int64(24 * time.Hour)

// apply copies the sidecar into e, whose body is already there.
func (s *sidecar) apply(e *lab.Exchange) error {
	if s.Version != 1 {
		return fmt.Errorf("version %d of the exchange's metadata is unknown (this program reads version 1)", s.Version)
	}
	if s.Order < 0 || s.Start < 0 || s.FirstByte < 0 || s.FirstByte > maxTime {
		return fmt.Errorf("negative or impossible order or time")
	}
	sum, last := int64(0), int64(0)
	for _, c := range s.Chunks {
		if c[0] < last || c[0] > maxTime || c[1] < 0 {
			return fmt.Errorf("chunk times go backwards, or are impossible")
		}
		last = c[0]
		sum += c[1]
		if sum > int64(len(e.Response.Body)) {
			break
		}
	}
	e.Order, e.Start, e.FirstByte = s.Order, time.Duration(s.Start), time.Duration(s.FirstByte)
	e.Protocol, e.TLS, e.OriginClosed = s.Protocol, s.TLS, s.OriginClosed
	e.Request.Trailer, e.Response.Trailer = s.RequestTrailer, s.ResponseTrailer
	if s.Failed && e.Status == 0 {
		e.Truncated = lab.Disconnected
	}
	if s.Server != "" {
		var err error
		if e.Server, err = netip.ParseAddrPort(s.Server); err != nil {
			return fmt.Errorf("server address: %w", err)
		}
	}
	if wall, err := time.Parse(time.RFC3339Nano, s.Wall); err == nil {
		e.Wall = wall
	}
	if s.HostAdded && len(e.Request.Header) > 0 {
		e.Request.Header = e.Request.Header[1:]
	}
	if sum != int64(len(e.Response.Body)) {
		return fmt.Errorf("chunks have %d bytes, the body has %d", sum, len(e.Response.Body))
	}
	if err := s.applySent(e); err != nil {
		return err
	}
	last = 0
	e.Interim = nil
	for _, i := range s.Interim {
		if i.At < last || i.At > maxTime || i.Status < 102 || i.Status > 199 {
			return fmt.Errorf("an interim response of status %d at %d ns is impossible", i.Status, i.At)
		}
		last = i.At
		e.Interim = append(e.Interim, lab.Interim{At: time.Duration(i.At), Status: i.Status, Header: i.Header})
	}
	last = 0
	e.Socket = nil
	for _, p := range s.Socket {
		if p.At < last || p.At > maxTime {
			return fmt.Errorf("times of the socket's pieces go backwards, or are impossible")
		}
		last = p.At
		e.Socket = append(e.Socket, lab.SocketPiece{At: time.Duration(p.At), Device: p.Device, Data: p.Data})
	}
	e.Chunks = nil
	for _, c := range s.Chunks {
		e.Chunks = append(e.Chunks, lab.Chunk{At: time.Duration(c[0]), Bytes: int(c[1])})
	}
	return nil
}

// applySent copies Sent. A body that somebody has edited since lies in no pieces.
func (s *sidecar) applySent(e *lab.Exchange) error {
	e.Sent = nil
	at, heard, sum := int64(0), int64(-1), int64(0)
	for _, p := range s.Sent {
		if p[0] < at || p[0] > maxTime || p[1] < 0 || p[2] < heard || p[2] > int64(len(e.Response.Body)) {
			return fmt.Errorf("times or lengths of the request's pieces go backwards, or are impossible")
		}
		at, heard = p[0], p[2]
		if sum += p[1]; sum > int64(len(e.Request.Body)) {
			break
		}
	}
	if sum != int64(len(e.Request.Body)) {
		return nil
	}
	for _, p := range s.Sent {
		e.Sent = append(e.Sent, lab.Sent{At: time.Duration(p[0]), Bytes: int(p[1]), Heard: int(p[2])})
	}
	return nil
}

// marshal cannot fail for the types of this package, which hold strings and numbers only.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("archive: %T does not marshal: %v", v, err))
	}
	return b
}
