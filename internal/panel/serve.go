package panel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// grace is how long requests may take to end after the panel was told to stop.
const grace = 5 * time.Second

// Listen opens the panel's TCP listener. If the port is in use, the error names the port and
// the flag that sets another.
func Listen(ctx context.Context, addr, flag string) (net.Listener, error) {
	var lc net.ListenConfig
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

// Serve answers requests on the listener until the context ends; then it gives requests a
// few seconds to end, closes everything and returns nil. Without a token it refuses a
// listener that other machines can reach.
func (p *Panel) Serve(ctx context.Context, l net.Listener) error {
	if p.Token == "" && !Loopback(l.Addr()) {
		_ = l.Close()
		return fmt.Errorf(
			"serve the panel on %s: others can reach this address, so a token is needed; set one, or listen on 127.0.0.1",
			l.Addr(),
		)
	}
	group, ctx := errgroup.WithContext(ctx)
	server := &http.Server{
		Handler:           p,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// Event streams end with the context, before the grace begins.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
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
	return group.Wait()
}
