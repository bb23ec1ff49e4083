package replay

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/replay/match"
)

// upload is a request's body that goes on to the origin as it comes: a page, or a call of gRPC, may end it only after it
// has heard what became of its beginning.
type upload struct {
	from  io.Reader
	clock lab.Clock
	take  func(memory int64, kept int) bool

	mu     sync.Mutex
	text   []byte
	pieces []sentPiece // until the answer has ended
	heard  int         // bytes of the answer's body; -1 until it has begun
	isOver bool        // no more pieces are noted
}

// sentPiece is a lab.Sent with the time at which it came.
type sentPiece struct {
	at           lab.Time
	bytes, heard int
}

// isUpload tells a body that a script makes as it goes (Fetch, duplex: half), which is of no length that is known. Over
// HTTP/1.1 browsers send none.
func isUpload(r *http.Request) bool {
	return r.ProtoMajor >= 2 && r.ContentLength < 0 && r.Body != nil && r.Body != http.NoBody &&
		r.Method != http.MethodGet && r.Method != http.MethodHead
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.text)+n > maxRequestBody {
		return 0, fmt.Errorf("the request's body has more than %d MiB", maxRequestBody>>20)
	}
	u.text = append(u.text, p[:n]...)
	if n > 0 {
		u.note(n)
	}
	if err == io.EOF {
		u.note(0)
	}
	return n, err
}

// note notes a piece, or the end of the body; the caller holds the lock. What comes within [together], while nothing is
// heard, is one piece.
func (u *upload) note(n int) {
	if u.isOver {
		return
	}
	at := u.clock()
	if i := len(u.pieces) - 1; i >= 0 && n > 0 && u.pieces[i].heard == u.heard && at.Sub(u.pieces[i].at) < together {
		u.pieces[i].bytes += n
		return
	}
	if u.isOver = !u.take(chunkCost, 24); !u.isOver {
		u.pieces = append(u.pieces, sentPiece{at, n, u.heard})
	}
}

// hear notes that the answer has begun, or that bytes of its body have come. There may be no upload.
func (u *upload) hear(n int) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.heard = max(0, u.heard) + n
}

// end notes that the answer has ended: nothing that comes now has been waited for. There may be no upload.
func (u *upload) end() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.isOver = true
}

// keepUpload notes what was sent of an upload and, if the origin began to answer before it had ended, when.
func (f *fetch) keepUpload() {
	u := f.upload
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	f.e.Request.Body, f.e.Sent = u.text[:len(u.text):len(u.text)], nil
	if match.IsCall(&f.e.Request) && slices.ContainsFunc(u.pieces, func(p sentPiece) bool { return p.heard >= 0 }) {
		f.e.Request.Body, f.e.Sent = f.sent(u)
	}
	f.out.line.RequestSHA256 = match.BodySum(f.e.Request.Body)
}

// sent is the body in the pieces that were noted; the caller holds the upload's lock.
func (f *fetch) sent(u *upload) (body []byte, pieces []lab.Sent) {
	n, last := 0, time.Duration(0)
	for _, p := range u.pieces {
		last = max(last, p.at.Sub(f.sentAt))
		pieces = append(pieces, lab.Sent{At: last, Bytes: p.bytes, Heard: min(p.heard, len(f.e.Response.Body))})
		n += p.bytes
	}
	return u.text[:n:n], pieces
}
