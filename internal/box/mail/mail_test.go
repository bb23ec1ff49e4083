package mail

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

// server is an SMTP server that takes one message, and says what it was told.
func server(t *testing.T, startTLS bool) (address string, roots *x509.CertPool, said chan string) {
	t.Helper()
	web := httptest.NewUnstartedServer(nil) // for its certificate, which is of 127.0.0.1
	web.StartTLS()
	t.Cleanup(web.Close)
	roots = x509.NewCertPool()
	roots.AddCert(web.Certificate())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	said = make(chan string, 1)
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		var conn net.Conn
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		var all bytes.Buffer
		r := bufio.NewReader(conn)
		say := func(text string) { fmt.Fprintf(conn, "%s\r\n", text) }
		for say("220 test"); ; {
			text, err := r.ReadString('\n')
			if err != nil {
				return
			}
			all.WriteString(text)
			switch verb := strings.ToUpper(strings.Fields(text + " x")[0]); verb {
			case "EHLO":
				if startTLS {
					say("250-test\r\n250-STARTTLS\r\n250 AUTH PLAIN")
				} else {
					say("250 test")
				}
			case "STARTTLS":
				say("220 go")
				secure := tls.Server(conn, web.TLS)
				conn, r = secure, bufio.NewReader(secure)
			case "DATA":
				say("354 go")
				body, err := io.ReadAll(textproto.NewReader(r).DotReader())
				if err != nil {
					return
				}
				all.Write(body)
				said <- all.String()
				say("250 taken")
			case "QUIT":
				say("221 bye")
				return
			case "AUTH":
				say("235 hello")
			default:
				say("250 ok")
			}
		}
	}()
	return l.Addr().String(), roots, said
}

// A message is handed in over TLS, after a log-in, and what its text says adds no header.
func TestSend(t *testing.T) {
	address, roots, said := server(t, true)
	s := Server{Server: address, From: "box@shop.example", User: "box", Password: lab.NewSecret("hush")}
	m := Message{To: "perf@shop.example", Subject: "Größe\r\nBcc: evil@evil.test", Text: "one\n.\nBcc: evil\n" + strings.Repeat("x", 2*mostText), ID: "msg_1\r\nX: y", At: time.Unix(1_800_000_000, 0)}
	if err := s.Send(t.Context(), m, roots); err != nil {
		t.Fatal(err)
	}
	got := <-said
	if !strings.Contains(got, "STARTTLS") || strings.Index(got, "AUTH PLAIN") < strings.Index(got, "STARTTLS") || strings.Count(got, "RCPT TO") != 1 || !strings.Contains(got, "RCPT TO:<perf@shop.example>") {
		t.Errorf("the server was told %.600q; want a log-in after STARTTLS, and one recipient", got)
	}
	_, message, _ := strings.Cut(got, "DATA\r\n")
	parsed, err := mail.ReadMessage(strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
	text, err2 := io.ReadAll(quotedprintable.NewReader(parsed.Body))
	if err != nil || err2 != nil || subject != "Größe  Bcc: evil@evil.test" || parsed.Header.Get("Bcc") != "" || parsed.Header.Get("X") != "" || !strings.HasPrefix(string(text), "one\n.\nBcc: evil\n") || len(text) > mostText+50 {
		t.Errorf("the message is %v %.100q, %v, %v; want its text, cut, and no other header", parsed.Header, text, err, err2)
	}
}

// Nothing is told to a server without TLS, or one that nobody vouches for; a server that says nothing ends with the
// context.
func TestSendIsRefused(t *testing.T) {
	m := Message{To: "perf@shop.example", ID: "x", At: time.Now()}
	address, roots, said := server(t, false)
	if err := (Server{Server: address, From: "box@shop.example", User: "box", Password: lab.NewSecret("hush")}).Send(t.Context(), m, roots); err == nil || !strings.Contains(err.Error(), "no TLS") {
		t.Errorf("Send() without TLS = %v; want a refusal", err)
	}
	address, _, _ = server(t, true)
	if err := (Server{Server: address, From: "box@shop.example"}).Send(t.Context(), m, x509.NewCertPool()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("Send() to a stranger = %v; want a refusal", err)
	}
	if len(said) != 0 {
		t.Errorf("a server was told %q", <-said)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := silent.Accept()
		cancel()
		if err == nil {
			_, _ = io.Copy(io.Discard, conn) // until it is closed
			_ = conn.Close()
		}
	}()
	if err := (Server{Server: silent.Addr().String(), From: "box@shop.example", Plain: true}).Send(ctx, m, nil); err == nil {
		t.Error("Send() to a server that says nothing = nil; want an error")
	}
}

func TestCheck(t *testing.T) {
	for want, s := range map[string]Server{
		"":                {},
		"write host:port": {Server: "smtp.x.test", From: "a@x.test"},
		"is no address":   {Server: "smtp.x.test:465", From: "A <a@x.test>"},
		"belong":          {Server: "smtp.x.test:465", From: "a@x.test", User: "a"},
		"without TLS":     {Server: "smtp.x.test:25", From: "a@x.test", Plain: true},
	} {
		if _, err := s.Check(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Check(%+v) = %v; want %q", s, err, want)
		}
	}
	if field, err := (Server{Server: "127.0.0.1:25", From: "a@x.test", Plain: true}).Check(); err != nil {
		t.Errorf("Check() of this machine = %s, %v; want nil", field, err)
	}
}
