package webhook

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/reach"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

var secret = lab.NewSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") // constant

// The example of Standard Webhooks' own libraries.
func TestSignIsTheStandards(t *testing.T) {
	got, err := Sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("Sign() = %q, %v; want %q", got, err, want)
	}
	if err := CheckSecret(NewSecret()); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_!!", "whsec_" + strings.Repeat("QUFB", 22)} {
		if CheckSecret(lab.NewSecret(bad)) == nil {
			t.Errorf("CheckSecret(%q) = nil; want an error", bad)
		}
	}
}

func TestGuard(t *testing.T) {
	g := Guard{
		Allow: []string{"ci.lan", "10.1.2.3", "localhost", "192.168.77.50", "::ffff:10.9.9.9"},
		Inside: func() []netip.Prefix {
			return []netip.Prefix{netip.MustParsePrefix("192.168.77.1/24"), netip.MustParsePrefix("203.0.112.0/24")}
		},
		Machine: func() (reach.Machine, error) {
			return reach.Machine{Addrs: []netip.Addr{netip.MustParseAddr("203.0.114.7")}}, nil
		},
	}
	for _, c := range []struct {
		host, address string
		ok            bool
	}{
		{"hooks.example", "93.184.216.34", true}, {"hooks.example", "2606:2800:220:1::1", true},
		{"hooks.example", "127.0.0.1", false}, {"hooks.example", "::1", false}, {"hooks.example", "::ffff:127.0.0.1", false},
		{"hooks.example", "0.0.0.0", false}, {"hooks.example", "::", false}, {"hooks.example", "0.1.2.3", false},
		{"hooks.example", "10.0.0.1", false}, {"hooks.example", "172.16.0.1", false}, {"hooks.example", "192.168.1.1", false},
		{"hooks.example", "169.254.169.254", false}, {"hooks.example", "fe80::1", false}, {"hooks.example", "fe80::1%lo", false},
		{"hooks.example", "fd00::1", false}, {"hooks.example", "fec0::1", false}, {"hooks.example", "100.64.0.1", false},
		{"hooks.example", "224.0.0.1", false}, {"hooks.example", "ff02::1", false}, {"hooks.example", "255.255.255.255", false},
		{"hooks.example", "240.0.0.1", false}, {"hooks.example", "198.18.0.1", false}, {"hooks.example", "192.0.0.1", false},
		{"hooks.example", "64:ff9b::a00:1", false}, {"hooks.example", "64:ff9b:1::1", false}, {"hooks.example", "2002:7f00:1::", false},
		{"hooks.example", "2001::1", false}, {"hooks.example", "::a00:1", false},
		{"hooks.example", "203.0.112.9", false}, // the network of a device that has public addresses
		{"hooks.example", "203.0.114.7", false}, // the box's own
		// A host that is named may be in a private network, but not be the box, a device or link-local.
		{"ci.lan", "10.0.0.1", true}, {"CI.lan.", "192.168.1.1", true}, {"ci.lan", "127.0.0.1", false}, {"ci.lan", "169.254.169.254", false},
		{"ci.lan", "192.168.77.9", false}, {"ci.lan", "203.0.114.7", false},
		{"other.lan", "10.1.2.3", true}, {"10.1.2.3", "10.1.2.3", true}, {"10.1.2.4", "10.1.2.4", false}, {"x", "10.9.9.9", true},
		{"localhost", "127.0.0.1", true}, {"localhost", "::1", true}, {"localhost", "10.0.0.1", true}, {"x.localhost", "127.0.0.1", false},
		{"192.168.77.50", "192.168.77.50", true},
	} {
		err := g.Check(c.host, netip.MustParseAddr(c.address))
		if (err == nil) != c.ok || err != nil && !errors.Is(err, reach.ErrRefused) {
			t.Errorf("Check(%q, %s) = %v; allowed should be %v", c.host, c.address, err, c.ok)
		}
	}
	if (Guard{}).Check("localhost", netip.MustParseAddr("127.0.0.1")) == nil {
		t.Error("localhost is allowed without being named")
	}
	if (Guard{}).Check("x", ownAddress(t)) == nil {
		t.Error("an address of this machine's interfaces is allowed")
	}
}

// ownAddress is an address of one of this machine's interfaces.
func ownAddress(t *testing.T) netip.Addr {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil || len(all) == 0 {
		t.Fatalf("InterfaceAddrs() = %v, %v", all, err)
	}
	return netip.MustParsePrefix(all[len(all)-1].String()).Addr()
}

func TestAddressesOfWebhooks(t *testing.T) {
	g := Guard{Allow: []string{"ci.lan"}}
	for address, want := range map[string]string{
		"https://hooks.example/x?y=z":   "",
		"http://ci.lan:8080/":           "",
		"https://93.184.216.34/":        "",
		"http://hooks.example/":         "use https://",
		"ftp://hooks.example/":          "must begin with https://",
		"https:///x":                    "must begin with https://",
		"hooks.example":                 "must begin with https://",
		"https://u:p@hooks.example/":    "no user",
		"https://hooks.example/#x":      "no fragment",
		"https://127.0.0.1/":            "the box itself",
		"https://[::1]:8080/":           "the box itself",
		"https://[fe80::1%25eth0]/":     "link-local",
		"https://169.254.169.254/":      "link-local",
		"https://192.168.0.1/":          "private",
		"https://\x7f/":                 "cannot be read",
		"https://hooks.example:99999/%": "cannot be read",
	} {
		_, err := g.CheckURL(address)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("CheckURL(%q) = %v; want %q", address, err, want)
		}
	}
}

