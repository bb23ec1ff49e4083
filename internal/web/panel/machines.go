package panel

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"os"

	"eidetic/internal/base/slots"
	"eidetic/internal/keep/store"
)

// Machines answers the boxes of a fleet, on the panel's own port. A box asks for the server name Name, and shows a
// certificate; a browser, which asks for another name, is never asked for one.
type Machines struct {
	Name    string
	Handler http.Handler
	// Knows says whether a request is of a box that has joined: a stranger's connection may be closed for another one.
	Knows func(*http.Request) bool
}

// isAsked says whether a connection was made by a machine. Its TLS state holds the name that was asked for, and a
// client's certificate then.
func (m Machines) isAsked(r *http.Request) bool {
	return r.TLS != nil && r.TLS.ServerName == m.Name
}

// beside serves machines, and everybody else by next.
func (m Machines) beside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !m.isAsked(r) {
			next.ServeHTTP(w, r)
			return
		}
		if !slots.IsAdmitted(r.Context()) && m.Knows(r) {
			key := sha256.Sum256(r.TLS.PeerCertificates[0].RawSubjectPublicKeyInfo)
			slots.Admit(r.Context(), hex.EncodeToString(key[:]))
		}
		m.Handler.ServeHTTP(w, r)
	})
}

// configure asks machines for their certificates.
func (m Machines) configure(c *tls.Config) *tls.Config {
	machines := c.Clone()
	machines.ClientAuth, machines.MinVersion = tls.RequireAnyClientCert, tls.VersionTLS13
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if hello.ServerName == m.Name {
			return machines, nil
		}
		return nil, nil // the usual one
	}
	return c
}

// WithMachines answers machines besides people and scripts.
func WithMachines(m Machines) Module {
	return func(p *Panel) {
		p.beside, p.configure = m.beside, m.configure
		p.limits.Admitted *= 16 // some connections of each of many machines
	}
}

// openFile opens a file of a run for reading. One that is elsewhere is brought first.
func (p *Panel) openFile(ctx context.Context, root *os.Root, run, name string) (*os.File, fs.FileInfo, error) {
	f, info, err := store.OpenFile(root, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, info, err
	}
	switch fetched := p.fetch(ctx, run, name); {
	case errors.Is(fetched, store.ErrNotFound):
		return nil, nil, err
	case fetched != nil:
		return nil, nil, &Refusal{http.StatusServiceUnavailable, fetched}
	}
	return store.OpenFile(root, name)
}
