package lab

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

func TestURLKeepsBytes(t *testing.T) {
	for raw, want := range map[string]URL{
		"https://Shop.Example:443/50%/a%zz?b=%&c": {
			Scheme: "https", Host: "shop.example", Path: "/50%/a%zz", Query: "b=%&c", HasQuery: true,
		},
		"http://[::1]:8080?x#y%":     {Scheme: "http", Host: "[::1]:8080", Path: "/", Query: "x", HasQuery: true, Fragment: "y%"},
		"http://a:b%@c/d|e é":        {Scheme: "http", User: "a:b%", Host: "c", Path: "/d|e é"},
		"http://h//x//y?":            {Scheme: "http", Host: "h", Path: "//x//y", HasQuery: true},
		"":                           {Path: "/"},
		"http://Shop.Example.:8080/": {Scheme: "http", Host: "shop.example:8080", HasRoot: true, Path: "/"},
		"https://shop.example.":      {Scheme: "https", Host: "shop.example", HasRoot: true, Path: "/"},
		"http://./":                  {Scheme: "http", Host: ".", Path: "/"},
		"urn:view:http://h/":         {Path: "urn:view:http://h/"},
	} {
		if got := ParseURL(raw); got != want {
			t.Errorf("ParseURL(%q) = %+v, want %+v", raw, got, want)
		}
	}
	u := ParseURL("http://[::1]:8080/")
	if u.Hostname() != "::1" || u.Port() != "8080" || u.Origin() != "http://[::1]:8080" {
		t.Errorf("Hostname, Port, Origin = %q, %q, %q", u.Hostname(), u.Port(), u.Origin())
	}
}

// TestURLOnTheWire sends addresses by net/http and looks at the request line.
func TestURLOnTheWire(t *testing.T) {
	for _, target := range []string{
		"/plain", "/75%", "/x%2Fy%z", "/a|b/{c}", "/caf\xc3\xa9/\xe9", "//two//slashes", "/q?rate=5%&p=%zz", "/q?", "/%41%2f",
	} {
		r := &http.Request{Method: "GET", URL: ParseURL("http://h.example" + target).Net(), Host: "h.example", Header: http.Header{}}
		var sent bytes.Buffer
		if err := r.Write(&sent); err != nil {
			t.Errorf("%q: %v", target, err)
			continue
		}
		line, _ := bufio.NewReader(&sent).ReadString('\n')
		if want := "GET " + target + " HTTP/1.1\r\n"; line != want {
			t.Errorf("the request line is %q, want %q", line, want)
		}
	}
}

func TestURLKey(t *testing.T) {
	for _, same := range [][]string{
		{"http://h/caf\xc3\xa9?q=\xc3\xa9 '", "http://h/caf%C3%A9?q=%C3%A9%20%27", "http://h/caf\xc3\xa9?q=\xc3\xa9 '#top"},
		{"http://h/{a}?{b}", "http://h/%7Ba%7D?{b}"},
	} {
		want := string(AppendURLKey(nil, same[0]))
		for _, raw := range same[1:] {
			if got := string(AppendURLKey(nil, raw)); got != want {
				t.Errorf("the key of %q is %q, want %q", raw, got, want)
			}
		}
	}
	for _, plain := range []string{"http://h/50%|x^y", "http://h/a%7Cb"} {
		if got := string(AppendURLKey(nil, plain)); got != plain {
			t.Errorf("the key of %q is %q, want it unchanged", plain, got)
		}
	}
}

func FuzzURL(f *testing.F) {
	for _, seed := range []string{"http://h/%", "https://u:p@[::1]:1/?#", "://", "http://h\\x", "\x00", "//", "http://h:80:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		defer testlab.Input(t)()
		u := ParseURL(raw)
		if again := ParseURL(u.Sent()); u.IsWeb() && again.Sent() != u.Sent() {
			t.Errorf("ParseURL(%q).Sent() = %q, then %q", raw, u.Sent(), again.Sent())
		}
		if n := u.Net(); u.IsWeb() && strings.HasPrefix(u.Path, "/") && !strings.HasSuffix(n.RequestURI(), u.Target()) {
			t.Errorf("Net of %q asks for %q, want %q", raw, n.RequestURI(), u.Target())
		}
		AppendURLKey(nil, raw)
	})
}
