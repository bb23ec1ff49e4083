package panel

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

const (
	cookieName = "eidetic-session"
	// pagePolicy allows only what the panel's own pages need.
	pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
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
		if r.ContentLength != 0 && (isPublic(r.URL.Path) || !p.authorised(r)) {
			// Even an answer that refuses a request waits for its body, so the body of a
			// client without the token has a deadline. Without a body there must be no
			// deadline: it would end the request, such as an event stream. An error means
			// that the listener has no deadlines, and must bound the time itself.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(strangerLimit))
		}
		switch {
		case !p.isKnownHost(r.Host):
			problem(
				w,
				http.StatusMisdirectedRequest,
				"the panel is not called "+clip(r.Host)+"; call it by its address, or name it in the configuration (panel.hosts)",
			)
		case p.Token == "" && !isLocal(r):
			problem(w, http.StatusForbidden, "without a token the panel answers on this machine only; start it with a token")
		case cross.Check(r) != nil:
			problem(w, http.StatusForbidden, "a page of another origin may not change anything here")
		case !isPublic(r.URL.Path) && !p.authorised(r):
			if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/runs/") &&
				strings.Contains(r.Header.Get("Accept"), "text/html") {
				http.Redirect(w, r, "/", http.StatusSeeOther)
				return
			}
			h.Set("WWW-Authenticate", `Bearer realm="eidetic"`)
			problem(w, http.StatusUnauthorized, "this needs the panel's token: Authorization: Bearer TOKEN")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isPublic lists what needs no token: what is equal for every appliance of this version, the
// health, and the way to get a session.
func isPublic(path string) bool {
	switch path {
	case "/", "/history", "/api/v1/health", "/api/v1/session", "/openapi.json", "/openapi.yaml", "/openapi-3.0.json", "/openapi-3.0.yaml":
		return true
	}
	return strings.HasPrefix(path, "/assets/")
}

func (p *Panel) authorised(r *http.Request) bool {
	if p.Token == "" {
		return true
	}
	if got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return p.isToken(got)
	}
	c, err := r.Cookie(cookieName)
	return err == nil && subtle.ConstantTimeCompare([]byte(c.Value), []byte(p.session())) == 1
}

// isToken compares digests, so that timing reveals nothing about the token or its length.
func (p *Panel) isToken(got string) bool {
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(p.Token))
	return p.Token != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// session is the cookie's value. It can be computed from the token, but not the token from
// it.
func (p *Panel) session() string {
	mac := hmac.New(sha256.New, []byte(p.Token))
	mac.Write([]byte("eidetic session 1"))
	return hex.EncodeToString(mac.Sum(nil))
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
func clip(s string) string {
	const most = 100
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return `"` + s + `"`
}
