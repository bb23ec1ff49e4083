package archive

import (
	"fmt"
	"strings"
	"testing"
)

// TestSegments: a record that was written in segments is joined, wherever they are; what there is of it without all of
// them counts as cut off.
func TestSegments(t *testing.T) {
	const block = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 26\r\n\r\nabcdefghijklmnopqrstuvwxyz"
	const body = len(block) - 26
	segment := func(n int, text, more string) [2]string {
		if n == 1 {
			return [2]string{"WARC-Type: response\nWARC-Target-URI: http://s.test/\nWARC-Segment-Number: 1" + more, text}
		}
		return [2]string{fmt.Sprintf("WARC-Type: continuation\nWARC-Target-URI: http://s.test/\nWARC-Segment-Number: %d%s", n, more), text}
	}
	of := func(id int) string { return fmt.Sprintf("\nWARC-Segment-Origin-ID: <urn:x:%d>", id) }
	total := fmt.Sprintf("\nWARC-Segment-Total-Length: %d", len(block))
	// The digest of the whole body (RFC 4648, base 32, SHA-1), and that of the first block, which is no more.
	const digests = "\nWARC-Payload-Digest: sha1:GLIQY64M7FSXBSQEZY37FIM5QQSA2OUJ\nWARC-Block-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	for name, c := range map[string]struct {
		records [][2]string
		want    string
		isCut   bool
		lost    int
		told    string
	}{
		"three":            {[][2]string{segment(1, block[:body+5], digests), segment(2, block[body+5:body+9], of(0)), segment(3, block[body+9:], of(0)+total)}, block[body:], false, 0, ""},
		"in another order": {[][2]string{segment(3, block[body+9:], of(2)+total), segment(2, block[body+5:body+9], of(2)), segment(1, block[:body+5], "")}, block[body:], false, 0, ""},
		"in the head":      {[][2]string{segment(1, block[:20], ""), segment(2, block[20:], of(0)+total)}, block[body:], false, 0, ""},
		"without the last": {[][2]string{segment(1, block[:body+5], digests), segment(2, block[body+5:body+9], of(0))}, "abcdefghi", true, 0, "cut off"},
		"without one":      {[][2]string{segment(1, block[:body+5], ""), segment(3, block[body+9:], of(0)+total)}, "abcde", true, 0, "cut off"},
		"one twice":        {[][2]string{segment(1, block[:body+5], ""), segment(2, "twice", of(0)+total), segment(2, block[body+5:], of(0)+total)}, "abcdetwice", true, 0, "again"},
		"without a place":  {[][2]string{segment(1, block, ""), segment(2, "more", "")}, block[body:], true, 1, "WARC-Segment-Origin-ID"},
	} {
		a := openOdd(t, string(warcText(append(c.records, [2]string{"WARC-Type: response\nWARC-Target-URI: http://s.test/after", "HTTP/1.1 200 OK\r\n\r\nafter"})...)))
		e, told := byURL(a)["http://s.test/"], strings.Join(a.Warnings(), "\n")
		if e == nil || string(e.Response.Body) != c.want || (e.Truncated != "") != c.isCut || a.Lost() != c.lost || !strings.Contains(told, c.told) ||
			(c.told == "") != (told == "") || byURL(a)["http://s.test/after"] == nil {
			t.Errorf("%s: read %+v, lost %d, told %q; want %q, cut off %v, lost %d, told %q", name, e, a.Lost(), told, c.want, c.isCut, c.lost, c.told)
		}
	}
	a := openOdd(t, string(warcText(segment(2, "rest", of(7)), [2]string{"WARC-Type: response\nWARC-Target-URI: http://s.test/after", "HTTP/1.1 200 OK\r\n\r\nafter"})))
	if told := strings.Join(a.Warnings(), "\n"); a.Lost() != 1 || !strings.Contains(told, "import both in one zip") {
		t.Errorf("a segment without its first: lost %d, told %q", a.Lost(), told)
	}
}

// TestRevisitsOfRevisits: a revisit may name another one; one of an empty body needs no other record; and an answer that
// is not kept at all, because nothing had changed, is a 304.
func TestRevisitsOfRevisits(t *testing.T) {
	const identical = "\nWARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
	a := openOdd(t, string(warcText(
		[2]string{"WARC-Type: response\nWARC-Target-URI: http://r.test/1", ok + "body"},
		[2]string{"WARC-Type: revisit\nWARC-Target-URI: http://r.test/2\nWARC-Refers-To: <urn:x:0>" + identical, ok},
		[2]string{"WARC-Type: revisit\nWARC-Target-URI: http://r.test/3\nWARC-Refers-To: <urn:x:1>" + identical, ok},
		[2]string{"WARC-Type: revisit\nWARC-Target-URI: http://r.test/moved\nWARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ" + identical,
			"HTTP/1.1 301 Moved\r\nLocation: /1\r\n\r\n"},
		[2]string{"WARC-Type: revisit\nWARC-Target-URI: http://r.test/same\nWARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified", ""},
	)))
	got := byURL(a)
	for url, want := range map[string]string{"1": "200 body", "2": "200 body", "3": "200 body", "moved": "301 ", "same": "304 "} {
		e := got["http://r.test/"+url]
		if e == nil || fmt.Sprint(e.Status, " ", string(e.Response.Body)) != want {
			t.Errorf("%s is %+v, told %q; want %q", url, e, a.Warnings(), want)
		}
	}
}
