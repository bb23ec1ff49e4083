package samplesite

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/miekg/dns"
)

func decode(t *testing.T, coding string, b []byte) []byte {
	t.Helper()
	var r io.Reader = bytes.NewReader(b)
	switch coding {
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		r = z
	case "br":
		r = brotli.NewReader(r)
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		r = z
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("decode %q: %v", coding, err)
	}
	return out
}

func TestProtocolsAndCodings(t *testing.T) {
	c := start(t, Options{Think: noThink}).client(t)
	const every = "gzip, deflate, br, zstd"
	for _, tt := range []struct{ url, accept, proto, coding, kind string }{
		{Home, every, "HTTP/2.0", "br", "text/html; charset=utf-8"},
		{Home, "gzip", "HTTP/2.0", "gzip", "text/html; charset=utf-8"},
		{Home, "br;q=0, zstd", "HTTP/2.0", "zstd", "text/html; charset=utf-8"},
		{Home, "", "HTTP/2.0", "", "text/html; charset=utf-8"},
		{"https://" + WWW + "/js/app.js", every, "HTTP/2.0", "zstd", "text/javascript; charset=utf-8"},
		{"https://" + CDN + "/css/base.css", every, "HTTP/2.0", "zstd", "text/css; charset=utf-8"},
		{"https://" + CDN + "/css/shop.css", every, "HTTP/2.0", "br", "text/css; charset=utf-8"},
		{"https://" + CDN + "/css/theme.css", every, "HTTP/2.0", "gzip", "text/css; charset=utf-8"},
		{"https://" + CDN + "/font/manrope-bold.woff2", every, "HTTP/2.0", "", "font/woff2"},
		{"https://" + CDN + "/img/p01.jpg", every, "HTTP/2.0", "", "image/jpeg"},
		{"https://" + CDN + "/img/p04.webp", every, "HTTP/2.0", "", "image/webp"},
		{"https://" + CDN + "/img/c3.png", every, "HTTP/2.0", "", "image/png"},
		{"https://" + API + "/v1/stock", every, "HTTP/2.0", "gzip", "application/json"},
		{"https://" + API + "/v1/recommendations?_=17", every, "HTTP/2.0", "zstd", "application/json"},
		{"https://" + Ads + "/tag.js", every, "HTTP/1.1", "gzip", "text/javascript; charset=utf-8"},
		{"https://" + Ads + "/frame?slot=shelf", every, "HTTP/1.1", "", "text/html; charset=utf-8"},
	} {
		resp, body := ask(t, c, "GET", tt.url, nil, "Accept-Encoding", tt.accept)
		h := resp.Header
		got := []any{resp.StatusCode, resp.Proto, h.Get("Content-Encoding"), h.Get("Content-Type")}
		if diff := cmp.Diff([]any{200, tt.proto, tt.coding, tt.kind}, got); diff != "" {
			t.Errorf("%s (%s):\n%s", tt.url, tt.accept, diff)
		}
		if len(decode(t, h.Get("Content-Encoding"), body)) == 0 {
			t.Errorf("%s: empty body", tt.url)
		}
	}
}

func TestRedirectAndMisdirected(t *testing.T) {
	o := start(t, Options{Think: noThink})
	c := o.client(t)
	resp, _ := ask(t, c, "GET", "http://"+WWW+"/a?b=c", nil)
	if resp.StatusCode != 301 || resp.Header.Get("Location") != "https://"+WWW+"/a?b=c" {
		t.Errorf("plain HTTP: %d to %q", resp.StatusCode, resp.Header.Get("Location"))
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+CDN+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = WWW
	resp, err = c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("the shop at the CDN's address: %d, want 421", resp.StatusCode)
	}
}

func TestLoadsDifferLiveAndRepeatSeeded(t *testing.T) {
	now := func() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }
	load := func(opt Options) string {
		opt.Think = noThink
		_, b := ask(t, start(t, opt).client(t), "GET", Home, nil)
		return string(b)
	}
	if first, second := load(Options{}), load(Options{}); first == second {
		t.Error("two live loads have equal pages")
	}
	a, b := load(Options{Rand: seeded(4), Clock: now}), load(Options{Rand: seeded(4), Clock: now})
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("two sites with one seed have different pages:\n%s", diff)
	}
	arms := map[string]bool{}
	for seed := range uint64(16) {
		arms[regexp.MustCompile(`arm-[ab]`).FindString(load(Options{Rand: seeded(seed), Clock: now}))] = true
	}
	if len(arms) != 2 {
		t.Errorf("arms seen in 16 loads: %v", arms)
	}
}

