package archive

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// isSocketExchange tells an upgraded connection that is a WebSocket.
func isSocketExchange(e *lab.Exchange) bool {
	return e.Status == 101 &&
		(strings.EqualFold(e.Response.Get("Upgrade"), "websocket") || strings.EqualFold(e.Request.Get("Upgrade"), "websocket"))
}

// setSocket makes the entry that of a WebSocket, as Chrome writes it.
func (h *harEntry) setSocket(e *lab.Exchange, most int64) {
	if rest, ok := strings.CutPrefix(h.Request.URL, "http"); ok {
		h.Request.URL = "ws" + rest
	}
	h.Kind = "websocket"
	list, err := messagesOf(e, most)
	h.Messages = marshal(list)
	if err != nil {
		h.Comment = harLoose(fmt.Sprintf("messages after these %d are left out: %v", len(list), err))
	}
}

// messagesOf lists the complete messages of a WebSocket, with their times.
func messagesOf(e *lab.Exchange, most int64) ([]harMessage, error) {
	sides := map[bool]*frameReader{
		false: newFrameReader(e, "server_no_context_takeover", most),
		true:  newFrameReader(e, "client_no_context_takeover", most),
	}
	name := map[bool]string{false: "receive", true: "send"}
	out := []harMessage{}
	const mostMessages = 100_000 // frames of two bytes would take fifty times the bytes of the recording
	for _, p := range e.Socket {
		if len(out) > mostMessages {
			return out[:mostMessages], fmt.Errorf("there are more than %d", mostMessages)
		}
		err := sides[p.Device].feed(p.Data, func(opcode int, payload []byte) {
			if len(out) > mostMessages {
				return
			}
			m := harMessage{Type: name[p.Device], Time: harFloat(seconds(e.Wall.Add(p.At))), Opcode: harInt(opcode)}
			if opcode == opText {
				m.Data = strings.ToValidUTF8(string(payload), "\ufffd")
			} else {
				m.Data = base64.StdEncoding.EncodeToString(payload)
			}
			out = append(out, m)
		})
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// seconds is a time as Chrome writes it, to the microsecond.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// sameMessages tells that the entry's messages are those of e, so that nobody changed them.
func (h *harEntry) sameMessages(e *lab.Exchange) bool {
	var list []harMessage
	if json.Unmarshal(h.Messages, &list) != nil {
		return false
	}
	most := int64(0) // what the listed messages can need, so that a few bytes do not inflate to gigabytes
	for _, m := range list {
		most += int64(len(m.Data))
	}
	for _, p := range e.Socket {
		most += int64(len(p.Data))
	}
	own, _ := messagesOf(e, most)
	if h.Comment != "" { // messages were left out
		own = own[:min(len(own), len(list))]
	}
	return slices.Equal(list, own)
}

// asSocket makes e a WebSocket that is silent: the handshake of HTTP/1.1 without extensions.
func asSocket(e *lab.Exchange) {
	e.Method, e.Status, e.Reason, e.Protocol = "GET", 101, "Switching Protocols", "http/1.1"
	e.Response.Body, e.Chunks, e.Truncated, e.Socket, e.OriginClosed = nil, nil, "", nil, false
	fields := slices.DeleteFunc(e.Response.Header, func(f lab.HeaderField) bool {
		return strings.EqualFold(f.Name, "Sec-WebSocket-Extensions")
	})
	for _, want := range []lab.HeaderField{
		{Name: "Upgrade", Value: "websocket"}, {Name: "Connection", Value: "Upgrade"},
		{Name: "Sec-WebSocket-Accept", Value: "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="}, // a replay computes it anew
	} {
		if (&lab.Message{Header: fields}).Get(want.Name) == "" {
			fields = append(fields, want)
		}
	}
	e.Response.Header = fields
}

// socket makes e the WebSocket of the entry: the handshake of HTTP/1.1 without extensions, since
// messages in a HAR are not compressed, and the messages as frames at their times. It returns what
// is missing.
func (h *harEntry) socket(e *lab.Exchange) (notes []string) {
	asSocket(e)
	if isNull(h.Messages) {
		return []string{"a WebSocket without messages, which stays silent: Chrome saves them, Firefox does not"}
	}
	var list []harMessage
	if json.Unmarshal(h.Messages, &list) != nil && len(list) == 0 { // else an odd field was not used
		return []string{"a WebSocket whose messages have an unknown form, which stays silent"}
	}
	at := messageTimes(list, h.sentAt(e), e.FirstByte)
	if len(at) > 0 { // Chrome's wait is the time to the last message
		e.FirstByte = min(e.FirstByte, at[0])
	}
	for i, m := range list {
		data, err := m.payload()
		if err != nil {
			notes = append(notes, fmt.Sprintf("a message of a WebSocket left out: %v", err))
			continue
		}
		e.Socket = append(
			e.Socket,
			lab.SocketPiece{At: at[i], Device: m.Type == "send", Data: appendFrame(nil, int(m.Opcode), m.Type == "send", data)},
		)
	}
	return notes
}

// sentAt is when the request was sent, in seconds since 1970: after what the browser did before.
func (h *harEntry) sentAt(e *lab.Exchange) float64 {
	return seconds(e.Wall.Add(harMs(h.Timings.Blocked) + harMs(h.Timings.DNS) + harMs(h.Timings.Connect)))
}

// messageTimes are the arrivals of messages since the request was sent. Times that do not fit the
// request's date, as of a clock that does not count from 1970, are taken as times between messages,
// of which the first comes with the answer.
func messageTimes(list []harMessage, sent float64, firstByte time.Duration) []time.Duration {
	if len(list) == 0 {
		return nil
	}
	day := float64(maxTime) / 1e9
	base := sent
	for _, m := range list {
		if t := float64(m.Time); t < sent-1 || t > sent+day {
			base = float64(list[0].Time) - firstByte.Seconds()
		}
	}
	out, last := make([]time.Duration, len(list)), time.Duration(0)
	for i, m := range list {
		last = max(last, time.Duration(math.Round(min(max(float64(m.Time)-base, 0), day)*1e6))*time.Microsecond)
		out[i] = last
	}
	return out
}

// payload is what the message's frame carries.
func (m *harMessage) payload() ([]byte, error) {
	switch {
	case m.Type != "send" && m.Type != "receive":
		return nil, fmt.Errorf("it is of type %.20q, which is neither send nor receive", m.Type)
	case m.Opcode == opText:
		return []byte(m.Data), nil
	case m.Opcode != opBinary && (m.Opcode < opClose || m.Opcode > opPong):
		return nil, fmt.Errorf("its opcode is %d", m.Opcode)
	}
	b, err := base64.StdEncoding.DecodeString(m.Data)
	if err != nil {
		return nil, fmt.Errorf("its data, of opcode %d, is not base64", m.Opcode)
	}
	if m.Opcode >= opClose && (len(b) > maxControl || m.Opcode == opClose && len(b) == 1) {
		return nil, fmt.Errorf("%d bytes are impossible in a frame of opcode %d", len(b), m.Opcode)
	}
	return b, nil
}
