package panel

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"eidetic/internal/base/slots"
	"eidetic/internal/lab"
)

const (
	// grace is how long requests may take to end after the panel was told to stop.
	grace = 5 * time.Second
	// headerLimit is how long a request's header may take, idleLimit how long a connection may wait for the next.
	headerLimit, idleLimit = 10 * time.Second, 2 * time.Minute
	maxHeader              = 64 << 10 // bytes
)

// Listen opens the panel's TCP listener. If the port is in use, the error names the port and
// the flag that sets another.
func Listen(ctx context.Context, addr, flag string) (net.Listener, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // its sockets ask no filter of package slots
	l, err := lc.Listen(ctx, "tcp", addr)
	if err == nil {
		return l, nil
	}
	host, port, splitErr := net.SplitHostPort(addr)
	switch {
	case splitErr != nil:
		return nil, fmt.Errorf("listen: %q is not an address with a port, such as 127.0.0.1:8080 (set with %s)", addr, flag)
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen: port %s of %s is taken by another program; end it, or choose another with %s %s: %w",
			port, host, flag, net.JoinHostPort(host, "0"), err)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listen: port %s needs root or CAP_NET_BIND_SERVICE; choose one above 1023 with %s: %w", port, flag, err)
	}
	return nil, fmt.Errorf("listen on %s (set with %s): %w", addr, flag, err)
}

// Serve answers requests on the listeners until the context ends; then it gives requests a
// few seconds to end, closes everything and returns nil. Without a token it refuses a
// listener that other machines can reach. With a certificate each connection over TCP may
// be TLS or not, and one from another machine must be: see [Panel.secureOnly].
func (p *Panel) Serve(ctx context.Context, listeners ...net.Listener) error {
	for _, l := range listeners {
		if p.Token.IsZero() && !Loopback(l.Addr()) {
			for _, l := range listeners {
				_ = l.Close()
			}
			return fmt.Errorf(
				"serve the panel on %s: others can reach this address, so a token is needed; set one, or listen on 127.0.0.1",
				l.Addr(),
			)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range listeners {
		limits := p.limits
		limits.OfOne = lab.ShareOf(limits.Admitted)
		bounded := slots.New(l, limits)
		if p.TLS == nil || l.Addr().Network() == "unix" {
			p.serve(ctx, group, p.server(ctx, p), bounded)
			continue
		}
		parts := split(bounded)
		group.Go(func() error { return parts.run(ctx) })
		p.serve(ctx, group, p.server(ctx, p.secureOnly(p)), parts.plain)
		secure := p.server(ctx, p.beside(p))
		p.serve(ctx, group, secure, tls.NewListener(parts.secure, p.configure(&tls.Config{
			Certificates: []tls.Certificate{*p.TLS}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		})))
	}
	return group.Wait()
}

// server returns a server of HTTP/1.1. The panel does without HTTP/2: a page of it makes few
// requests, and a connection is then one request at a time, which the limits of package
// slots count.
func (p *Panel) server(ctx context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerLimit,
		IdleTimeout:       idleLimit,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(p.Log.Handler(), slog.LevelDebug), // strangers cause them
		ConnContext:       slots.ConnContext,
		// Event streams end with the context, before the grace begins.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

// serve serves a listener in the group until the context ends.
func (p *Panel) serve(ctx context.Context, group *errgroup.Group, server *http.Server, l net.Listener) {
	group.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the panel: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if err := server.Shutdown(late); err != nil {
			return server.Close()
		}
		return nil
	})
}

// secureOnly lets unencrypted requests pass that come from this machine. A browser of
// another one is sent to the same address with https. Any other request is refused: a token
// that came with it has crossed the network in the clear, and a script must be corrected.
func (p *Panel) secureOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isLocal(r):
			next.ServeHTTP(w, r)
		case !p.isKnownHost(r.Host):
			next.ServeHTTP(w, r) // which refuses it
		case (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Authorization") == "":
			w.Header().Set("Cache-Control", "no-store")
			http.Redirect(w, r, "https://"+r.Host+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		default:
			w.Header().Set("Connection", "close")
			problem(w, http.StatusForbidden, "the panel speaks only TLS with other machines: write https:// in place of http://; "+
				"a token that came with this request has crossed the network unencrypted")
		}
	})
}
