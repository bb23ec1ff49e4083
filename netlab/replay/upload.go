package replay

import (
	"fmt"
	"io"
	"net/http"
	"sync"

	"eidetic/netlab/replay/match"
)

// upload is a request's body that goes on to the origin as it comes: a page, or a call of gRPC, may end it only after it
// has heard what became of its beginning.
type upload struct {
	from io.Reader
	mu   sync.Mutex
	text []byte
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
	return n, err
}

// sent is what the origin was sent so far.
func (u *upload) sent() []byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.text[:len(u.text):len(u.text)]
}

// keepUpload notes what was sent of an upload.
func (f *fetch) keepUpload() {
	if f.upload != nil {
		f.e.Request.Body = f.upload.sent()
		f.out.line.RequestSHA256 = match.BodySum(f.e.Request.Body)
	}
}
