package hop

import (
	"context"
	"net/http"

	"eidetic/internal/lab"
)

// NoReason stands for the reason of a status line that has none.
const NoReason = " "

// FieldWriter is an http.ResponseWriter that keeps the order and case of fields;
// that of package wire does.
type FieldWriter interface {
	// WriteFields is WriteHeader with these fields instead of Header()'s. Fields
	// of the connection (Transfer-Encoding) are the server's and not to be given;
	// trailers stay in Header() under http.TrailerPrefix. An empty reason means
	// the status's own, NoReason none.
	WriteFields(status int, reason string, fields []lab.HeaderField)
}

// OpenEnded is an http.ResponseWriter whose protocol ends a body by itself (HTTP/2), so that one of another length than
// stated can be sent, as browsers take it; that of package wire is.
type OpenEnded interface {
	// LeaveOpen says that the stated length may be wrong: the body ends with the handler.
	LeaveOpen()
}

// FieldsKey is the context key of a request's header as it was received. A server
// that knows it stores a FieldSource there.
type FieldsKey struct{}

// FieldSource returns the fields of a request's header in the order and case in
// which they were received; ok is false when they are not known.
type FieldSource interface {
	Fields() (fields []lab.HeaderField, ok bool)
}

// Fields returns the header of a request as it was received. ok is false on
// HTTP/2 and HTTP/3, and for a header that was too long to be remembered. The
// request's handler must call it before it reads the body.
func Fields(ctx context.Context) (fields []lab.HeaderField, ok bool) {
	source, ok := ctx.Value(FieldsKey{}).(FieldSource)
	if !ok {
		return nil, false
	}
	return source.Fields()
}

// SameFields tells whether fields of a message are those that net/http parsed
// into h, so that either may stand for the other.
func SameFields(fields []lab.HeaderField, h http.Header) bool {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	for _, f := range fields {
		values := h[http.CanonicalHeaderKey(f.Name)]
		for i, v := range values {
			if v == f.Value {
				n--
				break
			}
			if i == len(values)-1 {
				return false
			}
		}
	}
	return n <= 0
}

type headersKey struct{}

// Headers travel with a request to an origin and bring back the answer's.
type Headers struct {
	Request  []lab.HeaderField // the order and case to send
	Response []lab.HeaderField // as received, set by the transport; nil when that is not known
}

// WithHeaders returns a context that carries h.
func WithHeaders(ctx context.Context, h *Headers) context.Context {
	return context.WithValue(ctx, headersKey{}, h)
}

// HeadersOf returns the Headers that ctx carries, or nil.
func HeadersOf(ctx context.Context) *Headers {
	h, _ := ctx.Value(headersKey{}).(*Headers)
	return h
}
