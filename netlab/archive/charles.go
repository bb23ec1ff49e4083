package archive

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// charlesFields are the fields of a transaction of Charles (a JSON Session File, .chlsj, is a list of them) that an entry
// of a HAR does not have, or has elsewhere.
type charlesFields struct {
	Scheme  harLoose `json:"scheme"`
	Host    harLoose `json:"host"`
	Port    harInt   `json:"actualPort"`
	Path    harLoose `json:"path"`
	Query   harLoose `json:"query"`
	Method  harLoose `json:"method"`
	Version harLoose `json:"protocolVersion"`
	Remote  harLoose `json:"remoteAddress"` // name/address:port
	Tunnel  harScalar
	Failure harLoose `json:"errorMessage"`
	Times   struct {
		Start harLoose `json:"start"`
	} `json:"times"`
	Durations struct {
		Total    harFloat `json:"total"`
		DNS      harFloat `json:"dns"`
		Connect  harFloat `json:"connect"`
		Latency  harFloat `json:"latency"`
		Response harFloat `json:"response"`
	} `json:"durations"`
	ALPN struct {
		Protocol harLoose `json:"protocol"`
	} `json:"alpn"`
}

// charlesMessage is what Charles has in a request or a response in the place of headers and content.
type charlesMessage struct {
	Header json.RawMessage `json:"header,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
	Sizes  json.RawMessage `json:"sizes,omitempty"`
	MIME   harLoose        `json:"mimeType,omitempty"`
}

// charlesTexts are the names of the fields above whose values are texts, numbers or truth values, and charlesObjects
// those of the objects, in lower case.
func charlesTexts() []string {
	return []string{"scheme", "host", "actualport", "path", "query", "method", "protocolversion", "remoteaddress", "tunnel", "errormessage"}
}

func charlesObjects() []string { return []string{"times", "durations", "alpn"} }

// isCharles tells a transaction of Charles.
func (c *charlesFields) isCharles(h *harEntry) bool { return c.Host != "" && h.Request.URL == "" }

// fill makes the entry of a HAR of the transaction.
func (c *charlesFields) fill(h *harEntry) {
	scheme, port := string(c.Scheme), ""
	if c.Port > 0 && c.Port != map[string]harInt{"http": 80, "ws": 80, "https": 443, "wss": 443}[scheme] {
		port = fmt.Sprint(":", int64(c.Port))
	}
	h.Request.URL = scheme + "://" + string(c.Host) + port + string(c.Path)
	if c.Query != "" {
		h.Request.URL += "?" + string(c.Query)
	}
	h.Request.Method, h.Request.HTTPVersion = string(c.Method), string(c.Version)
	if c.Tunnel == "true" {
		h.Request.Method = "CONNECT"
	}
	h.Response.HTTPVersion = cmp.Or(string(c.ALPN.Protocol), string(c.Version))
	if h.Response.Error = string(c.Failure); h.Response.Status == 101 {
		h.Kind = "websocket"
	}
	h.Started, h.Time = harScalar(c.Times.Start), c.Durations.Total
	h.Timings.DNS, h.Timings.Connect = c.Durations.DNS, c.Durations.Connect
	h.Timings.Wait, h.Timings.Receive = c.Durations.Latency, c.Durations.Response
	if _, address, ok := strings.Cut(string(c.Remote), "/"); ok {
		if at := strings.LastIndexByte(address, ':'); at > 0 && strings.ContainsAny(address[:at], ".]") {
			address = address[:at]
		}
		h.Server = harScalar(address)
	}
	_, h.Request.Headers = h.Request.headers()
	if text, encoding := h.Request.text(); text != nil {
		h.Request.PostData = &harPost{MIME: string(h.Request.MIME), Text: *text, Encoding: encoding}
	}
	first, fields := h.Response.headers()
	h.Response.Headers = fields
	if _, rest, ok := strings.Cut(first, " "); ok {
		_, h.Response.StatusText, _ = strings.Cut(rest, " ")
	}
	content := &h.Response.Content
	content.MIME = string(h.Response.MIME)
	if content.Text, content.Encoding = h.Response.text(); content.Text == nil {
		content.Size = h.Response.size()
	}
}

// headers returns the first line and the fields of a message.
func (m *charlesMessage) headers() (first string, fields harPairList) {
	var header struct {
		First  harLoose    `json:"firstLine"`
		Fields harPairList `json:"headers"`
	}
	_ = json.Unmarshal(m.Header, &header) // what is of another kind is not used
	return string(header.First), header.Fields
}

// text returns the body of a message as HAR has it, nil for none.
func (m *charlesMessage) text() (text *harString, encoding string) {
	var body struct {
		Text    *harString `json:"text"`
		Encoded *harString `json:"encoded"`
	}
	_ = json.Unmarshal(m.Body, &body)
	if body.Text == nil && body.Encoded != nil {
		return body.Encoded, "base64"
	}
	return body.Text, ""
}

// size is how many bytes the body of a message had on the wire.
func (m *charlesMessage) size() harInt {
	var sizes struct {
		Body harInt `json:"body"`
	}
	_ = json.Unmarshal(m.Sizes, &sizes)
	return sizes.Body
}
