package conformance

import (
	"slices"
	"testing"
)

func cases() []kase {
	return slices.Concat(determinism(), realms(), codings(), charsets(), policies(), network(), asked(), peers(), live())
}

// essential are the names of those that both browsers are held against.
func essential() []string {
	return []string{
		"a document is seeded", "a worker is seeded", "a module worker is seeded", "a shared worker is seeded",
		"a service worker is seeded and serves", "a srcdoc frame is seeded", "a frame in zstd is seeded", "a UTF-16 document",
		"CSP nonce", "CSP in a meta element", "subresource integrity", "the same URL three times", "POSTs told apart by JSON",
		"multipart with a boundary of its own", "another origin, with preflight", "server-sent events",
		"a WebSocket with permessage-deflate", "HTTP/2 stays HTTP/2", "HTTP/1.1 stays HTTP/1.1", "fresh for as long as it was", "revalidated",
	}
}

// TestChromium drives every case with a real Chromium, and replays it twice.
func TestChromium(t *testing.T) {
	s := newStand(t)
	s.browser = newChromium(t, s)
	for _, k := range cases() {
		t.Run(k.name, func(t *testing.T) { s.run(t, k, 2) })
	}
}

// TestFirefox drives the essential ones with a real Firefox.
func TestFirefox(t *testing.T) {
	s := newStand(t)
	s.browser = newFirefox(t, s)
	left := essential()
	for _, k := range cases() {
		if i := slices.Index(left, k.name); i >= 0 {
			left = slices.Delete(left, i, i+1)
			t.Run(k.name, func(t *testing.T) { s.run(t, k, 1) })
		}
	}
	if len(left) > 0 {
		t.Errorf("there are no cases named %q", left)
	}
}
