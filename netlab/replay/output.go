package replay

import (
	"context"
	"errors"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"eidetic/internal/lab"
	"eidetic/netlab/hop"
	"eidetic/netlab/message"
)

// output writes the response to one request and keeps its line of the log.
type output struct {
	w     http.ResponseWriter
	r     *http.Request
	conn  hop.Conn
	clock lab.Clock
	line  lab.Served
	// incomplete says that the device must see that the response ended early: the
	// handler panics with http.ErrAbortHandler once the request is logged.
	incomplete bool
}

// newOutput notes the arrival of a request.
func newOutput(w http.ResponseWriter, r *http.Request, clock lab.Clock) *output {
	o := &output{w: w, r: r, conn: hop.ConnOf(r.Context()), clock: clock}
	o.line = lab.Served{Time: clock(), Method: r.Method, URL: urlOf(r), Protocol: o.conn.Protocol}
	if o.conn.Client.IsValid() {
		o.line.Client = o.conn.Client.String()
	}
	return o
}

// header writes the status and fields, and nothing that net/http would add.
func (o *output) header(status int, reason string, fields []lab.HeaderField) {
	o.line.Status = status
	o.line.AsksPassword = status == http.StatusUnauthorized && opensDialogue(o.r.Header, fields)
	o.line.FirstByte = o.clock().Sub(o.line.Time)
	if w, ok := o.w.(hop.FieldWriter); ok {
		n := len(fields) // trailers come last
		for ; n > 0 && strings.HasPrefix(fields[n-1].Name, http.TrailerPrefix); n-- {
			f, h := fields[n-1], o.w.Header()
			h[f.Name] = append([]string{f.Value}, h[f.Name]...)
		}
		w.WriteFields(status, reason, fields[:n])
		return
	}
	h := o.w.Header()
	h["Date"], h["Content-Type"] = nil, nil
	for _, f := range fields {
		name := f.Name
		if !strings.HasPrefix(name, http.TrailerPrefix) {
			name = textproto.CanonicalMIMEHeaderKey(name)
		}
		h[name] = append(h[name], f.Value)
	}
	o.w.WriteHeader(status)
}

// opensDialogue tells whether a browser asks a person for a password when it gets a 401 with these fields: for the
// schemes that it can answer (RFC 7617, 7616, 4559), unless another site's page asked for a part of itself.
func opensDialogue(request http.Header, fields []lab.HeaderField) bool {
	if site, mode := request.Get("Sec-Fetch-Site"), request.Get("Sec-Fetch-Mode"); site == "cross-site" && mode != "navigate" {
		return false
	}
	return message.OpensDialogue(fields)
}

// interim writes a 1xx response.
func (o *output) interim(i lab.Interim) {
	if !o.r.ProtoAtLeast(1, 1) {
		return
	}
	if w, ok := o.w.(hop.FieldWriter); ok {
		w.WriteFields(i.Status, "", i.Header)
		return
	}
	h := o.w.Header()
	for _, f := range i.Header {
		h.Add(f.Name, f.Value)
	}
	o.w.WriteHeader(i.Status)
	clear(h)
}

func (o *output) body(b []byte) {
	if o.r.Method == http.MethodHead || len(b) == 0 {
		return
	}
	n, err := o.w.Write(b)
	o.line.Bytes += int64(n)
	if err != nil {
		o.aborted(err)
	}
}

// flush sends what was written.
func (o *output) flush() {
	if err := http.NewResponseController(o.w).Flush(); err != nil {
		o.aborted(err)
	}
}

// timed writes the parts of a body, each when it is due.
func (o *output) timed(b []byte, chunks []lab.Chunk) {
	if chunks[0].At > o.clock().Sub(o.line.Time) {
		o.flush()
	}
	for i, c := range chunks {
		if err := o.wait(c.At); err != nil {
			o.aborted(err)
			return
		}
		o.body(b[:c.Bytes])
		b = b[c.Bytes:]
		if o.line.Aborted {
			return
		}
		// The last part is sent together with the end of the message.
		if i < len(chunks)-1 && chunks[i+1].At > o.clock().Sub(o.line.Time) {
			o.flush()
		}
	}
}

// aborted notes that the device went away.
func (o *output) aborted(err error) {
	o.line.Aborted = true
	if !errors.Is(err, context.Canceled) {
		o.line.Error = err.Error()
	}
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// isHopByHop tells fields that belong to one connection, and Alt-Svc, which altSvc
// replaces by what this box serves.
func isHopByHop(name string) bool {
	switch textproto.CanonicalMIMEHeaderKey(name) {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding",
		"Upgrade", "Alt-Svc", "Http2-Settings":
		return true
	}
	return false
}

// isOfConnection tells the fields of a request that belong to one connection: those above, and those that its Connection
// field names (RFC 9110, 7.6.1), but for those that everybody along the way needs. Of an answer they are kept: a browser
// shows them to scripts.
func isOfConnection(request []lab.HeaderField) func(name string) bool {
	named := strings.ToLower(strings.Join((&message.Head{Fields: request}).Values("Connection"), ","))
	return func(name string) bool {
		if isHopByHop(name) || named == "" {
			return isHopByHop(name)
		}
		for one := range strings.SplitSeq(named, ",") {
			if strings.EqualFold(strings.Trim(one, " \t"), name) {
				return !isForAll(strings.ToLower(name))
			}
		}
		return false
	}
}

// isForAll tells fields of a request that Connection may not name: what frames a message, says what it is, of whom, or where.
func isForAll(name string) bool {
	return strings.HasPrefix(name, "content-") || strings.HasPrefix(name, "access-control-") || strings.HasPrefix(name, "sec-") ||
		slices.Contains([]string{"authorization", "cache-control", "cookie", "host", "origin"}, name)
}
