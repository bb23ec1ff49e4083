// Package archive keeps recordings: exchanges flow in from a recorder while it runs ([Create],
// [Writer]), and out to a replay session from RAM ([Open], [Archive]).
//
// The file is a WACZ 1.1.1 (https://specs.webrecorder.net/wacz/1.1.1/) with one WARC 1.1 (ISO
// 28500:2017) inside, which ReplayWeb.page and pywb open. During the recording it is an
// append-only file of per-record gzip members beside the final name ([WorkingSuffix]); Close
// packs it atomically, and Open recovers a cut-off one up to its last complete record. What
// WARC has no field for (chunk times, trailers, the server's port) is JSON in metadata records
// tied to the response by WARC-Concurrent-To.
//
// All input is treated as hostile: [Limits] bound memory, record counts and expansion, and no
// name inside a zip is ever used as a path.
package archive
