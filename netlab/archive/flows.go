package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// Flows, as mitmproxy saves them: one dictionary after the other, each a netString with the messages as they were on the
// wire but for their transfer coding.

// openFlows reads the flows of mitmproxy.
func (a *Archive) openFlows(file *io.SectionReader, l Limits) error {
	hi := newHARImport(a, l)
	hi.foreign, a.options.Software = true, "mitmproxy"
	in := bufio.NewReader(file)
	for {
		flow, size, err := readFlow(in, l)
		if err == io.EOF {
			break
		}
		switch {
		case errors.Is(err, errLimit):
			return fmt.Errorf("flow %d: %w", hi.entries+1, err)
		case err != nil && hi.entries == 0:
			return fmt.Errorf("%w: %w, though it begins as flows of mitmproxy do", errUnknown, err)
		case err != nil:
			a.lose("the file is cut off or damaged after %d whole flows (%v), which are used", hi.entries, err)
		}
		if err != nil {
			break
		}
		if hi.entries++; hi.entries > l.Exchanges {
			return fmt.Errorf("more than %d flows: %w", l.Exchanges, errLimit)
		}
		err = hi.flow(flow)
		if l.budget.give(size); err != nil {
			return err
		}
	}
	hi.finish()
	if a.notes = hi.notes.lines(); len(a.exchanges) == 0 {
		a.found = fmt.Sprintf("a file of mitmproxy of which all %d flows are left out: %s", hi.entries, strings.Join(a.notes, "; "))
	}
	return nil
}

// readFlow reads the next flow into memory, of size bytes.
func readFlow(in *bufio.Reader, l Limits) (flow netString, size int64, err error) {
	head, err := in.Peek(longestSize + 1) // there may be less
	if len(head) == 0 {
		return flow, 0, err
	}
	colon := bytes.IndexByte(head, ':')
	if colon < 0 {
		return flow, 0, errNetString
	}
	n, err := sizeOf(head[:colon])
	if err != nil {
		return flow, 0, err
	}
	if most := 2 * l.block(); n > most {
		return flow, 0, fmt.Errorf("%d bytes are more than %d: %w", n, most, errLimit)
	}
	size = n + 1
	if err := l.budget.take(size); err != nil {
		l.budget.give(size)
		return flow, 0, err
	}
	_, _ = in.Discard(colon + 1) // they are there
	block, err := readBlock(in, size)
	if err != nil {
		l.budget.give(size)
		return flow, 0, unexpected(err)
	}
	if block[n] != '}' {
		l.budget.give(size)
		return flow, 0, errNetString
	}
	return netString{'}', block[:n]}, size, nil
}

// flow takes a flow, or notes why it is left out. An error ends the reading.
func (hi *harImport) flow(v netString) error {
	place := fmt.Sprint("flow ", hi.entries)
	pieces := hi.limits.budget.child()
	defer pieces.drop()
	e, notes, err := exchangeOf(v, pieces)
	if errors.Is(err, errLimit) {
		return fmt.Errorf("%s: %w", place, err)
	}
	if err != nil {
		what := ""
		if e != nil {
			what = e.URL
		}
		hi.notes.add(place, what, fmt.Sprintf("left out: %v", err))
		if !errors.Is(err, errNothing) {
			hi.a.lost++
		}
		return nil
	}
	pieces.drop() // they are part of the cost
	if err := hi.limits.budget.take(costOf(e)); err != nil {
		return err
	}
	e.Request.Body, e.Response.Body = bytes.Clone(e.Request.Body), bytes.Clone(e.Response.Body) // the flow is not kept
	for _, n := range notes {
		hi.notes.add(place, e.URL, n)
	}
	settleBody(e, &hi.notes)
	hi.keep(hi.entries, e.Wall.String(), "", e)
	return nil
}

