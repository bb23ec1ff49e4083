// Package samplesite is a shop that a demonstration and the tests record and
// replay: real TLS origins on four host names and three addresses, with an
// authoritative name server for them.
//
// In flow requests of a browser, and randomness and a clock that the caller
// passes in; out flow pages that differ from load to load. Everything a
// recorder finds hard is here once: a streamed document, three content codings
// (RFC 9110 §8.4), CORS preflights (Fetch), a strict content security policy
// with a nonce (CSP level 3), a POST whose answer depends on its body, one URL
// with two answers, a cache-busting query, a Range request (RFC 9110 §14), a
// late hero picture, and an origin that speaks HTTP/1.1 only. docs/sample-site.md
// lists what each part exercises.
//
// What the page shows depends on its bytes and on the seeded Date, Math.random
// and crypto alone: a script draws all its numbers at once, in a fixed order,
// before anything that depends on timing.
package samplesite
