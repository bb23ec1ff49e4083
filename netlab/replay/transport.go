package replay

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

// NewTransport returns a transport fit for a Recorder: h1 and h2, no
// decompression, no proxy of the environment. dial connects to origins; t may
// be nil for the system's roots.
func NewTransport(dial func(ctx context.Context, network, addr string) (net.Conn, error), t *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:        dial,
		TLSClientConfig:    t,
		DisableCompression: true,
		ForceAttemptHTTP2:  true,
	}
}