// nameServer answers every question of a type A with the next of the addresses, and then with
// the last.
func nameServer(t *testing.T, answers ...string) (netip.AddrPort, *atomic.Int32) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	started := make(chan struct{})
	server := &dns.Server{PacketConn: conn, NotifyStartedFunc: func() { close(started) }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		a := new(dns.Msg).SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			n := int(asked.Add(1)) - 1
			record, err := dns.NewRR(q.Question[0].Name + " 0 IN A " + answers[min(n, len(answers)-1)])
			if err != nil {
				t.Error(err)
				return
			}
			a.Answer = append(a.Answer, record)
		}
		_ = w.WriteMsg(a)
	})}
	done := make(chan error, 1)
	go func() { done <- server.ActivateAndServe() }()
	<-started
	t.Cleanup(func() { _ = server.Shutdown(); <-done })
	return netip.MustParseAddrPort(conn.LocalAddr().String()), &asked
}

// A name server that shows a public address to the check and the box's own to the connection
// does not get through (DNS rebinding).
func TestAnswerThatChangesIsRefused(t *testing.T) {
	var hits atomic.Int32
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer target.Close()
	port := strconv.Itoa(target.Listener.Addr().(*net.TCPAddr).Port)
	at, asked := nameServer(t, "93.184.216.34", "127.0.0.1")
	// The name may be called without TLS, as a host that is named, and in private networks.
	s := Sender{Guard: Guard{Allow: []string{"rebind.example"}}, Resolver: at}
	address := "http://rebind.example:" + port + "/"
	if err := s.CheckHost(t.Context(), address); err != nil {
		t.Fatalf("CheckHost() of a public address = %v; want nil", err)
	}
	first := asked.Load()
	_, err := s.Post(t.Context(), Post{URL: address, Secret: secret, ID: "msg_1", At: time.Now(), Body: []byte("{}")})
	if !errors.Is(err, reach.ErrRefused) || asked.Load() == first {
		t.Errorf("Post() = %v after %d questions, %d of them the check's; want reach.ErrRefused, and a question of its own", err, asked.Load(), first)
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("the server at the box's own address got %d requests; want none", n)
	}
	if err := s.CheckHost(t.Context(), address); !errors.Is(err, reach.ErrRefused) {
		t.Errorf("CheckHost() now = %v; want reach.ErrRefused", err)
	}
	// The same server, when the address itself is named.
	s.Allow = append(s.Allow, "127.0.0.1")
	if answer, err := s.Post(t.Context(), Post{URL: address, Secret: secret, ID: "msg_1", At: time.Now(), Body: []byte("{}")}); err != nil || !answer.Good() {
		t.Errorf("Post() to an address that is named = %+v, %v; want 200", answer, err)
	}
}

func TestPost(t *testing.T) {
	type call struct {
		header http.Header
		body   string
	}
	calls := make(chan call, 10)
	var elsewhere atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/good", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- call{r.Header, string(body)}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		for range 100 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/header", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 2*maxHeader)) })
	server := httptest.NewServer(mux)
	defer server.Close()
	s := Sender{Guard: Guard{Allow: []string{"127.0.0.1"}}, Agent: "eidetic/v1"}
	at := time.Unix(1_800_000_000, 0)
	for path, want := range map[string]Answer{
		"/good": {204, 0}, "/moved": {307, 0}, "/busy": {503, 2 * time.Minute}, "/endless": {200, 0}, "/nowhere": {404, 0},
	} {
		answer, err := s.Post(t.Context(), Post{URL: server.URL + path, Secret: secret, ID: "msg_7", At: at, Body: []byte(`{"a":1}`)})
		if err != nil || answer != want {
			t.Errorf("Post(%s) = %+v, %v; want %+v", path, answer, err, want)
		}
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}
	if answer, err := s.Post(t.Context(), Post{URL: server.URL + "/header", Secret: secret, ID: "x", At: at}); err == nil {
		t.Errorf("Post() of a huge header = %+v; want an error", answer)
	}
	got := <-calls
	want, err := Sign(secret, "msg_7", at, []byte(got.body))
	if h := got.header; err != nil || got.body != `{"a":1}` || h.Get("Webhook-Id") != "msg_7" || h.Get("Webhook-Timestamp") != "1800000000" ||
		h.Get("Webhook-Signature") != want || h.Get("Content-Type") != "application/json" || h.Get("User-Agent") != "eidetic/v1" {
		t.Errorf("the server got %v %q; want the signature %s", got.header, got.body, want)
	}
	if _, err := s.Post(t.Context(), Post{URL: "http://127.0.0.2/", Secret: secret, ID: "x", At: at}); err == nil || strings.Contains(err.Error(), "dial") {
		t.Errorf("Post() to an address that is not named = %v; want a refusal before the connection", err)
	}
}

// FuzzCheckURL: no text makes CheckURL panic, and one that it lets pass has a host.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{"https://hooks.example/", "http://[::1]:80/", "https://[fe80::1%25eth0]", "https://0x7f.1/", "//x", "https://2130706433/"} {
		f.Add(seed)
	}
	g := Guard{Allow: []string{"ci.lan"}, Machine: func() (reach.Machine, error) { return reach.Machine{}, nil }}
	f.Fuzz(func(t *testing.T, text string) {
		defer testlab.Input(t)()
		u, err := g.CheckURL(text)
		if err != nil {
			return
		}
		if u.Hostname() == "" || u.User != nil || u.Scheme != "https" && !g.allows(u.Hostname()) {
			t.Errorf("CheckURL(%q) lets pass %v", text, u)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && g.Check(u.Hostname(), a) != nil {
			t.Errorf("CheckURL(%q) lets an address pass that Check refuses", text)
		}
	})
}