// TestSeededAnswersInAnyOrder: a seeded site's responses of one kind do not depend on other
// requests, because a browser's requests differ in their order.
func TestSeededAnswersInAnyOrder(t *testing.T) {
	urls := []string{"https://" + API + "/v1/stock", "https://" + API + "/v1/recommendations", "https://" + API + "/v1/reviews",
		"https://" + Ads + "/frame"}
	answers := func(order []string) map[string]string {
		c := start(t, Options{Think: noThink, Rand: seeded(4)}).client(t)
		got := map[string]string{}
		for _, u := range order {
			_, b := ask(t, c, "GET", u, nil)
			got[u] = string(b)
		}
		return got
	}
	forwards := answers(urls)
	slices.Reverse(urls)
	if diff := cmp.Diff(forwards, answers(urls)); diff != "" {
		t.Errorf("the same requests in another order have other responses:\n%s", diff)
	}
}

func TestPolicyNonce(t *testing.T) {
	resp, b := ask(t, start(t, Options{Think: noThink}).client(t), "GET", Home, nil)
	policy := resp.Header.Get("Content-Security-Policy")
	nonce := regexp.MustCompile(`'nonce-([0-9a-f]{32})'`).FindStringSubmatch(policy)
	if nonce == nil || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Fatalf("policy %q", policy)
	}
	if n := strings.Count(string(b), `<script nonce="`+nonce[1]+`">`); n != 1 {
		t.Errorf("%d inline scripts with the policy's nonce, want 1", n)
	}
}

