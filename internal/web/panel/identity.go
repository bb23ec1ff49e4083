package panel

import (
	"context"
	"net"
	"net/http"
	"strings"

	"eidetic/internal/box/credentials"
)

const (
	cookieName = "eidetic-session"
	// thisMachine is who uses a panel without a token, and the address of a request that
	// came over a Unix socket.
	thisMachine = "this machine"
)

// identityKey marks the credentials.Identity of a request that the guard let pass.
type identityKey struct{}

// identityOf is who makes a request that needs a token.
func identityOf(ctx context.Context) credentials.Identity {
	who, _ := ctx.Value(identityKey{}).(credentials.Identity)
	return who
}

// identify returns who makes a request. Wrong tokens delay the next one of the same address;
// a session is not delayed.
func (p *Panel) identify(r *http.Request) (credentials.Identity, *refusedRequest) {
	if p.Token.IsZero() {
		return credentials.Identity{Name: thisMachine, Scope: credentials.Admin}, nil
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		if wait := p.Credentials.Wait(from(r)); wait > 0 {
			return credentials.Identity{}, &refusedRequest{http.StatusTooManyRequests, tooManyWrong, wait}
		}
		if who, ok := p.Credentials.Token(token, from(r)); ok {
			return who, nil
		}
	} else if c, err := r.Cookie(cookieName); err == nil {
		if who, ok := p.Credentials.Session(c.Value); ok {
			return who, nil
		}
	}
	return credentials.Identity{}, &refusedRequest{status: http.StatusUnauthorized,
		detail: "this needs a token of the panel: Authorization: Bearer TOKEN"}
}

// tooManyWrong is the error text for an address that has to wait.
const tooManyWrong = "too many wrong tokens came from this address: wait, then send the right one"

// isStill says whether the one who makes a long request, such as an event stream, would
// still be let in.
func (p *Panel) isStill(ctx context.Context) bool {
	return p.Token.IsZero() || p.Credentials.Valid(identityOf(ctx))
}

// from is the address of a client.
func from(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || host == "" {
		return thisMachine
	}
	return host
}

// detailKey marks the *string of a request that says more than its path, for the log.
type detailKey struct{}

// note adds to the entry of a request in the audit log what its path does not say.
func note(ctx context.Context, detail string) {
	if to, ok := ctx.Value(detailKey{}).(*string); ok {
		*to = detail
	}
}

// record writes a request into the audit log.
func (p *Panel) record(r *http.Request, who credentials.Identity, status int) {
	what := r.Method + " " + r.URL.Path
	if deletesFiles(r.URL.Query()) && r.Method == http.MethodDelete {
		what += " with its files"
	}
	if detail, ok := r.Context().Value(detailKey{}).(*string); ok && *detail != "" {
		what += ": " + *detail
	}
	p.Credentials.Record(who, what, from(r), status)
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
