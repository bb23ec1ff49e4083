package match

import (
	"testing"

	"eidetic/internal/lab"
)

// TestTalk: a call is found as soon as the device has said what it had said when the recorded answer began, and not before.
func TestTalk(t *testing.T) {
	header := []lab.HeaderField{{Name: "content-type", Value: "application/grpc+proto"}}
	call := func(path, body string, opening int) *lab.Exchange {
		e := &lab.Exchange{Method: "POST", URL: "https://h.test" + path, Status: 200}
		e.Request = lab.Message{Header: header, Body: []byte(body)}
		if opening >= 0 {
			e.Sent = []lab.Sent{{Bytes: opening, Heard: -1}, {Bytes: len(body) - opening}}
		}
		return e
	}
	bare := call("/S/Import", "x", -1)
	bare.Request.Header = nil
	x := NewIndex(&Ignored{})
	for _, e := range []*lab.Exchange{
		call("/S/Talk", "abcdef", 3), call("/S/Talk", "abxyz", 4), call("/S/Greet", "hi", 0), call("/S/Mixed", "pq", 1),
		call("/S/Mixed", "rs", -1), bare,
	} {
		x.Add(NewEntry(e, ""))
	}
	for _, c := range []struct {
		path, said string
		policy     Policy
		want       Talk
		body       string // of the call that is found
	}{
		{"/S/Talk", "", Normal, TalkWaits, ""}, {"/S/Talk", "ab", Normal, TalkWaits, ""}, {"/S/Talk", "abc", Normal, TalkFound, "abcdef"},
		{"/S/Talk", "abxy", Normal, TalkFound, "abxyz"}, {"/S/Talk", "abxyz and more", Strict, TalkFound, "abxyz"},
		{"/S/Talk", "q", Normal, TalkMissed, ""}, {"/S/Talk", "q", Loose, TalkFound, "abcdef"},
		{"/S/Greet", "", Normal, TalkFound, "hi"}, {"/S/Mixed", "r", Normal, TalkWhole, ""}, {"/S/Mixed", "p", Normal, TalkFound, "pq"},
		{"/S/Import", "", Normal, TalkWhole, ""}, {"/S/Other", "", Normal, TalkUnknown, ""},
	} {
		m, got := x.Talk(c.policy, NewClient(), "POST", "https://h.test"+c.path, []byte(c.said))
		body := ""
		if m.Entry != nil {
			body = string(m.Entry.Request.Body)
		}
		if got != c.want || body != c.body {
			t.Errorf("%s, %q said, under %s: %d, %q; want %d, %q", c.path, c.said, c.policy, got, body, c.want, c.body)
		}
	}
	for kind, want := range map[string]bool{
		"application/grpc": true, "Application/GRPC; charset=x": true, "application/connect+json": true,
		"application/grpc-web+proto": false, "text/html": false, "": false,
	} {
		if got := IsCall(&lab.Message{Header: []lab.HeaderField{{Name: "Content-Type", Value: kind}}}); got != want {
			t.Errorf("IsCall(%q) = %v, want %v", kind, got, want)
		}
	}
}
