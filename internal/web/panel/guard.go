package panel

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/base/slots"
	"eidetic/internal/box/credentials"
	"eidetic/internal/lab"
)

const (
	// pagePolicy allows only what the panel's own pages need.
	pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
	// reportPolicy allows what a report needs. Its scripts are inline; the report itself
	// names their digests in a second, stricter policy. A report may not connect to
	// anything, so it cannot use its reader's session.
	reportPolicy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self'; media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	// filePolicy allows no scripts in any other artifact.
	filePolicy = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"
)

// strangerLimit is how long a client without the token may take to send a body.
const strangerLimit = 10 * time.Second

// guard checks requests before the router sees them.
func (p *Panel) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		who, refused := p.check(cross, r)
		if r.ContentLength != 0 && (refused != nil || isPublic(r)) {
			// Even an answer that refuses a request waits for its body, so the body of a
			// client without a token has a deadline. Without a body there must be no
			// deadline: it would end the request, such as an event stream. An error means
			// that the listener has no deadlines, and must bound the time itself.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(strangerLimit))
		}
		if refused != nil {
			refused.answer(w, r)
			return
		}
		if isPublic(r) {
			next.ServeHTTP(w, r)
			return
		}
		slots.Admit(r.Context(), who.Name)
		r = r.WithContext(slots.WithHolder(context.WithValue(r.Context(), identityKey{}, who), who.Name))
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), detailKey{}, new(string)))
		noted := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(noted, r)
		if r.URL.Path != "/api/v1/plan" || noted.status >= http.StatusBadRequest { // a plan that is checked while it is written changes nothing
			p.record(r, who, noted.status)
		}
	})
}

// asPost is a request as one that changes something.
func asPost(r *http.Request) *http.Request {
	post := *r
	post.Method = http.MethodPost
	return &post
}

// refusedRequest is a request that the router does not see.
type refusedRequest struct {
	status int
	detail string
	wait   time.Duration // how long to wait before the next request; 0 if that does not help
}

// answer writes the refusal. A browser without a session that opens a report is sent to the
// page that asks for the token.
func (n *refusedRequest) answer(w http.ResponseWriter, r *http.Request) {
	if n.status == http.StatusUnauthorized {
		if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/runs/") && strings.Contains(r.Header.Get("Accept"), "text/html") {
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="eidetic"`)
	}
	if n.wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(n.wait.Seconds()))))
	}
	problem(w, n.status, n.detail)
}

// check returns who makes a request, or why it is refused. A public path has no identity.
func (p *Panel) check(cross *http.CrossOriginProtection, r *http.Request) (who credentials.Identity, refused *refusedRequest) {
	switch {
	case !p.isKnownHost(r.Host):
		return who, &refusedRequest{status: http.StatusMisdirectedRequest,
			detail: "the panel is not called " + clip(r.Host) + "; call it by its address, or name it in the configuration (panel.hosts)"}
	case p.Token.IsZero() && !isLocal(r):
		return who, &refusedRequest{status: http.StatusForbidden,
			detail: "without a token the panel answers on this machine only; start it with a token"}
	case cross.Check(r) != nil:
		return who, &refusedRequest{status: http.StatusForbidden, detail: "a page of another origin may not change anything here"}
	case r.Header.Get("Upgrade") != "" && cross.Check(asPost(r)) != nil: // a WebSocket, which any page may open and read
		return who, &refusedRequest{status: http.StatusForbidden, detail: "a page of another origin may not look at anything here"}
	case isPublic(r), p.isNowhere(r):
		return who, nil
	}
	who, refused = p.identify(r)
	if refused != nil {
		return who, refused
	}
	if need := needs(r.Method, r.URL.Path, r.URL.Query()); !who.Scope.Allows(need) {
		p.record(r, who, http.StatusForbidden)
		return who, &refusedRequest{status: http.StatusForbidden,
			detail: fmt.Sprintf("the token %s has the scope %s, and this needs the scope %s: use another token", clip(who.Name), who.Scope, need)}
	}
	return who, nil
}

// isPublic lists what needs no token: what is equal for every appliance of this version, the
// health, and the way to get and to end a session.
func isPublic(r *http.Request) bool {
	if _, ok := pages[r.URL.Path]; ok {
		return true
	}
	switch r.URL.Path {
	case "/api/v1/health", "/openapi.json", "/openapi.yaml", "/openapi-3.0.json", "/openapi-3.0.yaml":
		return true
	case "/api/v1/session":
		return r.Method == http.MethodPost || r.Method == http.MethodDelete
	}
	return strings.HasPrefix(r.URL.Path, "/assets/") || r.URL.Path == "/help" || strings.HasPrefix(r.URL.Path, "/help/")
}

// isNowhere says whether a person's browser asks for a page that no panel of this version has. That is no secret.
func (p *Panel) isNowhere(r *http.Request) bool {
	if !wantsPage(r) || strings.HasPrefix(r.URL.Path, "/runs/") {
		return false
	}
	found := p.router.NewContext(r, nil)
	p.router.Router().Find(r.Method, r.URL.Path, found)
	return found.Path() == ""
}

// isKnownHost says whether the Host header names this panel. It prevents DNS rebinding: a
// page of an attacker's domain that resolves to our address sends that domain's name, and
// cannot send our address.
func (p *Panel) isKnownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return true
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	for _, h := range p.Hosts {
		if strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}

// isLocal says whether the request came to a loopback address or a Unix socket.
func isLocal(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && Loopback(addr)
}

// Loopback says whether an address can be reached only from this machine.
func Loopback(addr net.Addr) bool {
	switch a := addr.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}

// problem writes RFC 9457 problem details.
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	// An error here means that the client has disconnected.
	_ = json.NewEncoder(w).Encode(&huma.ErrorModel{Status: status, Title: http.StatusText(status), Detail: detail})
}

// clip shortens a client's text for use in a message.
func clip(s string) string { return `"` + lab.Clip(s, 100) + `"` }
