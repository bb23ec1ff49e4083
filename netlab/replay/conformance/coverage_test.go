package conformance

import (
	"slices"
	"testing"
)

// covered maps what the suite promises to the cases and tests that show it. The keys are known
// failures of other recorders and requirements of the core; the values are names of cases, of
// byte-exact cases, or of test functions in this package.
func covered() map[string][]string {
	return map[string][]string{
		// Known failures of other recorders.
		"a bare path wins over one with a query":           {"a bare URL does not win over a query"},
		"OPTIONS or GET gets a POST's answer":              {"a GET does not get a POST's answer", "OPTIONS that is no preflight"},
		"two POSTs to one URL get the first answer":        {"POSTs told apart by JSON", "a form sent twice"},
		"an early cache-buster defeats the longest prefix": {"an early cache-buster", "parameters in another order"},
		"zstd that cannot be opened":                       {"a frame in zstd is seeded"},
		"one form answered twice":                          {"a form sent twice", "the same URL three times"},
		"a failed first try is replayed":                   {"a failed first try is not replayed", "TestNames"},
		"a site that branches on nextHopProtocol":          {"HTTP/2 stays HTTP/2", "HTTP/1.1 stays HTTP/1.1", "TestHTTP3"},
		"multipart boundaries that differ":                 {"multipart with a boundary of its own"},
		"random values that repeat": {
			"random numbers are a real stream",
			"a frame is seeded, and differently",
			"two srcdoc frames differ",
		},
		"workers that are not seeded": {
			"a worker is seeded",
			"a module worker is seeded",
			"imports of a module worker are seeded",
			"a shared worker is seeded",
			"a service worker is seeded and serves",
		},
		"WebSockets that are not replayed": {
			"a WebSocket: text, binary, ping, close, times",
			"a WebSocket with permessage-deflate",
		},
		"streams that are buffered":                        {"a stream keeps its pieces", "a document in pieces runs in pieces"},
		"recorded times that are not replayed":             {"time to first byte", "early hints"},
		"a policy in a meta element that stops the script": {"CSP in a meta element", "a srcdoc frame under CSP in a meta element"},
		// Requirements of the core.
		"bytes as on the wire": {
			"order and case of fields",
			"a reason of its own",
			"cookies keep their order",
			"trailers",
			"early hints",
			"TestWire",
		},
		"content encodings": {
			"a frame in gzip is seeded",
			"a frame in br is seeded",
			"a frame in deflate is seeded",
			"a worker in br is seeded",
		},
		"server-sent events": {"server-sent events"},
		"Range answered from a full body": {
			"a range of a whole body",
			"a range that was never asked for",
			"the ranges of a media element",
		},
		"304 and conditional requests": {
			"revalidated",
			"a 304 by tag that was never recorded",
			"a 304 by date that was never recorded",
		},
		"HEAD": {"HEAD", "HEAD of what was only fetched"},
		"preflights, recorded or not": {
			"another origin, with preflight",
			"a preflight that was never recorded",
			"a preflight with credentials that was never recorded",
			"a refused preflight stays refused",
			"a wildcard does not let credentials in",
		},
		"redirects":                      {"a redirect", "a redirect between origins"},
		"GraphQL-like POSTs":             {"GraphQL operations in one URL", "POSTs told apart by JSON"},
		"times recorded, fixed, or none": {"time to first byte", "a fixed time to first byte"},
		"matching: exact, sequence, normalised": {
			"a cache-buster of Date is exact",
			"the same URL three times",
			"a cache-buster of the real clock",
		},
		"frames": {
			"an empty frame is seeded",
			"a srcdoc frame is seeded",
			"a srcdoc frame in markup is seeded",
			"a sandboxed srcdoc frame is seeded",
			"a srcdoc frame by innerHTML is seeded",
			"a srcdoc frame by setAttribute is seeded",
			"a srcdoc frame by document.write is seeded",
		},
		"blob and data workers, worklets": {
			"a blob worker is seeded",
			"a data worker is seeded",
			"imports of a blob's module worker are seeded",
			"an audio worklet is seeded",
			"a blob's audio worklet is seeded",
			"worklets have no lab, and nothing to reach the box by; their page notes for them",
			"a worker's worker is seeded",
		},
		"CSP: nonce, hash, strict-dynamic": {
			"CSP nonce",
			"CSP strict-dynamic",
			"CSP default-src none",
			"CSP and unsafe-inline stays",
			"CSP and lab.done",
			"CSP in a meta element and lab.done",
		},
		"trusted types": {"trusted types", "a srcdoc frame under trusted types"},
		"SRI untouched": {"subresource integrity"},
		"UTF-16 and legacy charsets": {
			"a UTF-16 document",
			"a charset of old in the header",
			"Shift_JIS in a meta element",
			"a late charset is heeded",
		},
		"freshness and cookie expiries": {
			"fresh for as long as it was",
			"fresh until a date",
			"stale by a date",
			"a cookie's own expiry holds",
			"a stored cookie's own expiry holds",
			"cookies in both directions",
		},
		"HTTP/3, Alt-Svc and HTTPS records": {"TestHTTP3"},
		"DNS as recorded":                   {"TestNames"},
		"real applications":                 {"TestRealApplications"},
	}
}

// TestCovered: each name in covered, and each case for Firefox, exists.
func TestCovered(t *testing.T) {
	known := []string{"TestHTTP3", "TestNames", "TestRealApplications", "TestWire"}
	for _, k := range cases() {
		if slices.Contains(known, k.name) {
			t.Errorf("two cases are named %q", k.name)
		}
		known = append(known, k.name)
	}
	t.Logf("%d cases, %d of them in Firefox too", len(known)-4, len(essential()))
	for _, k := range rawCases() {
		known = append(known, k.name)
	}
	for _, name := range essential() {
		if !slices.Contains(known, name) {
			t.Errorf("for Firefox: there is no case %q", name)
		}
	}
	for promise, names := range covered() {
		for _, name := range names {
			if !slices.Contains(known, name) {
				t.Errorf("%s: there is no case %q", promise, name)
			}
		}
	}
}
