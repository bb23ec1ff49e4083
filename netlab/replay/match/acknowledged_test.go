package match

import (
	"testing"

	"eidetic/internal/lab"
)

// TestAcknowledgements: answers of collectors say that something arrived; an answer with anything else is content.
func TestAcknowledgements(t *testing.T) {
	for answer, want := range map[string]bool{
		"ok": true, "OK\n": true, `"ok"`: true, "1": true, "{}": true, "[]": true, `{"partialSuccess":{}}`: true, `{"status":1,"quota_limited":[]}`: true,
		`{"code":200,"events_ingested":7,"payload_size_bytes":512,"server_upload_time":1767225600123}`: true,
		`{"request_id":"0b6e3c1e-5d3a-4a7e-9a53-2f4be2c1a111"}`:                                        true,
		`{"error":false,"message":"Accepted."}`:                                                        true,
		`{"success":false}`:                                                                            false,
		`{"error":true}`:                                                                               false,
		`{"available":3}`:                                                                              false,
		`{"id":"red-shirt"}`:                                                                           false,
		`{"variant":"B"}`:                                                                              false,
		`{"data":{"cart":{"total":12}}}`:                                                               false,
		`{"errors":[{"message":"no"}]}`:                                                                false,
		`["a"]`:                                                                                        false,
		"<html>":                                                                                       false,
		"sorry":                                                                                        false,
		`{"ok":true,"text":"this answer is long enough to say something to whoever has asked for it"}`: false,
	} {
		e := &lab.Exchange{Method: "POST", URL: "https://h.test/", Status: 200}
		e.Response.Body = []byte(answer)
		if got := NewEntry(e, "").isAcknowledgement(); got != want {
			t.Errorf("%s is an acknowledgement: %v, want %v", answer, got, want)
		}
		e.Method = "GET" // what is asked for has an answer
		if NewEntry(e, "").isAcknowledgement() {
			t.Errorf("%s is an acknowledgement of a GET", answer)
		}
	}
	e := &lab.Exchange{Method: "POST", URL: "https://h.test/", Status: 200}
	e.Response = lab.Message{Header: []lab.HeaderField{{Name: "Content-Encoding", Value: "gzip"}}, Body: gzipped(t, `{"status":"ok"}`)}
	if !NewEntry(e, "").isAcknowledgement() {
		t.Error("a compressed acknowledgement is taken for content")
	}
}
