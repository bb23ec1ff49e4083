package archive

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// The parts of HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/) that
// are read and written. Numbers may be texts and texts numbers: exporters disagree. Fields that begin with
// an underscore are extensions: Chrome's, and this program's own _eidetic (harown.go). They are read
// apart from the rest, so that one of another form does not make the file unreadable.
type (
	harFile struct {
		Log *harLog `json:"log"`
	}
	harLog struct {
		Version string          `json:"version"`
		Creator harCreator      `json:"creator"`
		Own     json.RawMessage `json:"_eidetic,omitempty"`
		Pages   []harPage       `json:"pages,omitempty"`
		Entries []harEntry      `json:"entries"`
	}
	harCreator struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	harPage struct {
		Started     harLoose        `json:"startedDateTime"`
		ID          harLoose        `json:"id"`
		Title       harLoose        `json:"title"`
		PageTimings struct{}        `json:"pageTimings"`
		Own         json.RawMessage `json:"_eidetic,omitempty"` // a Page

		log int // that it is in, if a file has several
	}
	harEntry struct {
		PageRef  harLoose        `json:"pageref,omitempty"`
		Started  harScalar       `json:"startedDateTime"`
		Time     harFloat        `json:"time"`
		Request  harRequest      `json:"request"`
		Response harResponse     `json:"response"`
		Cache    struct{}        `json:"cache"`
		Timings  harTimings      `json:"timings"`
		Server   harScalar       `json:"serverIPAddress,omitempty"`
		Comment  harLoose        `json:"comment,omitempty"`
		Kind     harLoose        `json:"_resourceType,omitempty"`        // Chrome: "document", "websocket"
		Messages json.RawMessage `json:"_webSocketMessages,omitempty"`   // Chrome: a list of harMessage
		Events   json.RawMessage `json:"_eventSourceMessages,omitempty"` // a list of harEvent
		Own      json.RawMessage `json:"_eidetic,omitempty"`             // a harOwn
	}
	harRequest struct {
		Method      string      `json:"method"`
		URL         string      `json:"url"`
		HTTPVersion string      `json:"httpVersion"`
		Cookies     harPairList `json:"cookies"`
		Headers     harPairList `json:"headers"`
		QueryString harPairList `json:"queryString"`
		PostData    *harPost    `json:"postData,omitempty"`
		Content     *harContent `json:"_content,omitempty"` // HTTP Toolkit, PiRogue: of a body that is no text
		HeadersSize harInt      `json:"headersSize"`
		BodySize    harInt      `json:"bodySize"`
		charlesMessage
	}
	harResponse struct {
		Status      harInt      `json:"status"`
		StatusText  string      `json:"statusText"`
		HTTPVersion string      `json:"httpVersion"`
		Cookies     harPairList `json:"cookies"`
		Headers     harPairList `json:"headers"`
		Content     harContent  `json:"content"`
		RedirectURL string      `json:"redirectURL"`
		HeadersSize harInt      `json:"headersSize"`
		BodySize    harInt      `json:"bodySize"`
		Error       string      `json:"_error,omitempty"`       // Chrome
		Failure     string      `json:"_failureText,omitempty"` // Playwright
		charlesMessage
	}
	harPair struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	harPost struct {
		MIME     string      `json:"mimeType"`
		Text     harString   `json:"text"`
		Encoding string      `json:"encoding,omitempty"` // Charles, mitmproxy
		Params   harPairList `json:"params,omitempty"`
		File     harLoose    `json:"_file,omitempty"` // Playwright

		attached []byte
	}
	harContent struct {
		Size        harInt     `json:"size"`
		Compression harFloat   `json:"compression,omitempty"`
		MIME        string     `json:"mimeType"`
		Text        *harString `json:"text,omitempty"`
		Encoding    string     `json:"encoding,omitempty"`
		Comment     string     `json:"comment,omitempty"`
		File        harLoose   `json:"_file,omitempty"` // Playwright: the body is in this file

		attached []byte // what File has; nil if it was not read
		isOdd    bool   // it, or a field of it, is of another kind
		coded    bool   // Size is that of the bytes before they were decoded
	}
	harMessage struct {
		Type   string   `json:"type"` // "send" or "receive"; "error" in Chrome
		Time   harFloat `json:"time"` // in s since 1970
		Opcode harInt   `json:"opcode"`
		Data   string   `json:"data"` // the text of opcode 1, else base64
	}
	harTimings struct {
		Blocked harFloat `json:"blocked,omitempty"`
		DNS     harFloat `json:"dns,omitempty"`
		Connect harFloat `json:"connect,omitempty"`
		Send    harFloat `json:"send"`
		Wait    harFloat `json:"wait"`
		Receive harFloat `json:"receive"`
	}
)

// harFloat is a number, which may be the beginning of a text; what is none counts as 0.
type harFloat float64

// UnmarshalJSON implements json.Unmarshaler.
func (n *harFloat) UnmarshalJSON(raw []byte) error {
	text, _, _ := strings.Cut(strings.Trim(string(raw), "\" "), " ") // "200 OK", "12 ms"
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	*n = harFloat(v)
	return nil
}

// harInt is a whole number. Exporters also write 12.0, 1.2e1 and "12".
type harInt int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *harInt) UnmarshalJSON(raw []byte) error {
	var v harFloat
	if err := v.UnmarshalJSON(raw); err != nil {
		return err
	}
	const most = 1 << 53 // beyond it a float64 skips whole numbers
	*n = harInt(min(max(v, -most), most))
	return nil
}

// harScalar is a text, or a number or truth value as it is written; what else it is counts as the empty one.
type harScalar string

// UnmarshalJSON implements json.Unmarshaler.
func (s *harScalar) UnmarshalJSON(raw []byte) error {
	switch {
	case len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || string(raw) == "null":
		*s = ""
		return nil
	case raw[0] == '"':
		return json.Unmarshal(raw, (*string)(s))
	}
	*s = harScalar(raw)
	return nil
}

// harLoose is a text; what is not a text counts as the empty one.
type harLoose string

// UnmarshalJSON implements json.Unmarshaler.
func (s *harLoose) UnmarshalJSON(raw []byte) error {
	if len(raw) == 0 || raw[0] != '"' {
		*s = ""
		return nil
	}
	return json.Unmarshal(raw, (*string)(s))
}
