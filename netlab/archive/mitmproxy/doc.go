// Package mitmproxy tests package archive against the HAR exports of
// mitmproxy, whose habits differ from a browser's: it reads text without a
// charset as Latin 1, writes bytes that are no text as lone surrogates, and
// counts a body's size as it was compressed.
package mitmproxy
