package client

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"eidetic/internal/keep/pin"
)

// Trust says by what a box is known again whose certificate no authority vouches for, which
// is every box as it comes.
type Trust struct {
	// Fingerprint is the SHA-256 of its certificate, in any form that pin.Parse reads. With
	// it no other certificate is accepted, and KnownBoxes is neither read nor written.
	Fingerprint string
	// KnownBoxes is the file of the boxes that were seen before, as known_hosts is for ssh:
	// one a line, host:port and fingerprint. A box that is not in it is added. Without a
	// file an unknown box is refused.
	KnownBoxes string
	// Notice tells the person of a box that was added; nil discards.
	Notice func(text string)
}

// UntrustedError says that what answers is not the box that is known, or that nothing says
// which box it is. It is not asked again: nothing was sent to it.
type UntrustedError struct{ Base, Reason string }

func (e *UntrustedError) Error() string {
	return fmt.Sprintf("the box at %s is not trusted, and nothing was sent to it: %s", e.Base, e.Reason)
}

// maxKnown bounds the file of known boxes.
const maxKnown = 1 << 20

// tlsConfig checks certificates by t, and no further: the name in a box's certificate says
// nothing, because anybody can write it.
func (t Trust) tlsConfig(base string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection: func(s tls.ConnectionState) error {
			if reason := t.check(base, s); reason != nil {
				return &UntrustedError{base, reason.Error()}
			}
			return nil
		},
	}
}

// check returns why a certificate is not trusted, or nil.
func (t Trust) check(base string, s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("it shows no certificate")
	}
	got := pin.Of(s.PeerCertificates[0])
	if t.Fingerprint != "" {
		want, err := pin.Parse(t.Fingerprint)
		if err == nil && got != want {
			err = fmt.Errorf("its certificate has the SHA-256\n  %s\nand not the one that --fingerprint says. "+
				"Compare with the box's screen: if that shows this one, use it", oneLine(got))
		}
		return err
	}
	host, err := hostOf(base)
	if err != nil {
		return err
	}
	known, line, err := t.find(host)
	switch {
	case err != nil:
		return err
	case known == got:
		return nil
	case known != "":
		return fmt.Errorf("its certificate has changed.\n  known: %s\n  now:   %s\n"+
			"Either the box was reset or installed anew, or somebody is between you and the box. Compare with the box's screen: "+
			"if that shows the new one, remove line %d of %s, and try again", oneLine(known), oneLine(got), line, t.KnownBoxes)
	case isVouchedFor(s, host):
		return nil
	case t.KnownBoxes == "":
		return fmt.Errorf("its certificate is unknown, and there is no file of known boxes. Its SHA-256 is\n  %s\n"+
			"Compare with the box's screen, and give it with --fingerprint", oneLine(got))
	}
	if err := t.add(host, got); err != nil {
		return fmt.Errorf("its certificate is unknown and cannot be remembered: %w; compare with the box's screen, and give it "+
			"with --fingerprint %s", err, got)
	}
	if t.Notice != nil {
		t.Notice(fmt.Sprintf("The box at %s is new here. Its certificate has the SHA-256\n  %s\n"+
			"Compare with the box's screen. It is remembered in %s; another certificate will be refused.", base, oneLine(got), t.KnownBoxes))
	}
	return nil
}

// oneLine is a fingerprint as browsers show it.
func oneLine(fingerprint string) string {
	first, second := pin.Text(fingerprint)
	return first + ":" + second
}

// hostOf is host and port of a panel's address, in small letters.
func hostOf(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port), nil
}

// isVouchedFor says whether an authority that this machine trusts vouches for the
// certificate: that of a proxy in front of the box, for example.
func isVouchedFor(s tls.ConnectionState, host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		return false
	}
	rest := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		rest.AddCert(c)
	}
	_, err = s.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: name, Intermediates: rest})
	return err == nil
}

// find returns the fingerprint of a known box and the number of its line, or "".
func (t Trust) find(host string) (fingerprint string, line int, err error) {
	if t.KnownBoxes == "" {
		return "", 0, nil
	}
	f, err := os.Open(t.KnownBoxes)
	if errors.Is(err, fs.ErrNotExist) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("the known boxes: %w", err)
	}
	defer f.Close()
	fingerprint, line, err = findKnown(io.LimitReader(f, maxKnown), host)
	if err != nil {
		err = fmt.Errorf("%s: %w", t.KnownBoxes, err)
	}
	return fingerprint, line, err
}

// findKnown reads lines of a host and a fingerprint; empty ones and those that begin with #
// are skipped.
func findKnown(r io.Reader, host string) (fingerprint string, line int, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		name, rest, _ := strings.Cut(text, " ")
		if !strings.EqualFold(name, host) {
			continue
		}
		fingerprint, err := pin.Parse(rest)
		if err != nil {
			return "", 0, fmt.Errorf("line %d: %w", n, err)
		}
		return fingerprint, n, nil
	}
	return "", 0, lines.Err()
}

// add appends a box to the file.
func (t Trust) add(host, fingerprint string) error {
	if err := os.MkdirAll(filepath.Dir(t.KnownBoxes), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(t.KnownBoxes, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s\n", host, fingerprint)
	return errors.Join(err, f.Close())
}
