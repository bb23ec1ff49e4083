package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/reach"
)

// Limits of one attempt.
const (
	attemptLimit = 20 * time.Second
	lookupLimit  = 5 * time.Second
	maxHeader    = 16 << 10
	maxBody      = 64 << 10 // of an answer, which is read so that the connection ends well
)

// Sender posts events.
type Sender struct {
	Guard
	// Resolver is the name server to ask; the zero value is this machine's.
	Resolver netip.AddrPort
	// Roots are trusted authorities; nil are the system's.
	Roots *x509.CertPool
	// Agent is the header User-Agent.
	Agent string
}

// Post is one event for one address.
type Post struct {
	URL    string
	Secret lab.Secret
	ID     string // of the event: the same in all attempts
	At     time.Time
	Body   []byte // JSON
	// Header says who calls in place of a signature; nil signs with the secret.
	Header map[string]lab.Secret
}

// Answer is what came back.
type Answer struct {
	Status     int
	RetryAfter time.Duration // 0 where the answer does not say
}

// Good says whether the receiver has taken the event.
func (a Answer) Good() bool { return a.Status/100 == 2 }

// CheckHost is CheckURL, and asks for the addresses of the host: it returns an error if the box
// may call none of them. Post checks again, since a name server may change its mind. A name
// without an answer is no error: its server may be down.
func (s Sender) CheckHost(ctx context.Context, text string) error {
	u, err := s.CheckURL(text)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	found, err := reach.AskServer(s.Resolver, nil)(ctx, u.Hostname())
	if err != nil {
		return nil
	}
	var last error
	for _, a := range found {
		if last = s.Check(u.Hostname(), a); last == nil {
			return nil
		}
	}
	if last != nil {
		last = fmt.Errorf("%s: %w", u.Hostname(), last)
	}
	return last
}

// Post makes one attempt. An error means that there was no answer.
func (s Sender) Post(ctx context.Context, p Post) (Answer, error) {
	u, err := s.CheckURL(p.URL)
	if err != nil {
		return Answer{}, err
	}
	header := http.Header{}
	for name, value := range p.Header {
		header.Set(name, value.Reveal())
	}
	if p.Header == nil {
		signature, err := Sign(p.Secret, p.ID, p.At, p.Body)
		if err != nil {
			return Answer{}, err
		}
		header.Set("Webhook-Id", p.ID)
		header.Set("Webhook-Timestamp", strconv.FormatInt(p.At.Unix(), 10))
		header.Set("Webhook-Signature", signature)
	}
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(p.Body))
	if err != nil {
		return Answer{}, err
	}
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", s.Agent)
	transport := s.transport()
	defer transport.CloseIdleConnections()
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(r)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // without the address, which may hold a secret
		}
		return Answer{}, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxBody)) // the status alone counts
	out := Answer{Status: answer.StatusCode}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 && seconds <= 7*24*3600 {
		out.RetryAfter = time.Duration(seconds) * time.Second
	}
	return out, nil
}

// transport connects to the addresses that the guard lets pass.
func (s Sender) transport() *http.Transport {
	dialer := reach.Dialer{Rule: s.rule(), Lookup: reach.AskServer(s.Resolver, nil)}
	return &http.Transport{
		Proxy:                  nil, // a proxy would connect for us, unguarded
		DialContext:            dialer.DialContext,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxHeader,
		TLSClientConfig:        &tls.Config{RootCAs: s.Roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
	}
}
