package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"eidetic/netlab/hop"
)

// loginServer logs in connections, as NTLM does: a challenge is for the connection that asked for it, and what comes on a
// connection that is logged in needs no more.
func loginServer(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	serve := func(c net.Conn, number int) {
		defer c.Close()
		r, isIn := bufio.NewReader(c), false
		for {
			q, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			status, challenge := "401 Unauthorized", "WWW-Authenticate: NTLM\r\n"
			switch _, step, _ := strings.Cut(q.Header.Get("Authorization"), " "); {
			case step == "begin":
				challenge = fmt.Sprintf("WWW-Authenticate: NTLM %d\r\n", number)
			case step != "":
				isIn = step == fmt.Sprint(number)
			}
			if isIn {
				status, challenge = "200 OK", ""
			}
			fmt.Fprintf(c, "HTTP/1.1 %s\r\n%sContent-Length: 2\r\n\r\nhi", status, challenge)
		}
	}
	go func() {
		for number := 1; ; number++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c, number)
		}
	}()
	return "http://" + l.Addr().String() + "/"
}

// TestLoginOfAConnection: the steps of a login, and what a device asks after it on the same connection, reach the origin
// on one connection, whatever other connections ask in between; and nobody else is logged in by that.
func TestLoginOfAConnection(t *testing.T) {
	url := loginServer(t)
	u := NewUpstream(UpstreamConfig{})
	defer u.Close()
	ask := func(port uint16, authorization string) (status int, challenge string) {
		t.Helper()
		device := hop.Conn{Client: netip.MustParseAddr("192.0.2.1"), Port: port, Protocol: "http/1.1"}
		r, err := http.NewRequestWithContext(hop.WithConn(t.Context(), device), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		resp, err := u.RoundTrip(r)
		if err != nil {
			t.Fatalf("port %d, %q: %v", port, authorization, err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		_, challenge, _ = strings.Cut(resp.Header.Get("WWW-Authenticate"), " ")
		return resp.StatusCode, challenge
	}
	const one, other, third = 4001, 4002, 4003
	ask(one, "")
	_, forOne := ask(one, "NTLM begin")
	_, forOther := ask(other, "Negotiate begin")
	for range 3 {
		if status, _ := ask(third, ""); status != http.StatusUnauthorized {
			t.Errorf("a connection that logs nobody in gets %d, want 401", status)
		}
	}
	if status, _ := ask(one, "NTLM "+forOne); status != http.StatusOK {
		t.Errorf("the last step of a login gets %d, want 200", status)
	}
	if status, _ := ask(other, "Negotiate "+forOther); status != http.StatusOK {
		t.Errorf("the last step of another login gets %d, want 200", status)
	}
	for port, want := range map[uint16]int{one: http.StatusOK, other: http.StatusOK, third: http.StatusUnauthorized} {
		if status, _ := ask(port, ""); status != want {
			t.Errorf("after the logins, port %d gets %d, want %d", port, status, want)
		}
	}
}

// TestLoginsAreBounded: devices that begin logins and leave take no connections for ever.
func TestLoginsAreBounded(t *testing.T) {
	made, now := 0, time.Now()
	b := bound{make: func() *http.Transport { made++; return &http.Transport{} }}
	begin := func(port uint16, protocol string) *http.Transport {
		device := hop.Conn{Client: netip.MustParseAddr("192.0.2.1"), Port: port, Protocol: protocol}
		r, err := http.NewRequestWithContext(hop.WithConn(t.Context(), device), http.MethodGet, "http://a.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "ntlm x")
		return b.transport(r, now)
	}
	if begin(1, "h2") != nil || begin(0, "http/1.1") != nil {
		t.Error("HTTP/2, or a connection that is not known, has one of its own; want none")
	}
	for port := range uint16(2 * maxBound) {
		begin(port+1, "http/1.1")
	}
	if made != maxBound {
		t.Errorf("%d have one of their own, want %d", made, maxBound)
	}
	now = now.Add(2 * boundTime)
	if begin(60000, "http/1.1") == nil || len(b.of) != 1 {
		t.Errorf("later, %d have one of their own; want the new one alone", len(b.of))
	}
}