// TestStreaming delays every piece until the one before has arrived.
func TestStreaming(t *testing.T) {
	for _, coding := range []string{"identity", "gzip", "br", "zstd"} {
		t.Run(coding, func(t *testing.T) {
			next, total := make(chan struct{}), time.Duration(0)
			think := func(ctx context.Context, d time.Duration) error {
				select {
				case <-next:
					total += d
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			c := start(t, Options{Think: think}).client(t)
			req, err := http.NewRequestWithContext(t.Context(), "GET", Home, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept-Encoding", coding)
			go func() { next <- struct{}{} }()
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			buf := make([]byte, 64<<10)
			for i := range pieces() {
				if i > 0 {
					next <- struct{}{}
				}
				if n, err := resp.Body.Read(buf); n == 0 {
					t.Fatalf("piece %d did not arrive before the next was allowed: %v", i, err)
				}
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatal(err)
			}
			if total != 300*time.Millisecond {
				t.Errorf("think time %v, want 300 ms", total)
			}
		})
	}
}

func TestStockTwice(t *testing.T) {
	c := start(t, Options{Think: noThink}).client(t)
	_, a := ask(t, c, "GET", "https://"+API+"/v1/stock", nil)
	_, b := ask(t, c, "GET", "https://"+API+"/v1/stock", nil)
	if bytes.Equal(a, b) {
		t.Errorf("two responses of /v1/stock are equal: %s", a)
	}
}

func TestQuote(t *testing.T) {
	c := start(t, Options{Think: noThink}).client(t)
	const url = "https://" + API + "/v1/quote"
	resp, _ := ask(t, c, "OPTIONS", url, nil, "Origin", "https://"+WWW, "Access-Control-Request-Method", "POST")
	if resp.StatusCode != 204 || resp.Header.Get("Access-Control-Allow-Origin") != "https://"+WWW {
		t.Errorf("preflight: %d %v", resp.StatusCode, resp.Header)
	}
	for _, tt := range []struct {
		body, want string
		status     int
	}{
		{`{"items":[{"id":"arne","qty":2}],"delivery":"standard"}`, `{"delivery":"€4.90","goods":"€118.00","pieces":2,"total":"€122.90"}`,
			200},
		{`{"items":[{"id":"arne","qty":2}],"delivery":"express","voucher":"X"}`,
			`{"delivery":"€14.90","goods":"€106.20","pieces":2,"total":"€121.10"}`, 200},
		{`{"items":[{"id":"none","qty":1}],"delivery":"express"}`, "items[0]: no product \"none\", or a quantity outside 1 to 99 (1)\n",
			400},
		{`{"delivery":"pigeon"}`, "delivery \"pigeon\": want standard or express\n", 400},
		{`{`, "the order is not JSON: unexpected end of JSON input\n", 400},
		{strings.Repeat(" ", maxBody+1), "read the order (at most 16384 bytes): http: request body too large\n", 400},
	} {
		resp, b := ask(t, c, "POST", url, strings.NewReader(tt.body), "Content-Type", "application/json")
		if resp.StatusCode != tt.status || string(b) != tt.want {
			t.Errorf("%.60s: %d %s", tt.body, resp.StatusCode, b)
		}
	}
}

func TestRange(t *testing.T) {
	c := start(t, Options{Think: noThink}).client(t)
	const url = "https://" + CDN + "/media/swatches.bin"
	_, whole := ask(t, c, "GET", url, nil)
	resp, part := ask(t, c, "GET", url, nil, "Range", "bytes=0-65535")
	if resp.StatusCode != 206 || resp.Header.Get("Content-Range") != "bytes 0-65535/262144" || !bytes.Equal(part, whole[:65536]) {
		t.Errorf("range: %d %q, %d bytes", resp.StatusCode, resp.Header.Get("Content-Range"), len(part))
	}
	resp, _ = ask(t, c, "GET", url, nil, "If-None-Match", resp.Header.Get("ETag"))
	if resp.StatusCode != 304 {
		t.Errorf("conditional: %d, want 304", resp.StatusCode)
	}
}

func TestSlow(t *testing.T) {
	thought := make(chan time.Duration, 1)
	think := func(_ context.Context, d time.Duration) error { thought <- d; return nil }
	part, extra, err := ParseSlow("hero=+200ms")
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, Options{Think: think, Slow: map[string]time.Duration{part: extra}}).client(t)
	ask(t, c, "GET", "https://"+CDN+"/img/hero.jpg", nil)
	if d := <-thought; d != 900*time.Millisecond {
		t.Errorf("the hero's think time is %v; want 900 ms", d)
	}
	for _, bad := range []string{"", "hero", "moon=+1s", "hero=x", "hero=-1s", "hero=2h"} {
		if _, _, err := ParseSlow(bad); err == nil {
			t.Errorf("ParseSlow(%q) succeeded; want an error", bad)
		}
	}
}

func TestNames(t *testing.T) {
	o := start(t, Options{Think: noThink})
	for _, tt := range []struct {
		name  string
		qtype uint16
		rcode int
		want  string
	}{
		{"WWW.shop.test.", dns.TypeA, dns.RcodeSuccess, "203.0.113.10"},
		{"api.shop.test.", dns.TypeA, dns.RcodeSuccess, "203.0.113.10"},
		{"cdn.shop.test.", dns.TypeA, dns.RcodeSuccess, "203.0.113.20"},
		{"widgets.example-ads.test.", dns.TypeA, dns.RcodeSuccess, "203.0.113.30"},
		{"www.shop.test.", dns.TypeAAAA, dns.RcodeSuccess, ""},
		{"www.shop.test.", dns.TypeHTTPS, dns.RcodeSuccess, ""},
		{"mail.shop.test.", dns.TypeA, dns.RcodeNameError, ""},
		{"example.com.", dns.TypeA, dns.RcodeRefused, ""},
	} {
		for _, network := range []string{"udp", "tcp"} {
			c := &dns.Client{Net: network}
			m, _, err := c.ExchangeContext(t.Context(), new(dns.Msg).SetQuestion(tt.name, tt.qtype), o.at[network+" 203.0.113.53:53"])
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, rr := range m.Answer {
				got = rr.(*dns.A).A.String()
			}
			if m.Rcode != tt.rcode || got != tt.want {
				t.Errorf("%s %s %s: %s %q", network, tt.name, dns.TypeToString[tt.qtype], dns.RcodeToString[m.Rcode], got)
			}
		}
	}
}

func TestServeSaysWhatIsMissing(t *testing.T) {
	a, err := NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	// No machine has an address of TEST-NET-3.
	err = Serve(t.Context(), Config{Certificates: a.Certificate})
	if err == nil || !strings.Contains(err.Error(), "listen on 203.0.113.10:443 for api.shop.test and www.shop.test") {
		t.Errorf("error %v", err)
	}
}

func TestNegotiate(t *testing.T) {
	for _, tt := range []struct{ accept, preferred, want string }{
		{"", "br", "identity"}, {"gzip", "br", "gzip"}, {"gzip, br", "gzip", "gzip"}, {"*", "zstd", "zstd"},
		{"br;q=0, *", "br", "gzip"}, {"GZIP ; Q=0.5", "gzip", "gzip"}, {"br;q=x", "br", "identity"}, {",;,", "br", "identity"},
	} {
		if got := negotiate(tt.accept, tt.preferred); got != tt.want {
			t.Errorf("negotiate(%q, %q) = %q, want %q", tt.accept, tt.preferred, got, tt.want)
		}
	}
}