// exchangeOf makes an exchange of a flow, whose pieces of a WebSocket the budget counts. One that is left out has its
// address, if that is known.
func exchangeOf(v netString, pieces *budget) (e *lab.Exchange, notes []string, err error) {
	flow, err := v.fields()
	if err != nil {
		return nil, nil, err
	}
	if kind := flow["type"].string(); kind != "http" {
		return nil, nil, fmt.Errorf("%wit is not HTTP but %.20q", errNothing, kind)
	}
	var request, response, server, failure map[string]netString
	for name, of := range map[string]*map[string]netString{
		"request": &request, "response": &response, "server_conn": &server, "error": &failure,
	} {
		if *of, err = flow[name].fields(); err != nil {
			return nil, nil, err
		}
	}
	e = &lab.Exchange{Method: request["method"].string(), Wall: unixTime(request["timestamp_start"].number())}
	if e.Request.Header, err = request["headers"].header(); err != nil {
		return nil, nil, err
	}
	scheme := request["scheme"].string()
	host := cmp.Or(e.Request.Get("Host"), request["authority"].string())
	if host == "" {
		host = net.JoinHostPort(request["host"].string(), fmt.Sprint(int(request["port"].number())))
	}
	u := lab.ParseURL(scheme + "://" + host + request["path"].string())
	e.URL = u.Sent()
	switch {
	case e.Method == "CONNECT":
		return e, nil, fmt.Errorf("%wa request for a tunnel through the proxy", errNothing)
	case e.Method == "" || !u.IsWeb():
		return e, nil, errors.New("it has no method, or no address of http or https with a host")
	case flow["response"].isNull() && !isOfServer(failure["msg"].string()):
		return e, nil, fmt.Errorf("%wit has no answer (%.80s)", errNothing, cmp.Or(oneLine(failure["msg"].string()), "the recording ended"))
	}
	e.URL, e.Request.Body = browserURL(e.URL), nonEmpty(request["content"].text)
	since := func(v netString) time.Duration { return sinceThen(e.Wall, unixTime(v.number())) }
	if flow["response"].isNull() {
		e.Truncated, e.FirstByte = lab.Disconnected, since(failure["timestamp"])
		return e, []string{fmt.Sprintf("failed (%.80s), and so in replays", oneLine(failure["msg"].string()))}, nil
	}
	if e.Status = int(response["status_code"].number()); e.Status < 100 || e.Status > 999 {
		return e, nil, fmt.Errorf("its status is %d", e.Status)
	}
	e.Reason = oneLine(response["reason"].string())
	e.Protocol = harProtocol(response["http_version"].string(), request["http_version"].string())
	e.Server = serverOf(server)
	if scheme == "https" {
		if e.TLS = strings.ToLower(strings.Replace(server["tls_version"].string(), "v", "/", 1)); !strings.HasPrefix(e.TLS, "tls/") {
			e.TLS = "tls/1.3"
		}
	}
	if e.Response.Header, err = response["headers"].header(); err != nil {
		return e, nil, err
	}
	for of, m := range map[*lab.Message]map[string]netString{&e.Request: request, &e.Response: response} {
		of.Header = withoutTransferCoding(of.Header)
		if of.Trailer, err = m["trailers"].header(); err != nil {
			return e, nil, err
		}
	}
	e.FirstByte = since(response["timestamp_start"])
	if isSocketExchange(e) {
		return e, nil, flowSocket(e, flow["websocket"], since, pieces)
	}
	if e.Response.Body = nonEmpty(response["content"].text); response["content"].isNull() {
		e.Response.Body = nil
		if e.Method != "HEAD" && e.Status != 204 && e.Status != 304 {
			e.Truncated = "unspecified"
			notes = append(notes, "without its body, which mitmproxy passed on and did not keep (stream_large_bodies), and which is taken as cut off")
		}
	}
	if n := len(e.Response.Body); n > 0 {
		e.Chunks = []lab.Chunk{{At: max(e.FirstByte, since(response["timestamp_end"])), Bytes: n}}
	}
	return e, notes, nil
}

// isOfServer tells an error that the origin made, in mitmproxy's words for it: the device and whoever uses mitmproxy end
// a request, too.
func isOfServer(message string) bool {
	lower := strings.ToLower(message)
	return message != "" && !strings.Contains(lower, "client") && !strings.Contains(lower, "killed")
}

// unixTime is a time in seconds since 1970, the zero time for 0.
func unixTime(seconds float64) time.Time {
	if seconds <= 0 || seconds > 1e11 {
		return time.Time{}
	}
	whole, part := math.Modf(seconds)
	return sane(time.Unix(int64(whole), int64(part*1e6)*1e3)) // a float64 has no more than microseconds
}

// sinceThen is how long after the begin of an exchange something was, 0 where that is not known.
func sinceThen(begin, at time.Time) time.Duration {
	if begin.IsZero() || at.IsZero() {
		return 0
	}
	return min(max(at.Sub(begin), 0), time.Duration(maxTime))
}

// serverOf is the origin's address.
func serverOf(server map[string]netString) netip.AddrPort {
	for _, name := range []string{"peername", "ip_address", "address"} {
		pair := server[name].items(2)
		if len(pair) != 2 {
			continue
		}
		if ip, err := netip.ParseAddr(pair[0].string()); err == nil {
			return netip.AddrPortFrom(ip.Unmap(), uint16(pair[1].number()))
		}
	}
	return netip.AddrPort{}
}

// flowSocket makes e the WebSocket whose messages a flow has: lists of the opcode, whether the device sent it, the
// content without compression, and the time.
func flowSocket(e *lab.Exchange, v netString, since func(netString) time.Duration, pieces *budget) error {
	asSocket(e)
	socket, err := v.fields()
	if err != nil {
		return err
	}
	last := e.FirstByte
	add := func(at time.Duration, isDevice bool, opcode int, content []byte) error {
		if err := pieces.take(elementCost + int64(len(content))); err != nil {
			return err
		}
		last = max(last, at)
		e.Socket = append(e.Socket, lab.SocketPiece{At: last, Device: isDevice, Data: appendFrame(nil, opcode, isDevice, content)})
		return nil
	}
	err = socket["messages"].each(func(one netString) error {
		m := one.items(4)
		if len(m) < 4 {
			return errNetString
		}
		if opcode := int(m[0].number()); opcode == opText || opcode == opBinary {
			return add(since(m[3]), m[1].isTrue(), opcode, m[2].text)
		}
		return nil
	})
	if code := socket["close_code"]; err == nil && !code.isNull() {
		e.OriginClosed = !socket["closed_by_client"].isTrue()
		content := binary.BigEndian.AppendUint16(nil, uint16(code.number()))
		reason := socket["close_reason"].string()
		content = append(content, reason[:min(len(reason), maxControl-len(content))]...)
		err = add(since(socket["timestamp_end"]), !e.OriginClosed, opClose, content)
	}
	return err
}
