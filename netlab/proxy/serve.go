package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"eidetic/netlab/hop"
)

// configFor returns the TLS settings for the host that a client asks for, with its
// ALPN list.
func (s *Server) configFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	host := strings.ToLower(hello.ServerName)
	if host == "" {
		host = s.serversOf(hello.Conn)[0]
	}
	s.mu.Lock()
	e := s.epoch
	s.mu.Unlock()
	protos := offer(e.core.Protocols(withPort(host, portOfConn(hello.Conn))))
	return s.config(e, protos, tls.VersionTLS12), nil
}

// config makes the settings for an ALPN list, once in each epoch.
func (s *Server) config(e *epoch, protos []string, oldest uint16) *tls.Config {
	key := strings.Join(protos, ",")
	if c, ok := e.configs.Load(key); ok {
		return c.(*tls.Config)
	}
	config := &tls.Config{
		MinVersion: oldest,
		NextProtos: protos,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if h.ServerName != "" {
				return s.c.Certificates.Leaf(h.ServerName)
			}
			names := s.serversOf(h.Conn)
			return s.c.Certificates.Leaf(names[0], names[1:]...)
		},
	}
	config.SetSessionTicketKeys([][32]byte{e.ticket})
	c, _ := e.configs.LoadOrStore(key, config)
	return c.(*tls.Config)
}

// portOfConn returns the port that a device connects to. The listener for HTTPS may have another than 443.
func portOfConn(nc net.Conn) uint16 {
	if c, ok := nc.(*conn); ok && c.dest.Port() != 0 {
		return c.dest.Port()
	}
	return 443
}

// withPort names an origin of https, as its URLs do.
func withPort(host string, port uint16) string {
	if port == 443 {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// offer returns the protocols of a list that the listeners speak over TCP. HTTP/1.1
// is always offered last: the handshake of a client without h2 would fail otherwise.
func offer(protocols []string) []string {
	var out []string
	for _, p := range protocols {
		if (p == "h2" || p == "http/1.1") && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	if !slices.Contains(out, "http/1.1") {
		out = append(out, "http/1.1")
	}
	return out
}

// serversOf names the servers that a client without SNI may mean: those that it found at the address that it connected
// to, and that address.
func (s *Server) serversOf(nc net.Conn) []string {
	if c, ok := nc.(*conn); ok && c.host != "" {
		return []string{c.host}
	}
	a := addrPort(nc.LocalAddr()).Addr()
	if a.IsValid() && a == s.c.Loopback {
		return []string{"127.0.0.1"}
	}
	if s.c.HostsAt == nil {
		return []string{a.String()}
	}
	return append(s.c.HostsAt(a), a.String())
}

// serve hands a request of a transparent connection or a tunnel to the core.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	d := r.Context().Value(connKey{}).(*device)
	if r.ProtoMajor == 2 && d.TLS == "" { // its first bytes said so, not the handshake
		c := d.Conn
		c.Protocol = "h2"
		r = r.WithContext(hop.WithConn(r.Context(), c))
	}
	if d.inner != nil && d.inner.proxied && r.Method != http.MethodConnect {
		s.plain(w, r, d)
		return
	}
	if r.Method == http.MethodConnect {
		http.Error(w, "CONNECT goes to the explicit proxy's port, and comes first on its connection", http.StatusMethodNotAllowed)
		return
	}
	scheme := "http"
	if d.TLS != "" {
		scheme = "https"
	}
	host := r.Host
	if host == "" && d.inner != nil && d.inner.host != "" {
		host = net.JoinHostPort(d.inner.host, portOf(d.Dest, scheme))
	}
	if host == "" && d.Dest.IsValid() { // HTTP/1.0 may have no Host
		host = d.Dest.String()
	}
	name, err := d.authority(scheme, host)
	if err != nil {
		http.Error(w, "bad request: "+err.Error(), http.StatusBadRequest)
		return
	}
	e := s.current()
	defer e.requests.Done()
	if r.Body != nil && r.Body != http.NoBody {
		// The end of the connection is noticed once the body is read, that of the epoch
		// at any time.
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(e.ctx, cancel)()
		r = r.WithContext(ctx)
	}
	r.URL.Scheme, r.URL.Host, r.URL.User = scheme, name, nil // nothing else uses the request
	r.URL.Fragment, r.URL.RawFragment = "", ""
	e.core.ServeHTTP(w, r)
}

// hand makes the URL absolute and calls the core. It is for requests that package wire
// did not read.
func (s *Server) hand(w http.ResponseWriter, r *http.Request, c hop.Conn, scheme, host string) {
	if host == "" && c.Dest.IsValid() { // HTTP/1.0 may have no Host
		host = c.Dest.String()
	}
	u := *r.URL
	u.Scheme, u.User = scheme, nil
	u.Fragment, u.RawFragment = "", ""
	var err error
	if u.Host, err = authority(scheme, host); err != nil {
		http.Error(w, "bad request: "+err.Error(), http.StatusBadRequest)
		return
	}
	e := s.current()
	defer e.requests.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	r = r.WithContext(hop.WithConn(ctx, c))
	r.URL = &u
	e.core.ServeHTTP(w, r)
}

// authority checks and normalises a Host: lower case, no default port, no final dot.
func authority(scheme, host string) (string, error) {
	name, port := host, ""
	if h, p, err := net.SplitHostPort(host); err == nil {
		name, port = h, p
	} else if strings.HasPrefix(host, "[") {
		name = strings.Trim(host, "[]")
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if name == "" || len(name) > 255 {
		return "", errors.New("the request names no host")
	}
	if ip, err := netip.ParseAddr(name); err == nil && ip.Is6() {
		name = "[" + name + "]"
	} else if strings.ContainsAny(name, " /\\?#@:[]%<>\"'\t\r\n") {
		return "", errors.New("the host has characters that no host name has")
	}
	if port == "" || port == "80" && scheme == "http" || port == "443" && scheme == "https" {
		return name, nil
	}
	if _, err := netip.ParseAddrPort("0.0.0.0:" + port); err != nil {
		return "", errors.New("the host's port is not a number")
	}
	return name + ":" + port, nil
}

func portOf(dest netip.AddrPort, scheme string) string {
	if p := dest.Port(); p != 0 {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), p).String()[len("0.0.0.0:"):]
	}
	if scheme == "https" {
		return "443"
	}
	return "80"
}
