// Package samplesite is a shop for a demonstration and for tests to record and replay: real
// TLS origins on four host names and three addresses, with an authoritative name server for
// them.
//
// Its input is a browser's requests, and the caller's random source and clock; its output is
// pages that differ from load to load. It has one of everything that is hard to record: a
// streamed document, three content codings (RFC 9110 §8.4), CORS preflights (Fetch), a strict
// content security policy with a nonce (CSP level 3), a POST whose response depends on its
// body, one URL with two responses, a cache-busting query, a Range request (RFC 9110 §14), a
// late hero picture, and an origin that speaks only HTTP/1.1. docs/sample-site.md lists what
// each part exercises.
//
// What the page shows depends only on its bytes and on the seeded Date, Math.random and
// crypto: a script draws all its random numbers at once, in a fixed order, before anything
// that depends on timing.
package samplesite
