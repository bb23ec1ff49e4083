package conformance

import (
	"slices"
	"testing"

	"eidetic/internal/rigs/testlab"
)

func cases() []kase {
	return slices.Concat(seeded(), codings(), charsets(), policies(), network(), asked(), peers(), live(), openConnections(), messages(), oddities())
}

// seeded are the cases of the script, whose pages report random numbers.
func seeded() []kase { return slices.Concat(determinism(), realms(), seeds()) }

// essential are the names of the cases that both browsers run, and make test in Chromium: one of each kind.
func essential() []string {
	return []string{
		"a document is seeded", "a worker is seeded", "a module worker is seeded", "a shared worker is seeded",
		"a service worker is seeded and serves", "a srcdoc frame is seeded", "a frame in zstd is seeded", "a UTF-16 document",
		"CSP nonce", "CSP in a meta element", "subresource integrity", "the same URL three times", "POSTs told apart by JSON",
		"multipart with a boundary of its own", "another origin, with preflight", "server-sent events",
		"a WebSocket with permessage-deflate", "HTTP/2 stays HTTP/2", "HTTP/1.1 stays HTTP/1.1", "fresh for as long as it was", "revalidated",

		"a blob worker is seeded", "a srcdoc frame in markup is seeded", "a srcdoc frame under CSP in a meta element", "a srcdoc frame under trusted types",
		"imports of a module worker are seeded", "imports of a blob's module worker are seeded", "a module shared worker is seeded", "a service worker's importScripts",
		"an audio worklet is seeded", "CSP strict-dynamic", "trusted types", "CSP in a meta element and lab.done", "lab.done of a long name",
		"annotations reach the box",
		"annotations of frames and workers reach the box", "messages reach the box", "messages are told without a trace",
		"messages of sockets, frames and workers that are served reach the box", "messages of data channels reach the box",
		"a stream keeps its pieces", "a WebSocket: text, binary, ping, close, times", "a form sent twice", "GraphQL operations in one URL",
		"a preflight with credentials that was never recorded", "a 304 by tag that was never recorded", "the ranges of a media element", "HEAD of what was only fetched",
		"document.lastModified is the recorded field's", "performance.timeOrigin fits Date", "dates of answers fit Date", "what is seeded looks native", "crypto.subtle's keys of bytes are seeded",
		"worklets have no lab, and nothing to reach the box by; their page notes for them",
		"a blob's document is seeded", "a data URL's document in markup is seeded", "a srcdoc in a srcdoc is seeded",
		"a WebSocket on which the origin spoke last stays open", "an event stream stays open", "a long poll that waited waits",

		"a condition of a script's own", "a beacon that nobody recorded",
	}
}

// TestChromium runs the essential cases with a real Chromium, and all in make test-all, where those with random numbers
// are replayed once more.
func TestChromium(t *testing.T) {
	s := newStand(t)
	s.browser = newChromium(t, s)
	lots := len(seeded())
	for i, k := range cases() {
		t.Run(k.name, func(t *testing.T) {
			if !slices.Contains(essential(), k.name) {
				testlab.Long(t, "one more of its kind")
			}
			a, live := s.record(t, &k)
			s.replay(t, &k, a, live)
			if i < lots {
				t.Run("again", func(t *testing.T) {
					testlab.Long(t, "a repetition")
					s.replay(t, &k, a, live)
				})
			}
		})
	}
}

// TestFirefox runs the essential cases with a real Firefox, and the first of them in make test.
func TestFirefox(t *testing.T) {
	s := newStand(t)
	s.browser = newFirefox(t, s)
	smoke := essential()[0]
	left := essential()
	for _, k := range cases() {
		if i := slices.Index(left, k.name); i >= 0 {
			left = slices.Delete(left, i, i+1)
			t.Run(k.name, func(t *testing.T) {
				if k.name != smoke {
					testlab.Long(t, "second browser")
				}
				s.run(t, k)
			})
		}
	}
	if len(left) > 0 {
		t.Errorf("there are no cases named %q", left)
	}
}
