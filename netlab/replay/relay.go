package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/hop"
	"eidetic/netlab/inject"
)

// relay sends a response to the device as it comes, and records it.
func (f *fetch) relay(resp *http.Response) {
	for name := range resp.Trailer { // announced, so that the body's last byte does not end the answer
		f.out.w.Header()[http.TrailerPrefix+name] = nil
	}
	if w, ok := f.out.w.(hop.OpenEnded); ok && resp.ProtoMajor > 1 {
		w.LeaveOpen()
	}
	d := f.newDelivery()
	next, stop := f.pieces(resp.Body)
	defer stop()
	var readErr error
	var got int64
	var last []byte // of a body whose end the device sees by its length, held back until it is archived
	for readErr == nil {
		var p piece
		if p, readErr = next(); len(p.data) > 0 {
			at := max(f.e.FirstByte, p.at.Sub(f.sentAt))
			if last != nil { // it was not the last: the stated length is wrong
				d.piece(last)
				last = nil
			}
			if got += int64(len(p.data)); f.c.added != nil && got == resp.ContentLength {
				last = slices.Clone(p.data)
			} else {
				d.piece(p.data)
			}
			f.record(p.data, at)
		}
	}
	f.upload.end()
	if readErr == io.EOF && got != resp.ContentLength && f.gaveUp() != nil {
		readErr = context.Canceled
	}
	if readErr != io.EOF {
		f.e.Truncated = lab.Disconnected
		if errors.Is(readErr, context.Canceled) {
			f.e.Truncated = "time"
		} else {
			f.out.line.Error = "the origin cut the body off: " + readErr.Error()
			f.record(nil, max(f.e.FirstByte, f.c.o.Clock().Sub(f.sentAt))) // when it did
		}
	}
	for name, values := range resp.Trailer {
		for _, v := range values {
			f.e.Response.Trailer = append(f.e.Response.Trailer, lab.HeaderField{Name: name, Value: v})
		}
	}
	f.complete = true
	if last != nil {
		f.archive()
		d.piece(last)
	}
	d.finish(readErr == io.EOF)
}

// together is how near in time pieces are that are kept as one.
const together = 500 * time.Microsecond

// record appends a piece to the recorded body. One without bytes is the time at which the body was cut off.
func (f *fetch) record(piece []byte, at time.Duration) {
	e := f.e
	if e.Truncated == "length" {
		return
	}
	if int64(len(e.Response.Body)+len(piece)) > f.c.o.MaxBody {
		e.Truncated = "length"
		return
	}
	last := len(e.Chunks) - 1
	isOne := last >= 0 && at-e.Chunks[last].At < together
	cost := byteCost * int64(len(piece))
	if !isOne {
		cost += chunkCost
	}
	if !f.take(cost, len(piece)) {
		e.Truncated = "length"
		return
	}
	e.Response.Body = append(e.Response.Body, piece...)
	if isOne {
		e.Chunks[last].Bytes += len(piece)
		return
	}
	e.Chunks = append(e.Chunks, lab.Chunk{At: at, Bytes: len(piece)})
}

// delivery sends the body of one fetched response to the device, with the script in
// it if it is a document.
type delivery struct {
	f      *fetch
	out    *output
	plan   *inject.Plan   // nil to send the body as it is
	stream *inject.Stream // nil likewise
	held   []byte         // what was fetched before the stream had any output
	begun  bool           // the header was sent
	gone   bool           // nothing more is sent to the device
	sum    hash.Hash
}

func (f *fetch) newDelivery() *delivery {
	d := &delivery{f: f, out: f.out, sum: sha256.New()}
	d.plan = f.c.script.Plan(f.out.r.Method, f.e.URL, messageOf(f.out.r), f.e.Status, f.e.Response.Header)
	if d.plan != nil {
		var err error
		if d.stream, err = d.plan.NewStream(); err != nil {
			d.plan = nil
		}
	}
	switch {
	case d.plan == nil && f.isUnchanged():
		d.beginNotModified()
	case d.plan == nil:
		d.begin(f.e.Response.Header)
		d.flush()
	}
	return d
}

