package archive

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What people take for a recording, which this program does not read: each is named, with what to do.

// errUnknown says that a file begins with none of the formats.
var errUnknown = errors.New("not a WACZ, WARC, HAR or Web Page Replay file") // constant

// mostMagic is how much of a file tells what it is.
const mostMagic = 512

// other is a format that is not read.
type other struct {
	magic string // what its files begin with
	at    int    // or have at this byte
	what  string
}

const (
	mhtml   = "a page saved as MHTML, which has no answers of servers: " + saveHAR
	unpack  = "unpack it, and import what is in it"
	saveHAR = "save a HAR with content in the browser's or the proxy's program, and import that"
)

func others() []other {
	return []other{
		{"ustar", 257, "a tar file: " + unpack},
		{"\xfd7zXZ\x00", 0, "compressed by xz: decompress it (xz -d), and import what is in it"},
		{"BZh", 0, "compressed by bzip2: decompress it (bzip2 -d), and import what is in it"},
		{"7z\xbc\xaf\x27\x1c", 0, "a 7z file: " + unpack},
		{"Rar!", 0, "a RAR file: " + unpack},
		{"\x04\x22\x4d\x18", 0, "compressed by lz4: decompress it (lz4 -d), and import what is in it"},
		{"version https://git-lfs", 0, "a pointer of Git LFS, without the file that it points to: fetch that with 'git lfs pull'"},
		{"\xd4\xc3\xb2\xa1", 0, packets}, {"\xa1\xb2\xc3\xd4", 0, packets}, {"\x4d\x3c\xb2\xa1", 0, packets}, {"\xa1\xb2\x3c\x4d", 0, packets},
		{"\x4d\x3c\x2b\x1a", 4, packets},
		{"ZIM\x04", 0, "a ZIM file (of Kiwix), which has pages and no answers of servers: " + saveHAR},
		{"\xf0\x9f\x8c\x90\xf0\x9f\x93\xa6", 2, "a Web Bundle: open it in the browser, and record the page with 'appliance record', or " + saveHAR},
		{"\xac\xed\x00\x05", 0, "a session of Charles: " + charlesJSON},
		{"bplist00", 0, "a web archive of Safari or another property list, which has no answers of servers: " + saveHAR},
		{"From: <Saved by", 0, mhtml}, {"From: \"Saved by", 0, mhtml}, {"MIME-Version: 1.0", 0, mhtml},
		{"SQLite format 3", 0, "a database of SQLite: " + saveHAR},
		{"== Info: ", 0, "a trace of curl: record the page, or " + saveHAR},
		{"HTTP/", 0, "one answer of a server (of curl -i, perhaps): record the page, or " + saveHAR},
		{"CDX ", 0, index},
	}
}

// charlesJSON says how a session of Charles is read.
const charlesJSON = "export it there (File, Export Session) as JSON Session File (.chlsj) or HAR, and import that"

// singleFile is a page as the extension SingleFile saves it: as HTML, or as a zip, which may have HTML around it.
const singleFile = "a page saved with SingleFile, which has no answers of servers: " + saveHAR

const index = "an index of WARC files (CDX) without their contents: import the WARC files"

// cdxLine matches a line of an index: the address, turned round, and a date.
var cdxLine = regexp.MustCompile(`^[^\s()]+\)/\S* \d{14} `) // constant

const packets = "a capture of packets (pcap), whose contents are encrypted: record the page with 'appliance record', or " + saveHAR

// flows matches the beginning of what mitmproxy saves: a dictionary whose length and whose first name's length stand
// before it.
var flows = regexp.MustCompile(`^\d+:\d+:[a-z_]+[;,]`) // constant

// unknown is the error for a file that begins with a head.
func unknown(head []byte) error {
	if what := otherThan(head); what != "" {
		return fmt.Errorf("%w, but %s", errUnknown, what)
	}
	if len(bytes.Trim(head, betweenRecords)) == 0 {
		return fmt.Errorf("%w: it begins with nothing but blanks", errUnknown)
	}
	return fmt.Errorf("%w: it starts with %.20q: %s", errUnknown, head, saveHAR)
}

// otherThan says what a file or a compressed stream is that begins with a head, or nothing.
func otherThan(head []byte) string {
	for _, o := range others() {
		if len(head) > o.at && bytes.HasPrefix(head[o.at:], []byte(o.magic)) {
			return o.what
		}
	}
	text := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(string(head), byteOrderMark)))
	switch {
	case cdxLine.MatchString(text):
		return index
	case flows.MatchString(text):
		return "flows of mitmproxy that are compressed: decompress them (gunzip), and import what comes of that"
	case strings.Contains(text, "<items burpversion"):
		return "items of Burp: " + saveHAR
	case strings.Contains(text, "page saved with singlefile"):
		return singleFile
	case strings.HasPrefix(text, "<!doctype html"), strings.HasPrefix(text, "<html"):
		return "a page in HTML, perhaps one that asks for a sign-in where the file was to be: download the file again, or " + saveHAR
	case strings.HasPrefix(text, "<"):
		return "XML: " + saveHAR
	}
	return ""
}

// otherJSON says what JSON is whose fields have these names, or nothing.
func otherJSON(names []string) string {
	for _, o := range []struct {
		names []string
		what  string
	}{
		{[]string{"traceEvents"}, "is a trace of Chromium's Performance panel, without bodies: " + saveHAR},
		{[]string{"constants", "events"}, "is a network log of Chromium (chrome://net-export), without bodies: " + saveHAR},
		{[]string{"__export_format"}, "is a collection of Insomnia, without answers: " + saveHAR},
		{[]string{"info", "item"}, "is a collection of Postman, without what a page loads: " + saveHAR},
		{[]string{"openapi"}, "describes an API (OpenAPI), without answers: " + saveHAR},
		{[]string{"swagger"}, "describes an API (OpenAPI), without answers: " + saveHAR},
		{[]string{"browserScripts"}, "has results of browsertime: import the HAR that lies beside it (browsertime.har)"},
		{[]string{"method", "params"}, "is a log of the DevTools protocol, without bodies: " + saveHAR},
		{[]string{"meta", "threads"}, "is a profile of the Firefox Profiler, without bodies: " + saveHAR},
		{[]string{"ph", "ts"}, "is a trace in Chromium's format, without bodies: " + saveHAR},
		{[]string{"resourceSpans"}, "has spans of OpenTelemetry: appliance annotate --otlp puts them onto a run"},
		{[]string{"lighthouseVersion"}, "is a report of Lighthouse, without bodies: " + saveHAR},
		{[]string{"profile", "resources"}, "describes a WACZ or a collection of several, without what is in them: import the WACZ; " +
			"of a collection import each, and join them with appliance archive merge"},
		{[]string{"metric", "type"}, "has results of k6, without bodies: " + saveHAR},
		{[]string{"title", "steps"}, "is a recording of the DevTools Recorder, which has clicks and no answers: " + saveHAR},
	} {
		if !slices.ContainsFunc(o.names, func(name string) bool { return !slices.Contains(names, name) }) {
			return o.what
		}
	}
	return ""
}
