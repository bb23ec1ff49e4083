package wire

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// lines is a log that a test reads.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestHandshakesThatFail: a person is told once of each device what keeps it from the box, and nothing of one that goes.
func TestHandshakesThatFail(t *testing.T) {
	var log lines
	s := newStand(t, "http/1.1", func(http.ResponseWriter, *http.Request) {}, func(s *Server) { s.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	trusting := s.config
	for _, c := range []struct {
		what   string
		change func(*tls.Config)
		want   string
	}{
		{"trusts nobody", func(c *tls.Config) { c.InsecureSkipVerify = false }, "install it from http://box.test/"},
		{"is old", func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }, "TLS 1.1"},
		{"asks for names", func(c *tls.Config) { c.NextProtos = []string{"dot"} }, "not HTTP"},
	} {
		for range 3 {
			s.config = trusting.Clone()
			c.change(s.config)
			if conn, err := s.connect(t); err == nil {
				_, _ = conn.Read(make([]byte, 1)) // in TLS 1.3 the server's refusal comes after the client's end
			}
		}
		s.config = trusting
		for !strings.Contains(log.all(), c.want) { // the server may be behind; each answer takes time
			if err := s.dial(t).Close(); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(log.all(), c.want); n != 1 {
			t.Errorf("of a device that %s it was told %d times, want once:\n%s", c.what, n, log.all())
		}
	}
	if got := log.all(); strings.Contains(got, "EOF") || strings.Contains(got, "reset") {
		t.Errorf("the log tells of devices that went away:\n%s", got)
	}
	var h handshakes
	for i := range 2 * mostTold {
		h.isNews(strings.Repeat("x", i), "why")
	}
	if len(h.told) != mostTold {
		t.Errorf("%d reasons are remembered, want at most %d", len(h.told), mostTold)
	}
}
