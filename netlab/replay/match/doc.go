// Package match finds the recorded exchange that answers a request. It is pure:
// it opens nothing, reads no clock and serves nothing, so that the same index and
// the same requests in the same order give the same results.
//
// A request is compared in stages, from the surest to a guess:
//
//  1. exact: method, URL and body are the recorded ones, byte by byte. Several
//     such exchanges are given to a client in their order (sequence).
//  2. normalised: the request is equal once volatile values (times, random
//     numbers, parameters that the recording shows not to matter), the order of
//     parameters and the layout of a body are left out. A GET answers a HEAD.
//  3. fuzzy: the exchange with the highest similarity wins, unless that is below
//     [Threshold]. It is compared with all that have the method, origin, number of
//     path segments, file extension and kind of body of the request.
//
// In go exchanges ([NewEntry], [Learn], [Index.Add]) and requests; out comes a
// [Result] that says which exchange it is and why. Ranges (RFC 9110, section 14),
// conditional requests (section 13) and Vary (section 12.5.5) decide which
// exchanges can answer at all.
package match
