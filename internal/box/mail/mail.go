// Package mail sends what a box tells by electronic mail, to a server that its admin names (SMTP, RFC 5321).
//
// A subject and a text flow in; one message flows out, over TLS unless the server is this machine. A message is
// bounded, and so is the time that an attempt may take. What the text says may come from strangers: it cannot add
// headers or recipients.
package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// Server is where mail is handed in, as a configuration has it.
type Server struct {
	Server   string     `yaml:"server"`   // host:port; at port 465 TLS begins at once, at others with STARTTLS
	From     string     `yaml:"from"`     // address of the sender
	User     string     `yaml:"user"`     // "" logs nobody in
	Password lab.Secret `yaml:"password"` // of the user
	Plain    bool       `yaml:"plain"`    // without TLS, which is for a server on this machine
}

// Bounds of a message and of an attempt to send it.
const (
	attemptLimit = 30 * time.Second
	mostSubject  = 150 // characters
	mostText     = 64 << 10
	tlsPort      = "465"
)

// Check returns the field that is wrong, and why, or nil. A server that is not named is none.
func (s Server) Check() (field string, err error) {
	if s == (Server{}) {
		return "", nil
	}
	host, port, err := net.SplitHostPort(s.Server)
	switch {
	case err != nil || host == "" || port == "":
		return ".server", fmt.Errorf("%.100q: write host:port, such as smtp.shop.example:465", s.Server)
	case CheckAddress(s.From) != nil:
		return ".from", CheckAddress(s.From)
	case (s.User == "") != s.Password.IsZero():
		return ".password", errors.New("a user and a password belong together")
	case s.Plain && !isLocal(host):
		return ".plain", fmt.Errorf("%.100q is not this machine: without TLS others read the mail on its way", host)
	}
	return "", nil
}

// CheckAddress returns an error unless the text is one plain address.
func CheckAddress(text string) error {
	a, err := mail.ParseAddress(text)
	if err != nil || a.Address != text || len(text) > 254 || strings.ContainsAny(text, "\r\n\"<>() ") {
		return fmt.Errorf("%.100q is no address such as perf@shop.example", text)
	}
	return nil
}

func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Message is what is sent.
type Message struct {
	To, Subject, Text string
	ID                string // the same in all attempts
	At                time.Time
}

// Send hands a message in, in one attempt. roots are trusted authorities; nil are the system's.
func (s Server) Send(ctx context.Context, m Message, roots *x509.CertPool) (err error) {
	if err := CheckAddress(m.To); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(s.Server)
	if err != nil {
		return errors.New("the configuration names no mail server (mail.server)")
	}
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Server)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // ends what waits for the server
	security := &tls.Config{ServerName: host, RootCAs: roots, MinVersion: tls.VersionTLS12}
	if port == tlsPort && !s.Plain {
		conn = tls.Client(conn, security)
	}
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	defer c.Close()
	if port != tlsPort && !s.Plain {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			return errors.New("the mail server offers no TLS (STARTTLS)")
		}
		if err := c.StartTLS(security); err != nil {
			return err
		}
	}
	if s.User != "" {
		if err := c.Auth(smtp.PlainAuth("", s.User, s.Password.Reveal(), host)); err != nil {
			return err
		}
	}
	text, err := s.format(m)
	if err == nil {
		err = c.Mail(s.From)
	}
	if err == nil {
		err = c.Rcpt(m.To)
	}
	if err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	_ = c.Quit() // the server has taken it
	return nil
}

// format is the message with its headers (RFC 5322).
func (s Server) format(m Message) ([]byte, error) {
	var b bytes.Buffer
	host := s.From[strings.LastIndexByte(s.From, '@')+1:]
	for _, h := range [][2]string{
		{"From", s.From}, {"To", m.To}, {"Subject", mime.QEncoding.Encode("utf-8", line(m.Subject))}, {"Date", m.At.Format(time.RFC1123Z)},
		{"Message-ID", "<" + line(m.ID) + "@" + host + ">"}, {"Auto-Submitted", "auto-generated"}, {"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"}, {"Content-Transfer-Encoding", "quoted-printable"},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	b.WriteString("\r\n")
	text := strings.ToValidUTF8(m.Text, "\ufffd")
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + "\n…\n"
	}
	w := quotedprintable.NewWriter(&b)
	_, err := w.Write([]byte(strings.ReplaceAll(text, "\n", "\r\n")))
	return b.Bytes(), errors.Join(err, w.Close())
}

// line makes text one line of bounded length.
func line(text string) string {
	text = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\ufffd"))
	if r := []rune(text); len(r) > mostSubject {
		return string(r[:mostSubject-1]) + "…"
	}
	return text
}