// beginNotModified sends a 304, as the origin would have, and as a replay does. A document is sent again, with the
// script.
func (d *delivery) beginNotModified() {
	a := answer{fields: slices.Clone(d.f.e.Response.Header)}
	a.becomeNotModified()
	d.begun = true
	d.out.header(a.status, "", a.fields)
	d.flush()
	d.gone = true
}

// begin sends the header.
func (d *delivery) begin(fields []lab.HeaderField) {
	d.begun = true
	kept := make([]lab.HeaderField, 0, len(fields)+1)
	if f, ok := altSvc(fields, d.f.e.URL, d.out.conn.QUIC); ok {
		kept = append(kept, f)
	}
	for _, field := range fields {
		if !isHopByHop(field.Name) {
			kept = append(kept, field)
		}
	}
	d.out.header(d.f.e.Status, reasonOf(d.f.e), kept)
}

func (d *delivery) flush() {
	if err := http.NewResponseController(d.out.w).Flush(); err != nil {
		d.lost(err)
	}
}

// lost notes that the device went away.
func (d *delivery) lost(err error) {
	d.gone = true
	d.out.aborted(err)
}

// piece sends what can be sent of a piece of the body.
func (d *delivery) piece(b []byte) {
	if d.gone {
		return
	}
	if d.stream == nil {
		d.write(b)
		d.flush()
		return
	}
	if !d.begun {
		d.held = append(d.held, b...)
	}
	out, err := d.stream.Feed(b)
	if err != nil {
		d.sendUnchanged(err)
		return
	}
	if d.sendChanged(out) {
		d.flush()
	}
}

// sendChanged writes output of the stream, and tells whether there was any.
func (d *delivery) sendChanged(out []byte) bool {
	if len(out) == 0 {
		return false
	}
	if !d.begun {
		if d.stream.Unchanged() { // no document after all: as it is from here on
			_, _ = d.stream.Finish()
			d.stream, out = nil, d.held
			d.begin(d.f.e.Response.Header)
		} else {
			d.begin(d.plan.Header(d.f.e.Response.Header, d.stream.Charset()))
		}
		d.held = nil
	}
	d.write(out)
	return !d.gone
}

// sendUnchanged gives up changing the body because of an error. The body is sent as it
// is, unless a changed part of it was sent already: then the answer stays incomplete.
func (d *delivery) sendUnchanged(err error) {
	_, _ = d.stream.Finish()
	d.stream = nil
	d.out.line.Error = fmt.Sprintf("the body is not what its Content-Encoding says: %v", err)
	if d.begun {
		d.gone, d.out.incomplete = true, true
		return
	}
	d.begin(d.f.e.Response.Header)
	d.write(d.held)
	d.held = nil
	d.flush()
}

func (d *delivery) write(b []byte) {
	if d.gone || len(b) == 0 || d.out.r.Method == http.MethodHead {
		return
	}
	n, err := d.out.w.Write(b)
	d.out.line.Bytes += int64(n)
	d.sum.Write(b[:n])
	if err != nil {
		d.lost(err)
	}
}

// finish ends the answer. An incomplete one is cut off for the device as it was for
// the recorder.
func (d *delivery) finish(complete bool) {
	if d.stream != nil {
		out, err := d.stream.Finish()
		switch {
		case err != nil && complete && !d.gone:
			d.sendUnchanged(err)
		case err == nil && !d.gone:
			d.sendChanged(out)
		}
	}
	if !d.begun && !d.gone {
		d.begin(d.f.e.Response.Header)
	}
	if !d.gone {
		for _, t := range d.f.e.Response.Trailer {
			d.out.w.Header().Add(http.TrailerPrefix+t.Name, t.Value)
		}
	}
	d.out.line.BodySHA256 = hex.EncodeToString(d.sum.Sum(nil))
	d.out.incomplete = d.out.incomplete || !complete && !d.gone
}
