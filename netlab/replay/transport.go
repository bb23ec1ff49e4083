package replay

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// NewTransport returns a transport fit for a Recorder: h1 and h2, no
// decompression, no proxy of the environment. dial connects to origins (nil
// for a plain net.Dialer); t may be nil for the system's roots. Close its
// idle connections at the end.
func NewTransport(dial func(ctx context.Context, network, addr string) (net.Conn, error), t *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     t,
		DisableCompression:  true,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 32,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 20 * time.Second,
	}
}

// TLSName renders a version as lab.Exchange keeps it: "tls/1.3".
func TLSName(version uint16) string {
	switch version {
	case tls.VersionTLS13:
		return "tls/1.3"
	case tls.VersionTLS12:
		return "tls/1.2"
	case tls.VersionTLS11:
		return "tls/1.1"
	case tls.VersionTLS10:
		return "tls/1.0"
	}
	return ""
}
