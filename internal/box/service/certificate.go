package service

import (
	"crypto/tls"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"eidetic/internal/keep/pin"
	"eidetic/internal/web/panel"
)

// Certificate returns the panel's certificate, which is made once and kept in the data
// folder; nil if the configuration wants none, or none can be made. What is wrong with it is
// logged: a service without a folder for it still measures.
func Certificate(c Config, data string, log *slog.Logger) *tls.Certificate {
	if c.Panel.PlainHTTP {
		return nil
	}
	cert, err := pin.LoadOrCreate(filepath.Join(data, "panel"), c.hostNames(), time.Now)
	if err != nil {
		log.Error("the panel's certificate", "error", err)
	}
	return cert
}

// fingerprint is that of the certificate; empty without one.
func fingerprint(cert *tls.Certificate) string {
	if cert == nil {
		return ""
	}
	return pin.Of(cert.Leaf)
}

// Address is where a browser finds the panel. On this machine it needs no TLS.
func Address(at net.Addr, cert *tls.Certificate) string {
	if cert == nil || panel.Loopback(at) {
		return "http://" + at.String()
	}
	return "https://" + at.String()
}
