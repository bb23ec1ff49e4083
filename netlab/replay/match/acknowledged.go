package match

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"eidetic/netlab/inject"
)

// mostAcknowledged bounds an answer that is looked at, in bytes.
const mostAcknowledged = 256

// isAcknowledgement tells an answer to something sent that says no more than that it arrived, as the collectors of
// measurements give it: "ok", {}, {"success":true}, {"status":1}, {"id":"…"} with an ID by lot.
func (en *Entry) isAcknowledgement() bool {
	sends := en.Method == "POST" || en.Method == "PUT" || en.Method == "PATCH"
	if !sends || en.Status/100 != 2 || en.Truncated != "" || len(en.Response.Body) > mostAcknowledged {
		return false
	}
	body := en.Response.Body
	if coding := inject.ContentCoding(en.Response.Header); coding != "" {
		r, err := inject.NewDecoder(coding, bytes.NewReader(body))
		if err != nil {
			return false
		}
		defer r.Close()
		if body, err = io.ReadAll(io.LimitReader(r, mostAcknowledged+1)); err != nil || len(body) > mostAcknowledged {
			return false
		}
	}
	text := strings.TrimSpace(string(body))
	if v, ok := decodeJSON([]byte(text)); ok {
		return acknowledges("", v)
	}
	return isAssent(strings.Trim(text, `"`))
}

// acknowledges tells a JSON value that says no more than that something arrived. name is its member's.
func acknowledges(name string, v any) bool {
	name = strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) })
	}
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return v != has("error", "fail")
	case json.Number:
		return isAssent(v.String()) || v == "0" || has("time", "bytes", "received", "accepted", "ingested", "took")
	case string:
		isID := has("id") && len(v) >= 16 && strings.Trim(v, "0123456789abcdefABCDEF-") == ""
		return v == "" || isAssent(v) || isVolatile(v) || isID
	case []any:
		return len(v) == 0
	case map[string]any:
		for name, inner := range v {
			if !acknowledges(name, inner) {
				return false
			}
		}
		return true
	}
	return false
}

// isAssent tells the words and numbers of servers for yes.
func isAssent(word string) bool {
	switch strings.TrimRight(strings.ToLower(word), " .!") {
	case "ok", "okay", "success", "successful", "succeeded", "accepted", "received", "done", "true", "yes", "created", "queued",
		"thanks", "thank you", "1", "200", "201", "202", "204":
		return true
	}
	return false
}
