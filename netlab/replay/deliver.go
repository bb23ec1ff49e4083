package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"net/http"

	"eidetic/internal/lab"
	"eidetic/netlab/inject"
)

// delivery sends one fetched answer to the device, with the script in it if
// it is a document.
type delivery struct {
	f      *fetch
	rc     *http.ResponseController
	plan   *inject.Plan // nil to send as it is
	stream *inject.Stream
	held   []byte // fetched while the stream has sent nothing yet
	begun  bool
	dead   bool // nothing more goes to the device
	sum    hash.Hash
}

func newDelivery(f *fetch, r *http.Request) *delivery {
	d := &delivery{f: f, rc: http.NewResponseController(f.out.w), sum: sha256.New()}
	d.plan = f.c.script.Plan(r.Method, f.e.URL, messageOf(r), f.e.Status, f.e.Response.Header)
	if d.plan != nil {
		var err error
		if d.stream, err = d.plan.NewStream(); err != nil {
			d.plan = nil
		}
	}
	if d.plan == nil {
		d.begin(f.e.Response.Header)
		d.flush()
	}
	return d
}

// begin writes the header.
func (d *delivery) begin(fields []lab.HeaderField) {
	d.begun = true
	kept := make([]lab.HeaderField, 0, len(fields)+1)
	if f, ok := altSvc(fields, d.f.e.URL, ConnFrom(d.f.out.r.Context()).QUIC); ok {
		kept = append(kept, f)
	}
	for _, field := range fields {
		if !hopByHop(field.Name) {
			kept = append(kept, field)
		}
	}
	d.f.out.reason = d.f.e.Reason
	d.f.out.header(d.f.e.Status, kept)
}

func (d *delivery) flush() {
	if err := d.rc.Flush(); err != nil {
		d.lost(err)
	}
}

func (d *delivery) lost(err error) {
	d.dead = true
	d.f.out.aborted(err)
}

// piece sends what can be sent of a piece of the body.
func (d *delivery) piece(b []byte) {
	if d.dead {
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
		d.giveUp(err)
		return
	}
	if d.changed(out) {
		d.flush()
	}
}

// changed writes output of the stream.
func (d *delivery) changed(out []byte) bool {
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
	return !d.dead
}

// giveUp: a body that cannot be changed goes as it is, if nothing went yet.
func (d *delivery) giveUp(err error) {
	_, _ = d.stream.Finish()
	d.stream = nil
	d.f.out.line.Error = err.Error()
	if d.begun {
		d.dead, d.f.abort = true, true
		return
	}
	d.begin(d.f.e.Response.Header)
	d.write(d.held)
	d.held = nil
	d.flush()
}

func (d *delivery) write(b []byte) {
	if d.dead || len(b) == 0 || d.f.out.r.Method == http.MethodHead {
		return
	}
	n, err := d.f.out.w.Write(b)
	d.f.out.line.Bytes += int64(n)
	d.sum.Write(b[:n])
	if err != nil {
		d.lost(err)
	}
}

// finish ends the answer; one that is not whole is cut off for the device as
// it was for us.
func (d *delivery) finish(whole bool) {
	if d.stream != nil {
		out, err := d.stream.Finish()
		switch {
		case err != nil && whole && !d.dead:
			d.giveUp(err)
		case err == nil && !d.dead:
			d.changed(out)
		}
	}
	if !d.begun && !d.dead {
		d.begin(d.f.e.Response.Header)
	}
	if !d.dead {
		for _, t := range d.f.e.Response.Trailer {
			d.f.out.w.Header().Add(http.TrailerPrefix+t.Name, t.Value)
		}
	}
	d.f.out.line.BodySHA256 = hex.EncodeToString(d.sum.Sum(nil))
	d.f.abort = d.f.abort || !whole && !d.dead
}
